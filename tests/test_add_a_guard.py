"""The page about guards works: its blocks are applied to a copy of the sources, and prove themselves."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/how-to/add-a-guard.md").read_text()
FILE_OR_BLOCK = re.compile(
    r"`((?:src|docs|lab|tests)/[\w/.-]+)`|```(diff|python)\n(.*?)```", re.DOTALL
)
MINE = "tests/core/test_nothing_ran.py"
NEIGHBOURS = (
    "tests/settings/test_docs.py",
    "tests/core/test_guards.py",
    "tests/core/test_limits.py",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project, as somebody has it who has done what the page says."""
    away = shutil.ignore_patterns("__pycache__", "adr")
    for part in ("src", "tests", "docs", "lab"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=away)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, kind, block in steps():
        if kind == "python":
            (tmp_path / file).write_text(block)
        else:
            edit(tmp_path / file, *sides(block))
    return tmp_path


def steps() -> list[tuple[str, str, str]]:
    """Each block of the page, with the file that was named last before it."""
    found: list[tuple[str, str, str]] = []
    file = ""
    for named, kind, block in FILE_OR_BLOCK.findall(PAGE):
        file = named or file
        if kind:
            found.append((file, kind, block))
    return found


def sides(diff: str) -> tuple[str, str]:
    """What a diff finds in a file, and what it leaves there."""
    lines = diff.splitlines()
    old = [line[1:] for line in lines if not line.startswith("+")]
    new = [line[1:] for line in lines if not line.startswith("-")]
    return "\n".join(old) + "\n", "\n".join(new) + "\n"


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file.name} does not hold this once:\n{old}"
    file.write_text(text.replace(old, new))


def runs(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'src'}{os.pathsep}{folder}"
    return subprocess.run(
        [sys.executable, "-B", "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=55,
    )


def failures(folder: Path, *files: str) -> str:
    """What failed."""
    done = runs(folder, "pytest", "-q", "-p", "no:cacheprovider", *files)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return "\n".join(re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE))


def test_the_guard_of_the_page_passes_its_test_and_those_of_its_neighbours(copy: Path) -> None:
    assert failures(copy, MINE, *NEIGHBOURS) == ""


def test_the_guard_of_the_page_breaks_no_law(copy: Path) -> None:
    done = runs(copy, "holdfast.testing.simulate", "--runs", "300")

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_mutant_of_the_page_is_noticed(copy: Path) -> None:
    line, instead = re.findall(r'^\+        "(    if .*)",$', PAGE, re.MULTILINE)

    edit(copy / "src/holdfast/core/guards.py", line, instead)

    assert failures(copy, MINE) == f"{MINE}::test_a_run_in_which_no_call_is_run_any_more_ends"


def test_a_field_without_its_row_in_the_reference_is_noticed(copy: Path) -> None:
    shutil.copy(ROOT / "docs/reference/settings.md", copy / "docs/reference/settings.md")

    assert "test_every_key_stands_in_the_reference" in failures(copy, NEIGHBOURS[0])


def test_the_page_holds_what_it_takes_and_nothing_else() -> None:
    assert [(file, kind) for file, kind, _ in steps()] == [
        ("src/holdfast/core/limits.py", "diff"),
        ("docs/reference/settings.md", "diff"),
        ("src/holdfast/core/guards.py", "diff"),
        ("src/holdfast/core/guards.py", "diff"),
        ("src/holdfast/core/fold.py", "diff"),
        ("src/holdfast/core/guards.py", "diff"),
        (MINE, "python"),
        ("src/holdfast/testing/world.py", "diff"),
        ("lab/mutants.py", "diff"),
    ]
