"""Reading, writing and editing files, as a model does it."""

import os
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.core.events import FileKept
from holdfast.core.tools import resolve
from holdfast.tools import looking
from holdfast.tools.base import Access, Binary, Output, Tool, ToolError, Touch
from holdfast.tools.editing import diff, edited
from holdfast.tools.files import Reach, file_tools
from holdfast.tools.texts import decoded
from holdfast.tools.workspace import Folder
from tests.tools.context import OneCall, call, ran, text

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in file_tools()}


@pytest.fixture
def here(tmp_path: Path) -> OneCall:
    (tmp_path / "work").mkdir()
    return OneCall(tmp_path / "work")


async def wrong(tool: Tool, context: OneCall, **arguments: object) -> str:
    with pytest.raises(ToolError) as raised:
        await call(tool, context, **arguments)
    return str(raised.value).replace(str(context.workspace.parent), "<tmp>")


# --- reading --------------------------------------------------------------------------------


async def test_a_small_file_is_read_as_it_is(tools: dict[str, Tool], here: OneCall) -> None:
    (here.workspace / "a.txt").write_text("one\n\n  two\tthree\nüñ 🎈")

    assert await text(tools["read_file"], here, path="a.txt") == "one\n\n  two\tthree\nüñ 🎈"


async def test_a_long_file_is_paged_and_every_line_comes_once(
    tools: dict[str, Tool], here: OneCall
) -> None:
    lines = [f"line {number} " + "x" * (number % 97) for number in range(1, 701)]
    (here.workspace / "a.txt").write_text("\n".join(lines) + "\n")

    read: list[str] = []
    offset, note = 1, ""
    while not note.endswith("this is the end]"):
        page = await text(tools["read_file"], here, path="a.txt", offset=offset)
        assert len(page) <= 6_000
        *shown, note = page.split("\n")
        assert note.startswith(f"[lines {offset}-{offset + len(shown) - 1} of 700; ")
        read += shown
        offset += len(shown)

    assert read == lines


async def test_a_part_says_where_it_is_and_how_to_go_on(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.txt").write_text("1\n2\n3\n4\n5\n")
    read = tools["read_file"]

    assert await text(read, here, path="a.txt", offset=2, limit=2) == (
        "2\n3\n[lines 2-3 of 5; offset=4 reads on]"
    )
    assert await text(read, here, path="a.txt", offset=4, limit=2) == (
        "4\n5\n[lines 4-5 of 5; this is the end]"
    )
    assert await text(read, here, path="a.txt", offset=0, limit=5) == "1\n2\n3\n4\n5"
    assert await wrong(read, here, path="a.txt", offset=6) == (
        "a.txt has 5 lines; offset 6 is past its end."
    )


@given(
    st.lists(st.sampled_from((b"", b"a", b"bb\r", b"\xc3\xa9", b"c" * 9)), max_size=12),
    st.booleans(),
    st.integers(1, 14),
    st.integers(1, 14),
    st.integers(1, 7),
)
def test_however_the_bytes_arrive_the_same_lines_are_shown_and_counted(
    lines: list[bytes], ended: bool, offset: int, limit: int, size: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    expected = content.decode().replace("\r\n", "\n").split("\n")
    if expected[-1] == "":
        expected.pop()
    page = looking.Page(offset, limit, 10_000)
    pieces = [content[at : at + size] for at in range(0, len(content), size)]

    total = looking.scanned(page, iter(pieces))

    shown = [line.removesuffix("\r") for line in expected[offset - 1 : offset - 1 + limit]]
    assert (page.lines, total) == (shown, len(expected))


async def test_a_file_larger_than_memory_is_not_read_whole(
    tools: dict[str, Tool], here: OneCall
) -> None:
    with (here.workspace / "huge.log").open("wb") as file:
        file.write(b"first\nsecond\n")
        file.write(b"x" * 300_000)
        file.truncate(50_000_000_000)  # sparse: it takes no space

    assert await text(tools["read_file"], here, path="huge.log", limit=2) == (
        "first\nsecond\n[lines 1-2 of more than were counted; offset=3 reads on]"
    )
    third = await text(tools["read_file"], here, path="huge.log", offset=3)
    assert third.startswith("x" * 100_000 + "[... truncated: a line of 26")
    assert third.endswith("[lines 3-3 of more than were counted; offset=4 reads on]")
    assert await wrong(tools["read_file"], here, path="huge.log", offset=9) == snapshot(
        "huge.log (50.0 GB) is too large to reach line 9. search_files with `contains` finds lines in smaller files; a command can cut it."
    )
    assert await wrong(tools["edit_file"], here, path="huge.log", old="a", new="b") == snapshot(
        "huge.log has more than 16777216 bytes, too many for this tool."
    )


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"\xef\xbb\xbfbom\r\ntwo\r\n", "bom\ntwo"),
        ("wide é\ntwo\n".encode("utf-16"), "wide é\ntwo\n[it is utf-16-le]"),
        (b"caf\xe9\n", "café\n[read as Latin-1: it is not UTF-8]"),
        (b"", "[a.txt is empty]"),
        (b"\n", ""),
    ],
)
async def test_other_encodings_are_read_and_said(
    tools: dict[str, Tool], here: OneCall, content: bytes, shown: str
) -> None:
    (here.workspace / "a.txt").write_bytes(content)

    assert await text(tools["read_file"], here, path="a.txt") == shown


async def test_an_image_is_shown_to_people(tools: dict[str, Tool], here: OneCall) -> None:
    (here.workspace / "a.png").write_bytes(PNG)

    assert await call(tools["read_file"], here, path="a.png") == Output(
        "[a.png: image/png, 28 B]", (Binary(PNG, "image/png", "a.png"),)
    )


async def test_what_cannot_be_read_is_said_with_the_way_out(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "src").mkdir()
    (here.workspace / "src" / "main.py").write_text("pass")
    (here.workspace / "README.md").write_text("read me")
    (here.workspace / "data.bin").write_bytes(b"a\0b")
    (here.workspace / "loop").symlink_to("loop")
    os.mkfifo(here.workspace / "pipe")
    read = tools["read_file"]

    said = {
        path: await wrong(read, here, path=path)
        for path in (
            "readme.md", "main.py", "/src/main.py", "nothing", "src", "data.bin", "pipe",
            "README.md/x", "a\0b", "", "loop",
        )
    }  # fmt: skip

    assert said == snapshot(
        {
            "readme.md": "There is no readme.md. Did you mean: README.md?",
            "main.py": "There is no main.py. Did you mean: src/main.py?",
            "/src/main.py": "There is no /src/main.py. Did you mean: src/main.py?",
            "nothing": "There is no nothing. list_dir and search_files show what there is.",
            "src": "src is a folder. Use list_dir to see what is in it.",
            "data.bin": "data.bin is not text (3 bytes); it cannot be shown.",
            "pipe": "pipe is a device, pipe or socket, not a file.",
            "README.md/x": "README.md/x cannot be reached: a part of the path is a file, a symlink that leads nowhere, or was changed just now.",
            "a\x00b": "a\\x00b is no path: it has a NUL character in it.",
            "": "The path is empty. Give the path of a file or folder.",
            "loop": "loop cannot be reached: a part of the path is a file, a symlink that leads nowhere, or was changed just now.",
        }
    )


NAUGHTY = st.sampled_from(
    ("..", "~", "/", "//", ".", "\0", "\n", " ", "\ud800", "\udc80", "\u202e", "%2e%2e", "$HOME",
     "C:\\", "file://", "-rf", "'", '"', "*", "CON", "a" * 256, "/proc/self/fd/0", "/dev/zero", "é")
)  # fmt: skip


@given(st.lists(NAUGHTY | st.text(max_size=3), max_size=6).map("/".join) | st.text())
async def test_any_text_is_a_path_or_is_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    tools = {tool.name: tool for tool in file_tools()}
    here = OneCall(tmp_path_factory.getbasetemp())

    touch = tools["read_file"].touch({"path": path}, here.workspace)
    for name in ("list_dir", "read_file"):
        if not touch.danger or name == "list_dir":
            with suppress(ToolError):
                await ran(tools[name], here, {"path": path})


# --- folders --------------------------------------------------------------------------------


async def test_a_folder_is_listed_with_what_is_hidden_said(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "src").mkdir()
    (here.workspace / "a.txt").write_text("12345")
    (here.workspace / "big").write_bytes(b"x" * 12_345)
    (here.workspace / ".env").write_text("")
    (here.workspace / "link").symlink_to("/etc/passwd")

    assert await text(tools["list_dir"], here) == snapshot("""\
src/
a.txt  5 B
big  12.3 kB
link -> /etc/passwd
[1 hidden: .env]\
""")
    assert ".env  0 B" in (await text(tools["list_dir"], here, path=".", hidden=True))
    assert await text(tools["list_dir"], here, path="src") == "[src is an empty folder]"
    assert await wrong(tools["list_dir"], here, path="a.txt") == (
        "a.txt is no folder. read_file reads a file."
    )
    assert await wrong(tools["list_dir"], here, path="scr") == (
        "There is no scr. Did you mean: src?"
    )


async def test_of_many_entries_the_first_are_listed(tools: dict[str, Tool], here: OneCall) -> None:
    for number in range(300):
        (here.workspace / f"{number:03}").touch()

    *lines, note = (await text(tools["list_dir"], here)).split("\n")

    assert lines == [f"{number:03}  0 B" for number in range(200)]
    assert note == "[200 of 300; search_files finds the others by name]"


# --- writing --------------------------------------------------------------------------------


async def test_a_file_is_written_with_its_folders_and_kept_before(
    tools: dict[str, Tool], here: OneCall
) -> None:
    write, path = tools["write_file"], here.workspace / "new" / "deep" / "a.txt"

    assert await text(write, here, path="new/deep/a.txt", content="one\ntwo\n") == (
        "Created new/deep/a.txt: 2 lines."
    )
    path.chmod(0o751)
    assert await text(write, here, path="new/deep/a.txt", content="three") == (
        "Overwrote new/deep/a.txt: 1 line, before 2."
    )
    assert await text(write, here, path="new/deep/a.txt", content="three") == (
        "new/deep/a.txt had exactly this content already (1 line). Nothing was changed."
    )

    assert path.read_text() == "three"
    assert path.stat().st_mode & 0o7777 == 0o751
    assert here.kept == [
        FileKept("c1", str(path), "", 0.0, 0),
        FileKept("c1", str(path), "b1", 1.0, 0o751),
    ]
    assert here.blobs == {"b1": b"one\ntwo\n"}
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("before", "written", "after", "said"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n", " Its line ends stay CRLF."),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n", ""),
        (b"caf\xe9\n", "th\u00e9\n", b"th\xe9\n", " Its encoding stays latin-1."),
        (b"caf\xe9\n", "🎈\n", "🎈\n".encode(), ""),
        (b"\0\1", "", b"", ""),
    ],
)
async def test_writing_over_a_file_keeps_how_it_is_encoded(
    tools: dict[str, Tool], here: OneCall, before: bytes, written: str, after: bytes, said: str
) -> None:
    (here.workspace / "a.txt").write_bytes(before)

    told = await text(tools["write_file"], here, path="a.txt", content=written)

    assert (here.workspace / "a.txt").read_bytes() == after
    assert told.endswith(f".{said}")
    assert here.blobs == {"b1": before}


async def test_the_work_of_somebody_else_is_not_written_over(
    tools: dict[str, Tool], here: OneCall
) -> None:
    path = here.workspace / "a.txt"
    path.write_text("one")
    await text(tools["read_file"], here, path="a.txt")
    path.write_text("somebody else's")

    said = await wrong(tools["write_file"], here, path="a.txt", content="two")

    assert said == (
        "a.txt was changed by somebody else since you last saw it, and is left as it is. "
        "Read it again first."
    )
    assert path.read_text() == "somebody else's"
    await text(tools["read_file"], here, path="a.txt")
    await text(tools["write_file"], here, path="a.txt", content="two")
    await text(tools["edit_file"], here, path="a.txt", old="two", new="three")
    await text(tools["write_file"], here, path="a.txt", content="four")
    assert path.read_text() == "four"
    other = OneCall(here.workspace, session="other")
    await text(tools["write_file"], other, path="a.txt", content="five")
    assert path.read_text() == "five"


class Meddler(OneCall):
    """Somebody changes the file while it is being kept."""

    async def keep(self, path: Path) -> None:
        self.keep_now(path)
        path.write_text("somebody else's")  # noqa: ASYNC240


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("write_file", {"content": "two"}), ("edit_file", {"old": "one", "new": "two"})],
)
async def test_a_change_in_the_last_moment_is_not_lost(
    tools: dict[str, Tool], here: OneCall, name: str, arguments: dict[str, str]
) -> None:
    path = here.workspace / "a.txt"
    path.write_text("one")

    said = await wrong(tools[name], Meddler(here.workspace), path="a.txt", **arguments)

    assert said == "a.txt was changed by somebody else just now. Read it again."
    assert path.read_text() == "somebody else's"


async def test_nothing_is_written_where_it_must_not(tools: dict[str, Tool], here: OneCall) -> None:
    (here.workspace / "locked").write_text("x")
    (here.workspace / "locked").chmod(0o444)
    (here.workspace / "folder").mkdir()
    (here.workspace / "out").symlink_to(here.workspace.parent)

    said = {
        path: await wrong(tools["write_file"], here, path=path, content="y")
        for path in ("locked", "folder", "locked/x", "out/x", ".")
    }

    assert said == snapshot(
        {
            "locked": "locked is write-protected (mode 444).",
            "folder": "folder is a folder. Use list_dir to see what is in it.",
            "locked/x": "locked/x cannot be reached: a part of the path is a file, a symlink that leads nowhere, or was changed just now.",
            "out/x": "out/x leads through a symlink to <tmp>/x. Give that path itself if it is meant.",
            ".": ". is a folder. Use list_dir to see what is in it.",
        }
    )
    assert here.kept == []
    assert sorted(path.name for path in here.workspace.parent.iterdir()) == ["work"]


async def test_a_place_outside_that_was_allowed_can_be_written(
    tools: dict[str, Tool], here: OneCall
) -> None:
    path = here.workspace.parent / "beside.txt"

    told = await text(tools["write_file"], here, path="../beside.txt", content="x")

    assert told == f"Created {path}: 1 line."
    assert path.read_text() == "x"


async def test_a_write_that_is_cancelled_in_the_middle_is_finished_first(
    tools: dict[str, Tool], here: OneCall
) -> None:
    path = here.workspace / "a.txt"
    path.write_text("one")
    size = path.stat().st_size

    async def cancel_in_the_middle(scope: anyio.CancelScope) -> None:
        while len(os.listdir(here.workspace)) == 1 and os.stat(path).st_size == size:  # noqa: PTH116, PTH208
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_in_the_middle, group.cancel_scope)
            await call(tools["write_file"], here, path="a.txt", content="two\n" * 3_000_000)

    assert [(file.name, file.stat().st_size) for file in here.workspace.iterdir()] == [
        ("a.txt", 12_000_000)
    ]


async def test_a_write_that_is_cancelled_before_it_began_is_not_done(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.txt").write_text("one")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await call(tools["write_file"], here, path="a.txt", content="two")

    assert contents(here.workspace) == {"a.txt": "one"}


def contents(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


# --- editing --------------------------------------------------------------------------------

CODE = "def f():\n    return 'a'\n\n\ndef g():\n    return 'b'\n"


async def test_an_edit_replaces_the_exact_text_and_shows_the_diff(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.py").write_text(CODE)

    told = await text(tools["edit_file"], here, path="a.py", old="return 'b'", new="return 'c'")

    assert told == snapshot("""\
Replaced 1 place in a.py.
--- a/a.py
+++ b/a.py
@@ -3,4 +3,4 @@
 \n\
 \n\
 def g():
-    return 'b'
+    return 'c'\
""")
    assert (here.workspace / "a.py").read_text() == CODE.replace("'b'", "'c'")
    assert here.blobs == {"b1": CODE.encode()}


@pytest.mark.timeout(20)
async def test_the_closest_of_many_long_lines_is_found(
    tools: dict[str, Tool], here: OneCall
) -> None:
    lines = [f"{number:05} {'ab' * 90} {number % 7} {'ba' * 5}" for number in range(20_000)]
    lines[12_345] = f"{'the quick brown fox ' * 8}and the dog"
    (here.workspace / "a.txt").write_text("\n".join(lines))
    old = f"{'the quick brown fox ' * 8}and the cat"

    said = await wrong(tools["edit_file"], here, path="a.txt", old=old, new="x")
    none = await wrong(tools["edit_file"], here, path="a.txt", old="ba" * 90, new="x")

    assert said.endswith(f"The closest, from line 12346:\n{lines[12_345]}")
    assert "The closest, from line " in none


async def test_after_a_crash_an_edit_can_tell_whether_it_was_made(
    tools: dict[str, Tool], here: OneCall
) -> None:
    edit = tools["edit_file"]
    assert edit.probe is not None
    wanted = {"path": "a.py", "old": "return 'b'", "new": "return 'c'"}
    (here.workspace / "a.py").write_text(CODE)

    before = await edit.probe(wanted, here)
    await call(edit, here, **wanted)
    after = await edit.probe(wanted, here)

    assert (before, after) == (None, "a.py was edited, before the program stopped.")


async def test_an_edit_that_does_not_fit_is_answered_with_what_is_there(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.py").write_text(CODE)

    said = {
        old: await wrong(tools["edit_file"], here, path="a.py", old=old, new=new)
        for old, new in (
            ("    return 'z'", "x"),
            ("def f():\n  return 'a'", "x"),
            ("return “a”", "x"),
            ("def f():\\n    return 'a'", "x"),
            ("1: def f():\n2:     return 'a'", "x"),
            ("\n\n\n\ndef g():", "x"),
            ("return 'old'", "return 'b'"),
            ("    return", "x"),
            ("", "x"),
            ("a", "a"),
            ("🎈" * 9, "x"),
        )
    }

    assert (here.workspace / "a.py").read_text() == CODE
    assert here.kept == []
    assert said == snapshot(
        {
            "    return 'z'": """\
`old` is not in the file, so nothing was changed. The closest, from line 6:
    return 'b'\
""",
            """\
def f():
  return 'a'\
""": """\
`old` is not in the file, so nothing was changed. It differs only in blanks or quotes. The file has:
def f():
    return 'a'\
""",
            "return “a”": """\
`old` is not in the file, so nothing was changed. It differs only in blanks or quotes. The file has:
    return 'a'\
""",
            "def f():\\n    return 'a'": "`old` is not in the file, so nothing was changed. Write line breaks as such, not as a backslash and an n.",
            """\
1: def f():
2:     return 'a'\
""": "`old` is not in the file, so nothing was changed. Leave out the line numbers: they are not in the file.",
            """\




def g():\
""": "`old` is not in the file, so nothing was changed. Leave out the blanks and line breaks around it.",
            "return 'old'": """\
`old` is not in the file, so nothing was changed. `new` is already there, at line 6: perhaps this edit was made before. The closest, from line 6:
    return 'b'\
""",
            "    return": "`old` is there 2 times, in lines 2, 6. Give more of the lines around the one you mean, or all=true to replace every one.",
            "": "`old` is empty: give the text to replace. write_file writes a whole file.",
            "a": "`old` and `new` are the same: there is nothing to change.",
            "🎈🎈🎈🎈🎈🎈🎈🎈🎈": "`old` is not in the file, so nothing was changed. Nothing in it is like it: read the file again.",
        }
    )


async def test_all_of_several_are_replaced_when_asked_for(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.txt").write_text("a b a\n" * 20)

    told = await text(tools["edit_file"], here, path="a.txt", old="a", new="c", all=True)

    assert told.startswith("Replaced 40 places in a.txt.\n--- a/a.txt\n+++ b/a.txt\n@@ -1,20 +1,20")
    assert (here.workspace / "a.txt").read_text() == "c b c\n" * 20


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\nb\r\nc\nd\n", "a\nb", "x", b"x\r\nc\nd\n"),
        (b"a\nb\r\nc\nd\n", "b\nc", "x\ny", b"a\nx\r\ny\nd\n"),
        (b"\xef\xbb\xbfa\r\n", "a", "b", b"\xef\xbb\xbfb\r\n"),
        (b"caf\xe9 a", "caf\u00e9", "th\u00e9", b"th\xe9 a"),
        ("a\nb".encode("utf-16"), "b", "é", "a\né".encode("utf-16")),
        (b"a\r\nb", "a\r\nb", "c", b"c"),
    ],
)
async def test_line_ends_marks_and_encodings_stay_as_they_were(
    tools: dict[str, Tool], here: OneCall, before: bytes, old: str, new: str, after: bytes
) -> None:
    (here.workspace / "a.txt").write_bytes(before)

    await text(tools["edit_file"], here, path="a.txt", old=old, new=new)

    assert (here.workspace / "a.txt").read_bytes() == after


@given(st.binary(max_size=60), st.data())
def test_an_edit_changes_the_bytes_it_names_and_no_others(
    content: bytes, data: st.DataObject
) -> None:
    try:
        whole, form = decoded(content)
    except ToolError:
        return
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    old, new = whole[start:end], data.draw(st.text("xy\n", max_size=5))
    try:
        after, lines = edited(whole, form, old, new, everywhere=False)
    except ToolError:
        return

    assert whole.count(old) == 1 == len(lines)
    assert form.encoded(after).startswith(form.encoded(whole[:start]))
    assert after.endswith(whole[end:])
    if "\n" not in new:
        assert after == whole[:start] + new + whole[end:]


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_a_diff_says_truly_which_lines_went_and_came(old: list[str], new: list[str]) -> None:
    told = diff("f", "\n".join(old), "\n".join(new)).split("\n")[2:]

    at, rebuilt = 0, list[str]()
    for line in told:
        if line.startswith("@@"):
            start = int(line.split()[1].split(",")[0].removeprefix("-"))
            many = int((line.split()[1].split(",") + ["1"])[1])
            begin = start - 1 if many else start
            rebuilt += old[at:begin]
            at = begin
        elif line.startswith("+"):
            rebuilt.append(line[1:])
        else:
            assert old[at] == line[1:]
            at += 1
            if line.startswith(" "):
                rebuilt.append(line[1:])
    assert rebuilt + old[at:] == new


async def test_a_preview_shows_the_diff_and_changes_nothing(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.txt").write_text("one\n")
    arguments: list[tuple[str, dict[str, object], str]] = [
        ("write_file", {"path": "a.txt", "content": "two\n"}, "-one\n+two"),
        ("write_file", {"path": "b.txt", "content": "two\n"}, "+two"),
        ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}, "-one\n+two"),
        ("edit_file", {"path": "a.txt", "old": "x", "new": "y"}, "It would fail: `old` is not"),
    ]

    for name, given_, shown in arguments:
        preview = tools[name].preview
        assert preview is not None
        assert shown in await preview(given_, here.workspace)

    assert [(p.name, p.read_text()) for p in here.workspace.iterdir()] == [("a.txt", "one\n")]


# --- what they touch ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "touch"),
    [
        ("read_file", "./a/../b.txt", Touch(Access.READ, ("b.txt",))),
        ("list_dir", None, Touch(Access.READ, (".",))),
        ("search_files", "sub", Touch(Access.READ, ("sub",))),
        ("write_file", "sub/x", Touch(Access.EDIT, ("sub/x",))),
        ("edit_file", "link/x", Touch(Access.EDIT, ("sub/x", "link/x"))),
        ("read_file", ".git/config", Touch(Access.READ, (".git/config",))),
        (
            "write_file",
            ".git/config",
            Touch(
                Access.EDIT, (".git/config",), ".git/config can change what is run or allowed later"
            ),
        ),
        ("read_file", "../x", Touch(Access.READ, ("{up}/x",), "{up}/x is outside the workspace")),
        (
            "edit_file",
            "away/x",
            Touch(Access.EDIT, ("{up}/x", "away/x"), "{up}/x is outside the workspace"),
        ),
        ("read_file", "also/x", Touch(Access.READ, ("{up}/also/x", "also/x"))),
        ("read_file", "a\0b", Touch(Access.READ, ("a\0b",))),
    ],
)
def test_a_call_says_beforehand_what_it_would_touch(
    here: OneCall, name: str, path: str | None, touch: Touch
) -> None:
    up = here.workspace.parent
    (here.workspace / "sub").mkdir()
    (up / "also").mkdir()
    for link, target in (("link", "sub"), ("away", ".."), ("also", "../also")):
        (here.workspace / link).symlink_to(target)
    tools = {tool.name: tool for tool in file_tools(Reach(also=(Folder(up / "also"),)))}

    told = tools[name].touch({} if path is None else {"path": path}, here.workspace)

    subjects = tuple(one.format(up=up) for one in touch.subjects)
    assert told == Touch(touch.access, subjects, touch.danger.format(up=up))


def test_names_that_models_use_lead_to_the_tools(tools: dict[str, Tool]) -> None:
    specs = [tool.spec for tool in tools.values()]

    found = {
        name: resolve(name, specs) for name in ("cat", "ls", "create_file", "glob", "ReadFile")
    }

    assert {name: spec.name for name, spec in found.items() if spec} == {
        "cat": "read_file",
        "ls": "list_dir",
        "create_file": "write_file",
        "glob": "search_files",
        "ReadFile": "read_file",
    }
