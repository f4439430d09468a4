#!/usr/bin/env python3
"""Adds up the results of a run: ctest's JUnit files and gates.txt ("passed|failed SECONDS NAME").
Prints the failures, the ten slowest tests and, last, the totals. Fails if anything failed or nothing
ran."""

import pathlib
import sys
import xml.etree.ElementTree as xml


def results(directory):
    for file in sorted(directory.glob("*.xml")):
        for case in xml.parse(file).getroot().iter("testcase"):
            status = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
            yield status, float(case.get("time") or 0), f"{file.stem}: {case.get('name')}"
    for line in (directory / "gates.txt").read_text().splitlines():
        status, seconds, name = line.split(" ", 2)
        yield status, float(seconds), name


def main():
    rows = list(results(pathlib.Path(sys.argv[1])))
    count = {s: sum(r[0] == s for r in rows) for s in ("passed", "failed", "skipped")}
    for status, _, name in rows:
        if status == "failed":
            print(f"FAILED {name}")
    print("ten slowest tests:")
    tests = [r for r in rows if not r[2].startswith("build-") or ": " in r[2]]
    for _, seconds, name in sorted(tests, key=lambda r: -r[1])[:10]:
        print(f"  {seconds:8.2f} s  {name}")
    if count["skipped"]:
        print(f"({count['skipped']} more skipped themselves: no GPU, no toolkit)")
    print(f"{count['passed']} passed, {count['failed']} failed")
    return 1 if count["failed"] or not count["passed"] else 0


sys.exit(main())
