#!/usr/bin/env python3
"""Prints a C file that defines every function of a header with an empty body. Usage:
  abi_stub.py HEADER
Compiled, it is a library with the header's interface and nothing else, which tools can describe
without following the types behind it.

Unnamed enums get the name of the type above them, and a variable each: otherwise their values would
be part of no function's type, and so of no description."""

import pathlib
import re
import sys


def define(declarations):
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", declarations, flags=re.S)
    if re.search(r"\benum\s*{", plain):
        sys.exit("abi_stub: an enum does not stand below the type of its values")
    names = re.findall(r"\benum\s+(\w+)\s*{", plain)
    functions = re.findall(r"\bTL_API\s+([^;{}]*\))\s*;", plain)
    return "\n".join([f"TL_API enum {name} tl_enum_of_{name};" for name in names] +
                     [f"{function} {{ __builtin_trap(); }}" for function in functions])


def main():
    text = re.sub(r"(typedef int32_t (\w+);\s*enum)(?=\s*{)", r"\1 \2_value",
                  pathlib.Path(sys.argv[1]).read_text())
    stable, experimental = text.split("#ifdef TL_EXPERIMENTAL\n")
    print(f"#define TL_BUILDING_LIBRARY\n{text}\n{define(stable)}\n"
          f"#ifdef TL_EXPERIMENTAL\n{define(experimental)}\n#endif")


main()
