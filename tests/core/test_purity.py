"""The heart touches nothing: what it imports is a short list, and everything else is refused."""

import ast
from pathlib import Path

CORE = Path(__file__).parents[2] / "src" / "holdfast" / "core"
QUIET = {
    "collections.abc",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "typing",
    "unicodedata",
}
"""Parts of the standard library without a clock, a file, a network, a thread or a die."""


def imported(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they point"
            names.add(node.module or "")
    return names


def test_the_heart_imports_only_itself_and_the_quiet_parts_of_the_standard_library() -> None:
    loud = {
        f"{file.name}: {name}"
        for file in CORE.glob("*.py")
        for name in imported(file.read_text())
        if name not in QUIET and not name.startswith("holdfast.core")
    }

    assert loud == set()


def test_no_file_of_the_heart_is_longer_than_a_sitting() -> None:
    lengths = {file.name: len(file.read_text().splitlines()) for file in CORE.glob("*.py")}

    assert {name: length for name, length in lengths.items() if length > 400} == {}
