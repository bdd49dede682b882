"""Taking back what tools did to files."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.events import FileKept
from holdfast.tools.base import Tool
from holdfast.tools.files import file_tools
from holdfast.tools.undo import Fate, Restored, Step, plan_restore, restore
from holdfast.tools.workspace import Workspace
from tests.tools.context import OneCall, text

NAMES = ("a.txt", "b.txt", "sub/c.txt")


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in file_tools()}


@pytest.fixture
def here(tmp_path: Path) -> OneCall:
    (tmp_path / "work").mkdir()
    return OneCall(tmp_path / "work")


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_text(), path.stat().st_mode & 0o7777)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


async def take_back(
    here: OneCall, *, force: bool = False, done: float | None = None
) -> dict[str, Fate]:
    """All that was kept so far; as if each call had ended now, or at `done`."""
    ends = {one.call_id: time.time() if done is None else done for one in here.kept}
    steps = plan_restore(tuple(here.kept), ends)
    fates = await restore(steps, Workspace(here.workspace), here.blob, keep=here.keep, force=force)
    return {one.path.name: one.fate for one in fates}


def test_the_oldest_copy_of_a_file_counts_and_the_end_of_the_newest_change() -> None:
    kept = (
        FileKept("c1", "/w/a", "b1", 1.0, 0o644),
        FileKept("c2", "/w/b", "", 2.0),
        FileKept("c3", "/w/a", "b2", 3.0, 0o600),
    )

    assert plan_restore(kept, {"c1": 1.5, "c3": 3.5}) == (
        Step(Path("/w/a"), "b1", 0o644, 3.5),
        Step(Path("/w/b"), "", 0, None),
    )
    assert plan_restore(()) == ()


async def test_files_become_what_they_were_and_new_ones_go(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.sh").write_text("one\n")
    (here.workspace / "a.sh").chmod(0o750)
    (here.workspace / "other").write_text("untouched")
    before = contents(here.workspace)
    await text(tools["edit_file"], here, path="a.sh", old="one", new="two")
    await text(tools["write_file"], here, path="a.sh", content="three")
    await text(tools["write_file"], here, path="new.txt", content="new")
    (here.workspace / "a.sh").chmod(0o600)

    assert await take_back(here) == {"a.sh": Fate.RESTORED, "new.txt": Fate.REMOVED}
    assert contents(here.workspace) == before
    assert await take_back(here) == {"a.sh": Fate.SAME, "new.txt": Fate.SAME}


async def test_taking_back_can_be_taken_back(tools: dict[str, Tool], here: OneCall) -> None:
    (here.workspace / "a.txt").write_text("one")
    await text(tools["write_file"], here, path="a.txt", content="two")
    many = len(here.kept)
    await take_back(here)

    del here.kept[:many]
    await take_back(here)

    assert (here.workspace / "a.txt").read_text() == "two"


async def test_what_somebody_else_changed_since_is_left_alone_unless_forced(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "a.txt").write_text("one")
    await text(tools["write_file"], here, path="a.txt", content="two")
    done = time.time()
    (here.workspace / "a.txt").write_text("somebody else's")
    stamp = int((done + 5) * 1e9)
    os.utime(here.workspace / "a.txt", ns=(stamp, stamp))

    assert await take_back(here, done=done) == {"a.txt": Fate.CHANGED}
    assert (here.workspace / "a.txt").read_text() == "somebody else's"
    assert await take_back(here, done=done, force=True) == {"a.txt": Fate.RESTORED}
    assert (here.workspace / "a.txt").read_text() == "one"
    assert b"somebody else's" in here.blobs.values()


async def test_a_change_whose_end_is_not_known_is_left_to_the_person(
    tools: dict[str, Tool], here: OneCall
) -> None:
    await text(tools["write_file"], here, path="a.txt", content="two")
    steps = plan_restore(tuple(here.kept))

    fates = await restore(steps, Workspace(here.workspace), here.blob, keep=here.keep)

    assert fates == (Restored(here.workspace / "a.txt", Fate.CHANGED),)


async def test_a_file_that_is_gone_comes_back_with_its_folder(
    tools: dict[str, Tool], here: OneCall
) -> None:
    (here.workspace / "sub").mkdir()
    (here.workspace / "sub" / "a.txt").write_text("one")
    await text(tools["write_file"], here, path="sub/a.txt", content="two")
    (here.workspace / "sub" / "a.txt").unlink()
    (here.workspace / "sub").rmdir()

    assert await take_back(here) == {"a.txt": Fate.RESTORED}
    assert (here.workspace / "sub" / "a.txt").read_text() == "one"


async def test_nothing_is_restored_through_a_symlink_or_outside(
    tools: dict[str, Tool], here: OneCall
) -> None:
    up = here.workspace.parent
    (here.workspace / "sub").mkdir()
    (here.workspace / "sub" / "a.txt").write_text("one")
    (up / "beside.txt").write_text("one")
    await text(tools["write_file"], here, path="sub/a.txt", content="two")
    await text(tools["write_file"], here, path="../beside.txt", content="two")
    (here.workspace / "sub").rename(up / "moved")
    (here.workspace / "sub").symlink_to("../moved")

    for force in (False, True):
        assert await take_back(here, force=force) == {
            "a.txt": Fate.FAILED,
            "beside.txt": Fate.RESTORED if force else Fate.OUTSIDE,
        }
    assert (up / "moved" / "a.txt").read_text() == "two"
    assert (up / "beside.txt").read_text() == "one"


async def test_one_that_cannot_be_restored_does_not_keep_the_others(
    tools: dict[str, Tool], here: OneCall
) -> None:
    for name in ("a", "b", "c"):
        (here.workspace / name).write_text("one")
        await text(tools["write_file"], here, path=name, content="two")
    del here.blobs["b1"]
    (here.workspace / "b").unlink()
    (here.workspace / "b").mkdir()

    assert await take_back(here) == {"a": Fate.FAILED, "b": Fate.FAILED, "c": Fate.RESTORED}


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(NAMES), st.text("xy\n", min_size=1, max_size=6)),
    st.lists(st.tuples(st.sampled_from(NAMES), st.text("xyz\n", max_size=6)), max_size=8),
)
async def test_whatever_was_written_all_of_it_can_be_taken_back(
    tmp_path_factory: pytest.TempPathFactory,
    at_first: dict[str, str],
    writes: list[tuple[str, str]],
) -> None:
    here = OneCall(tmp_path_factory.mktemp("work"))
    for name, content in at_first.items():
        (here.workspace / name).parent.mkdir(exist_ok=True)
        (here.workspace / name).write_text(content)
    before = contents(here.workspace)
    tools = {tool.name: tool for tool in file_tools()}

    for name, content in writes:
        await text(tools["write_file"], here, path=name, content=content)
    await take_back(here)

    assert contents(here.workspace) == before
