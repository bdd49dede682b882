"""Finding files by name and lines by content."""

import os
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.tools.base import Tool, ToolError
from holdfast.tools.files import Reach, search_files_tool
from holdfast.tools.search import is_easy, search
from holdfast.tools.seeking import Wanted, matcher
from holdfast.tools.workspace import Workspace
from tests.tools.context import OneCall, call, text


@pytest.fixture
def tool() -> Tool:
    return search_files_tool(Reach())


@pytest.fixture
def here(tmp_path: Path) -> OneCall:
    root = tmp_path / "work"
    for name, content in {
        "README.md": "Hello world\n",
        "src/main.py": "def main():\n    run('a.b')\n",
        "src/deep/util.py": "def helper(x):\n    return x\n\n\ndef Main(): ...\n",
        "src/deep/data.json": '{"main": 1}\n',
        "node_modules/pkg/main.py": "def main(): ...\n",
        ".git/config": "main\n",
        "wide.txt": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / "wide.txt").write_bytes("grüße main\r\n".encode("utf-16"))
    (root / "picture").write_bytes(b"main\0main")
    (tmp_path / "secret.py").write_text("def main(): secret\n")
    (root / "out").symlink_to("..")
    (root / "secret.py").symlink_to("../secret.py")
    os.mkfifo(root / "pipe.py")
    return OneCall(root)


async def test_files_are_found_by_name_and_by_path(tool: Tool, here: OneCall) -> None:
    found = {
        pattern: (await text(tool, here, pattern=pattern)).split("\n")
        for pattern in (
            "*.py", "src/**/*.py", "**/deep/*", "{README,main}.*", "MAIN", "deep/util",
            "src/*.py", "./src/*", "*.nothing",
        )
    }  # fmt: skip

    assert found == snapshot(
        {
            "*.py": ["src/main.py", "src/deep/util.py", "[not searched: .git, node_modules]"],
            "src/**/*.py": [
                "src/main.py",
                "src/deep/util.py",
                "[not searched: .git, node_modules]",
            ],
            "**/deep/*": [
                "src/deep/data.json",
                "src/deep/util.py",
                "[not searched: .git, node_modules]",
            ],
            "{README,main}.*": ["README.md", "src/main.py", "[not searched: .git, node_modules]"],
            "MAIN": ["src/main.py", "[not searched: .git, node_modules]"],
            "deep/util": ["src/deep/util.py", "[not searched: .git, node_modules]"],
            "src/*.py": ["src/main.py", "[not searched: .git, node_modules]"],
            "./src/*": ["src/main.py", "src/deep/", "[not searched: .git, node_modules]"],
            "*.nothing": ["Nothing found.", "[not searched: .git, node_modules]"],
        }
    )


async def test_lines_are_found_by_text_and_by_regex(tool: Tool, here: OneCall) -> None:
    found = {
        contains: await text(tool, here, contains=contains)
        for contains in ("main", "Main", r"def \w+\(", "a.b", "(((", "(main|helper)+", "nowhere")
    }

    assert found == snapshot(
        {
            "main": """\
wide.txt:1: grüße main
src/main.py:1: def main():
src/deep/data.json:1: {"main": 1}
src/deep/util.py:5: def Main(): ...
[not searched: .git, node_modules; 1 file not text]\
""",
            "Main": """\
src/deep/util.py:5: def Main(): ...
[not searched: .git, node_modules; 1 file not text]\
""",
            "def \\w+\\(": """\
src/main.py:1: def main():
src/deep/util.py:1: def helper(x):
src/deep/util.py:5: def Main(): ...
[not searched: .git, node_modules; 1 file not text]\
""",
            "a.b": """\
src/main.py:2:     run('a.b')
[not searched: .git, node_modules; 1 file not text]\
""",
            "(((": """\
Nothing found.
[not searched: .git, node_modules; 1 file not text]
[`contains` is no regex (missing ), unterminated subpattern at position 2); searched for as plain text]\
""",
            "(main|helper)+": """\
wide.txt:1: grüße main
src/main.py:1: def main():
src/deep/data.json:1: {"main": 1}
src/deep/util.py:1: def helper(x):
src/deep/util.py:5: def Main(): ...
[not searched: .git, node_modules; 1 file not text]\
""",
            "nowhere": """\
Nothing found.
[not searched: .git, node_modules; 1 file not text]\
""",
        }
    )


async def test_name_content_and_folder_narrow_each_other(tool: Tool, here: OneCall) -> None:
    assert await text(tool, here, pattern="*.py", contains="def", path="src/deep") == (
        "src/deep/util.py:1: def helper(x):\nsrc/deep/util.py:5: def Main(): ..."
    )
    assert await text(tool, here, contains="run", path="src/main.py") == (
        "src/main.py:2:     run('a.b')"
    )
    assert await text(tool, here, contains="main", path="node_modules") == (
        "node_modules/pkg/main.py:1: def main(): ..."
    )


async def test_a_search_that_cannot_be_made_is_said(tool: Tool, here: OneCall) -> None:
    for arguments, said in (
        ({}, "Give `pattern`"),
        ({"pattern": "x", "path": "scr"}, "There is no scr. Did you mean: src?"),
        ({"pattern": "x", "path": "out/x"}, "leads through a symlink"),
    ):
        with pytest.raises(ToolError, match=said.replace(".", r"\.").replace("?", r"\?")):
            await call(tool, here, **arguments)


async def test_of_many_matches_the_first_are_shown(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("needle\n" * 500)
    for number in range(250):
        (tmp_path / f"{number:03}.log").touch()
    here = OneCall(tmp_path)

    lines = (await text(tool, here, contains="needle")).split("\n")
    names = (await text(tool, here, pattern="*.log")).split("\n")

    more = "[only the first {} are shown: narrow pattern or path]"
    assert lines == [*(f"many.txt:{n}: needle" for n in range(1, 101)), more.format(100)]
    assert names == [*(f"{n:03}.log" for n in range(200)), more.format(200)]


async def test_of_a_long_line_the_part_with_the_match_is_shown(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "min.js").write_text("x" * 50_000 + "needle" + "y" * 50_000)

    assert await text(tool, OneCall(tmp_path), contains="needle") == (
        f"min.js:1: ...{'x' * 60}needle{'y' * 174}..."
    )


async def test_a_regex_that_would_run_for_hours_is_ended_and_what_was_found_is_kept(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("aaa!\n")
    (tmp_path / "b.txt").write_text("a" * 60 + "\n")
    place = Workspace(tmp_path).place(".")

    found = await search(place, "", "^(a+)+!", seconds=0.5)

    assert found == (
        "a.txt:1: aaa!\n[stopped: the regex takes too long; give a simpler one, or plain text]"
    )


async def test_a_search_can_be_cancelled(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("a" * 60 + "\n")
    place = Workspace(tmp_path).place(".")

    with anyio.move_on_after(0.3) as scope:
        await search(place, "", "^(a+)+!", seconds=600)

    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("contains", "easy"),
    [("foo.bar", True), ("def .*x", True), ("a|b", True), ("(a+)+", False), ("a*a*b", False)],
)
def test_only_what_cannot_take_long_is_searched_in_our_own_process(
    contains: str, easy: bool
) -> None:
    assert is_easy(Wanted(root="/", parts=(), above="", contains=contains, literal=False)) == easy


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a/b/c.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/c.py", "a/c.py", True),
        ("a/**", "a/b/c.py", True),
        ("**/b/**", "a/b/c.py", True),
        ("b/c.py", "a/b/c.py", True),
        ("[ab].py", "x/a.py", True),
        ("*.{py,{md,txt}}", "x/a.txt", True),
        ("*.PY", "a.py", False),
        ("**/" * 50 + "x", "a/" * 50 + "y", False),
        ("*a" * 50 + "b", "a" * 200, False),
        ("{a,b}" * 40, "a" * 40, False),
    ],
)
def test_patterns_of_names(pattern: str, path: str, fits: bool) -> None:
    assert matcher(pattern)(path) == fits


@given(st.text("ab*?/[]{},\\.", max_size=20), st.text("ab/.", min_size=1, max_size=12))
def test_any_pattern_gives_an_answer(pattern: str, path: str) -> None:
    assert matcher(pattern)(path) in (True, False)
