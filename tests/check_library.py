#!/usr/bin/env python3
"""Checks a shared library as the loader sees it. Usage:
  check_library.py LIBRARY PREFIX [HEADER]
Only PREFIX* symbols are defined; nothing is needed but the C and C++ runtimes; no text relocations.
With HEADER: the functions declared there and the exported ones are the same set, no glibc symbol is
newer than 2.34 (the distribution's LLVM, and so the CPU module, has newer ones), and the library is
marked nodelete."""

import os
import pathlib
import re
import subprocess
import sys

RUNTIMES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 34)
# A newer system's headers bind newer symbols whatever the sources say, so the promise can only be
# kept, and checked, where the released binaries are built.
RELEASE_GLIBC = (2, 36)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def version(text):
    return tuple(int(part) for part in text.split("."))


def exported(library):
    return {line.split()[-1].split("@")[0]
            for line in run("nm", "-D", "--defined-only", library).splitlines()
            if line.split()[-2] != "A"}


def declared(header):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", pathlib.Path(header).read_text(), flags=re.S)
    text = re.sub(r"^\s*#(\\\n|[^\n])*", "", text, flags=re.M)
    # A declaration: the name, parameters, and a semicolon; not a pointer to function (*name)(...).
    return set(re.findall(r"\b(tl_[a-z0-9_]+)\s*\([^;{}]*\)\s*;", text))


def main():
    library, prefix = sys.argv[1:3]
    errors = []
    symbols = exported(library)
    errors += [f"exports {s}" for s in sorted(symbols) if not s.startswith(prefix)]
    if not symbols:
        errors.append("exports nothing")

    dynamic = run("objdump", "-p", library)
    needed = set(re.findall(r"NEEDED\s+(\S+)", dynamic))
    errors += [f"needs {n}" for n in sorted(needed - RUNTIMES)]
    if "TEXTREL" in dynamic:
        errors.append("has text relocations")

    if len(sys.argv) > 3:
        used = {version(v) for v in re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", library))}
        host = version(os.confstr("CS_GNU_LIBC_VERSION").split()[-1])
        if host <= RELEASE_GLIBC and max(used) > NEWEST_GLIBC:
            errors.append(f"uses glibc {'.'.join(map(str, max(used)))}")
        names = declared(sys.argv[3])
        errors += [f"exports {s}, which the header does not declare" for s in sorted(symbols - names)]
        errors += [f"does not export {s}" for s in sorted(names - symbols)]
        if "NODELETE" not in run("readelf", "-d", library):
            errors.append("may be unloaded")

    print("\n".join(errors))
    print(f"{len(symbols)} symbols, {len(errors)} errors")
    return 1 if errors else 0


sys.exit(main())
