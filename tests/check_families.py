#!/usr/bin/env python3
"""Checks that no source of the library or its bindings has a builtin family's name as a string: a
family is only a file in kernels/; and that the table of their cases has enough of each. Usage:
check_families.py SOURCE_DIR"""

import collections
import pathlib
import re
import sys

# Families whose name is a word of the language as well.
OPS = {"gemm"}
CASES = 8
# Those that are checked on AMD's architectures.
ON_AMD = ("gemm", "softmax", "rms_norm", "attention")


def too_few_cases(root, table, names):
    lines = (root / "tests/programs/table" / table).read_text().splitlines()
    cases = collections.Counter(line.split()[0] for line in lines if line and line[0] != "#")
    return [f"{table}: {cases[n]} cases of {n}, {CASES} are wanted" for n in names if cases[n] < CASES]


def main():
    root = pathlib.Path(sys.argv[1])
    names = {f.stem for f in root.glob("kernels/*.tl")} - OPS
    if not names:
        print("no families")
        return 77
    literal = re.compile(r'"(' + "|".join(sorted(names)) + r')(\.tl)?"')
    errors = too_few_cases(root, "families.txt", sorted(f.stem for f in root.glob("kernels/*.tl")))
    errors += too_few_cases(root, "amd.txt", ON_AMD)
    for top in ("src", "cache", "abi", "bindings"):
        for file in sorted(root.glob(f"{top}/**/*")):
            if file.suffix not in (".h", ".cc", ".c", ".inc"):
                continue
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                # Help texts of the command line may show an example.
                if literal.search(line):
                    errors.append(f"{file.relative_to(root)}:{number}: {line.strip()}")
    print("\n".join(errors))
    print(f"{len(names)} families, {len(errors)} errors")
    return 1 if errors else 0


sys.exit(main())
