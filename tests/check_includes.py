#!/usr/bin/env python3
"""Checks that every source includes only from the rooms that its own room may know, and that a few
things stay in one place. Usage: check_includes.py SOURCE_DIR"""

import pathlib
import re
import sys

# Room -> what it may include besides itself, as prefixes of the include path. The longest room that
# is a prefix of a file's path is the file's room. This is docs/architecture.md's table.
ROOMS = {
    "src/base": [],
    "src/layout": ["base/"],
    "src/ir": ["base/", "layout/"],
    "src/passes": ["base/", "layout/", "ir/"],
    "src/backends": ["base/", "layout/", "ir/"],
    "src/backends/reference": ["base/", "layout/", "ir/", "backends/backend.h", "backends/host_session.h"],
    "src/backends/c_family": ["base/", "layout/", "ir/", "backends/backend.h"],
    "src/backends/cuda": ["base/", "layout/", "ir/", "backends/backend.h", "backends/c_family/"],
    "src/backends/hip": ["base/", "layout/", "ir/", "backends/backend.h", "backends/compile_job.h",
                         "backends/c_family/"],
    "src/backends/cpu": ["base/", "layout/", "ir/", "backends/backend.h", "backends/host_session.h"],
    "src/backends/emulate": ["base/", "layout/", "ir/", "backends/backend.h", "backends/c_family/",
                             "backends/hip/dialect.h"],  # the mathematical functions that it runs
    "src/backends/emulate/client": ["base/", "layout/", "ir/", "backends/backend.h", "backends/host_session.h",
                                    "backends/c_family/", "backends/cuda/", "backends/hip/",
                                    "backends/emulate/interface.h",
                                    "backends/emulate/api.h"],
    "src/tuner": ["base/"],
    "cache": ["base/"],
    "src/service": ["base/", "layout/", "ir/", "passes/", "backends/", "cache/", "tuner/"],
    "abi": ["base/", "service/", "tl/tl.h"],
    "include": [],
    "bindings": ["tl/tl.h"],
    "examples": ["tl/tl.h", "tl/tl.hpp"],
    "tests/abi": ["tl/tl.h", "tests/oracle/"],
    "tests/bindings": ["tl/tl.h", "tl/tl.hpp"],
    "tests/oracle": ["tl/tl.h"],
}

# Third-party header, with its opening delimiter -> the only rooms that may include it.
CONFINED = {
    r"[<\"]llvm(-c)?/.*": ["src/backends/cpu/module"],
    r"[<\"]sqlite3.*": ["cache"],
    r"[<\"](cuda|nvrtc).*\.h": ["src/backends/cuda"],
    r"[<\"]hip/.*": ["src/backends/hip"],
    r"<absl/.*": [],  # written "absl/..."
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+)[>"]', re.M)


def room_of(path):
    rooms = [r for r in ROOMS if path.startswith(r + "/")]
    return max(rooms, key=len, default=None)


def own_prefix(room):
    """How the room's own headers are spelled by everyone."""
    return room.removeprefix("src/") + "/"


def check_include(path, room, spelled, root):
    kind, name = spelled[0], spelled[1:]
    for pattern, homes in CONFINED.items():
        if re.fullmatch(pattern, spelled) and not any(path.startswith(h + "/") for h in homes):
            return f"{name} may be included only in {', '.join(homes) or 'no room'}"
    if kind == "<" and not name.startswith("tl/"):
        return None
    if name.startswith(("absl/", "llvm/", "gtest/", "gmock/", "CLI/", "nlohmann/", "dlpack/")) or name in ("sqlite3.h", "xxhash.h"):
        outside = ("bindings", "examples", "tests/oracle", "include")
        if name.startswith("absl/") and (room in outside or room in ("tests/abi", "tests/bindings")):
            return f"{room} does not use Abseil"
        return None
    allowed = [own_prefix(room)] + ROOMS[room]
    if room == "include":
        return None if name.startswith("tl/") else f"a public header includes {name}"
    # A contract header stands in its room's directory, not in a sub-room.
    if any(name == a or (a.endswith("/") and name.startswith(a)) for a in allowed):
        if room == "src/backends" and name.count("/") > 1:
            return f"the backend contract may not know {name}"
        return None
    if (root / path).parent.joinpath(name).exists():
        return None
    return f"{room} may not include {name}"


def main():
    root = pathlib.Path(sys.argv[1])
    errors, files = [], 0
    readers = []
    for top in sorted({r.split("/")[0] for r in ROOMS}):
        for file in sorted(root.glob(f"{top}/**/*")):
            if file.suffix not in (".h", ".hpp", ".cc", ".c", ".cpp", ".inc") or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            room = room_of(path)
            if room is None:
                continue
            files += 1
            text = file.read_text(errors="replace")
            for match in INCLUDE.finditer(text):
                error = check_include(path, room, match.group(1), root)
                if error:
                    line = text.count("\n", 0, match.start(1)) + 1
                    errors.append(f"{path}:{line}: {error}")
            if re.search(r"\bgetenv\s*\(", text) and path.split("/")[0] in ("src", "cache", "abi"):
                readers.append(path)
    if len(readers) > 1:
        errors.append(f"one file reads the environment, not {len(readers)}: {', '.join(readers)}")
    print("\n".join(errors))
    print(f"{files} files, {len(errors)} errors")
    return 1 if errors or not files else 0


sys.exit(main())
