#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the sources keep to docs/architecture.md, and does every file say its licence?

    check_sources.py ROOT     prints file:line: what is wrong, and exits with 1 where something is
"""
import fnmatch
import pathlib
import re
import sys

SOURCES = {".h", ".hpp", ".cpp", ".cu", ".cuh"}
WITH_LICENCE = SOURCES | {".py", ".sh", ".cmake", ".sql", ".toml", ".txt", ".in", ".desktop"}
ROOT_FILES = (".clang-format", ".clang-tidy", ".ci/run", "CMakeLists.txt")
FOLDERS = ("core", "profiler", "ui", "app", "tests", "packaging", "cmake", "resources")
GPL_FOLDERS = ("ui/", "app/gui/", "resources/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def table(text, heading):
    """The rows below a heading, each a list of cells, a cell its words in backticks."""
    section = re.split(r"^## ", text.split(f"## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows]


class Rules:
    def __init__(self, architecture):
        text = architecture.read_text()
        self.own = {row[0][0]: row[-1] for row in table(text, "Own headers")}
        self.foreign = [(beginning, row[1]) for row in table(text, "Foreign headers") for beginning in row[0]]
        if not self.own or not self.foreign:
            raise SystemExit(f"{architecture}: its tables are not where they were")

    @staticmethod
    def matches(folder, pattern):
        # core/* is core/engine, not core/model/kernels; tests/* is whatever lies below.
        if pattern == "tests/*":
            return folder == "tests" or folder.startswith("tests/")
        return folder.count("/") == pattern.count("/") and fnmatch.fnmatch(folder, pattern)

    def row(self, folder):
        """What a folder may include: its own row, or the one whose pattern it matches."""
        if folder in self.own:
            return self.own[folder]
        return next((allowed for pattern, allowed in self.own.items() if self.matches(folder, pattern)), None)

    def home(self, path):
        """The folder of the tables in which a file lies: the longest that has a row."""
        parts = path.split("/")[:-1]
        for length in range(len(parts), 0, -1):
            folder = "/".join(parts[:length])
            if self.row(folder) is not None:
                return folder
        return None

    def check_own(self, folder, header):
        to = self.home(header)
        if to is None:
            return f"{header} lies in no folder of docs/architecture.md"
        if to == folder or any(self.matches(to, pattern) for pattern in self.row(folder)):
            return None
        return f"{folder} may not include {to} ({header})"

    def check_foreign(self, folder, header):
        if self.matches(folder, "tests/*"):
            return None
        # The longest beginning counts: QApplication has a stricter row than Q.
        known = [(beginning, folders) for beginning, folders in self.foreign if header.startswith(beginning)]
        if not known:
            return None
        beginning, folders = max(known, key=lambda row: len(row[0]))
        if any(self.matches(folder, pattern) for pattern in folders):
            return None
        return f"{folder} may not include <{header}>: `{beginning}` is for {', '.join(folders)}"


def check_includes(root, path, rules):
    name = path.relative_to(root).as_posix()
    folder = rules.home(name)
    if folder is None:
        yield f"{name}:1: lies in no folder of docs/architecture.md"
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        kind, header = found.groups()
        is_own = header.split("/")[0] in ("core", "profiler", "ui", "app", "tests")
        beside = kind == '"' and (path.parent / header).exists()
        if beside and not is_own:
            continue  # a helper of the same folder
        problem = rules.check_own(folder, header) if is_own else rules.check_foreign(folder, header)
        if problem:
            yield f"{name}:{number}: {problem}"


def check_licence(root, path):
    name = path.relative_to(root).as_posix()
    # A test that links the window is under the window's licence, any other under either.
    licences = ["GPL-3.0-or-later"] if name.startswith(GPL_FOLDERS) else ["Apache-2.0"]
    if name.startswith("tests/"):
        licences.append("GPL-3.0-or-later")
    wanted = tuple(f"SPDX-License-Identifier: {licence}" for licence in licences)
    with path.open(errors="replace") as file:
        start = [file.readline(), file.readline()]
    lines = start if start[0].startswith("#!") else start[:1]
    if not any(line.rstrip().endswith(wanted) for line in lines):
        yield f"{name}:1: the first line must say {wanted[0]}"


def wants_licence(root, path):
    # What a program printed, kept to compare with, is no text of ours to put a line on.
    return path.suffix in WITH_LICENCE and "golden" not in path.relative_to(root).parts


def check(root):
    rules = Rules(root / "docs/architecture.md")
    for path in (root / name for name in ROOT_FILES):
        if path.is_file():
            yield from check_licence(root, path)
    for top in FOLDERS:
        for path in sorted((root / top).rglob("*")):
            if not path.is_file():
                continue
            if wants_licence(root, path):
                yield from check_licence(root, path)
            if path.suffix in SOURCES and top not in ("packaging", "cmake", "resources"):
                yield from check_includes(root, path, rules)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    problems = list(check(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(problems) if problems else "All sources keep to docs/architecture.md.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
