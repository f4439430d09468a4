#!/usr/bin/env python3
"""Every code block of a page that names a file, as in "```c examples/c/serve.c", stands in that file: its lines one after
the other, whatever their indentation; a line of "…" leaves lines out. Usage: check_snippets.py SOURCE_DIR PAGE..."""

import pathlib
import sys


def blocks(text):
    """Line, info string and lines of every fenced block."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("```"):
            if start:
                start[2].append(line)
        elif start is None:
            start = (number, line[3:].split(), [])
        else:
            yield start
            start = None


def pieces(lines):
    """The runs of lines between those of "…"."""
    run = []
    for line in [*lines, "…"]:
        if line.strip() != "…":
            run.append(line.strip())
        elif run:
            yield run
            run = []


def find(run, lines, start):
    """Where the run begins at or after `start`; None: nowhere."""
    for at in range(start, len(lines) - len(run) + 1):
        if lines[at:at + len(run)] == run:
            return at
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    errors, count = [], 0
    for page in sys.argv[2:]:
        for number, info, lines in blocks((root / page).read_text()):
            where = f"{page}:{number}"
            if info == ["console"]:  # what is typed and printed at a prompt
                continue
            if len(info) != 2:
                errors.append(f"{where}: name the file that the block is from")
                continue
            count += 1
            file = root / info[1]
            there = [line.strip() for line in file.read_text().splitlines()] if file.is_file() else []
            at = 0
            for run in pieces(lines):
                found = find(run, there, at)
                if found is None:
                    errors.append(f"{where}: {info[1]} has no lines {run[0]!r} ...")
                    break
                at = found + len(run)
    print("\n".join(errors))
    print(f"{count} blocks, {len(errors)} errors")
    return 1 if errors or not count else 0


sys.exit(main())
