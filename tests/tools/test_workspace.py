"""Confinement: where a written path leads, and that no symlink leads a write outside."""

import itertools
import os
import resource
import stat
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.tools.base import ToolError
from holdfast.tools.disk import opened, pieces, replaced
from holdfast.tools.workspace import HOLDS, Folder, Workspace, folder_at, shown

NAMES = ("a", "b", "c", "d")
REFUSED = (OSError, ToolError)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("secret")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("written", "name", "inside"),
    [
        ("a.txt", "a.txt", True),
        ("./sub/../a.txt", "a.txt", True),
        ("not/there/yet", "not/there/yet", True),
        (".", ".", True),
        ("{root}/a.txt", "a.txt", True),
        ("../work/a.txt", "a.txt", True),
        ("../out/secret", "{above}/out/secret", False),
        ("{above}/out/secret", "{above}/out/secret", False),
        ("sub/../../out/secret", "{above}/out/secret", False),
        ("not/there/../../../out/secret", "{above}/out/secret", False),
        ("../work2", "{above}/work2", False),
        ("/proc/self/root{above}/out/secret", "{above}/out/secret", False),
        ("/proc/self/root{root}/a.txt", "a.txt", True),
        ("to_out/secret", "{above}/out/secret", False),
        ("to_out/new/file", "{above}/out/new/file", False),
        ("to_sub/new", "sub/new", True),
        ("to_sub/../x", "x", True),
        ("dangling", "{above}/out/nothing", False),
        ("~name", "~name", True),
    ],
)
def test_a_path_is_what_all_its_symlinks_lead_to(
    root: Path, written: str, name: str, inside: bool
) -> None:
    (root / "to_out").symlink_to("../out")
    (root / "to_sub").symlink_to(root / "sub")
    (root / "dangling").symlink_to(root.parent / "out" / "nothing")

    place = Workspace(root).place(written.format(root=root, above=root.parent))

    assert (place.name, place.inside) == (name.format(above=root.parent), inside)


def test_the_home_folder_is_meant_by_a_tilde(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root.parent / "out"))

    assert Workspace(root).place("~/secret").real == root.parent / "out" / "secret"
    assert Workspace(root).place("~").real == root.parent / "out"


def test_a_workspace_that_is_a_symlink_is_the_folder_it_leads_to(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)

    here = Workspace(link)

    assert here.place("a.txt") == Workspace(root).place("a.txt")
    assert here.place(str(link / "a.txt")).name == "a.txt"
    assert here.place(str(link / "a.txt")).inside


@pytest.mark.parametrize("written", ["", "  ", "a\0b", "a\ud800b"])
def test_what_is_no_path_is_refused_in_words(root: Path, written: str) -> None:
    with pytest.raises(ToolError, match="path"):
        Workspace(root).place(written)


def test_a_path_that_is_too_long_is_refused_and_makes_no_folders(root: Path) -> None:
    with pytest.raises(ToolError, match="The path is too long: 10001 characters"):
        Workspace(root).place("x/" * 5_000 + "y")
    with pytest.raises(OSError, match="too long"):
        replaced(Workspace(root).place("x" * 300), b"x")
    assert [path.name for path in root.iterdir()] == ["sub"]


def test_a_loop_of_symlinks_is_an_error(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")

    with pytest.raises(OSError, match="[Ss]ymbolic|directory"):
        replaced(Workspace(root).place("one/x"), b"x")


def test_folders_beside_the_workspace_are_inside_and_may_be_only_for_reading(root: Path) -> None:
    (root / "data").symlink_to("../out")
    here = Workspace(root, (Folder(root.parent / "out"),))
    wide = Workspace(root, (Folder(root.parent / "out", writable=True),))

    secret = str(root.parent / "out" / "secret")
    assert here.place("data/secret").name == secret
    assert here.danger(here.admitted("data/secret", changes=False), changes=False) == ""
    assert here.danger(here.place(secret), changes=True) == (
        f"{secret} is in a folder that is only for reading"
    )
    assert wide.danger(wide.admitted("data/secret", changes=True), changes=True) == ""


@pytest.mark.parametrize(
    "written",
    [".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", ".holdfast/rules", "own/settings"],
)
def test_what_is_run_or_decides_later_is_dangerous_to_change_and_not_to_read(
    root: Path, written: str
) -> None:
    here = Workspace(root, guarded=(root / "own",))

    place = here.place(written)

    assert here.danger(place, changes=True) == f"{written} can change what is run or allowed later"
    assert here.danger(place, changes=False) == ""


def test_a_workspace_inside_a_guarded_folder_can_be_worked_in(root: Path) -> None:
    inner = root / ".git" / "worktree"
    inner.mkdir(parents=True)

    here = Workspace(inner)

    assert here.danger(here.place("a.txt"), changes=True) == ""


def test_danger_must_be_named_and_is_not_reached_through_a_symlink(root: Path) -> None:
    (root / ".git").mkdir()
    (root / "notes").symlink_to(".git/config")
    (root / "away").symlink_to("../out/secret")
    here = Workspace(root)

    for written in ("notes", "away"):
        assert here.danger(here.place(written), changes=True)
        with pytest.raises(ToolError, match="leads through a symlink to .* Give that path itself"):
            here.admitted(written, changes=True)
    assert here.admitted("notes", changes=False).name == ".git/config"
    assert here.admitted(".git/config", changes=True).name == ".git/config"
    assert here.admitted("../out/secret", changes=True).inside is False


def test_a_name_that_is_written_as_dangerous_is_so_also_where_it_leads_elsewhere(
    root: Path,
) -> None:
    (root / ".git").symlink_to("sub")
    here = Workspace(root)

    assert here.danger(here.place(".git/config"), changes=True)


@pytest.mark.skipif(not HOLDS, reason="this system cannot open names in a folder held open")
@pytest.mark.parametrize("swapped", ["sub", "sub/deep", "sub/deep/file"])
def test_a_symlink_swapped_in_after_the_look_leads_nowhere(root: Path, swapped: str) -> None:
    (root / "sub" / "deep").mkdir()
    (root / "sub" / "deep" / "file").write_text("mine")
    mirror = root.parent / "out"
    (mirror / "deep").mkdir()
    for target in ("file", "deep/file"):
        (mirror / target).write_text("theirs")
    place = Workspace(root).admitted("sub/deep/file", changes=True)

    (root / swapped).rename(root.parent / "old")
    (root / swapped).symlink_to(mirror / "deep" if swapped == "sub/deep" else mirror)
    if swapped.endswith("file"):
        (root / swapped).unlink()
        (root / swapped).symlink_to(mirror / "file")

    with pytest.raises(REFUSED), opened(place) as (fd, _):
        assert b"".join(pieces(fd)) == b"mine"
    with pytest.raises(REFUSED):
        replaced(place, b"written")
    assert (mirror / "file").read_text() == (mirror / "deep" / "file").read_text() == "theirs"


@pytest.mark.skipif(not HOLDS, reason="this system cannot open names in a folder held open")
def test_no_write_lands_outside_while_symlinks_are_swapped_all_the_time(root: Path) -> None:
    (root / "sub" / "file").write_text("mine")
    outside = root.parent / "out"
    stop = threading.Event()

    def swap() -> None:
        # In between, the writer may make the folder anew: then a step fails, and the next goes on.
        sub, old = root / "sub", (root / f"old{number}" for number in itertools.count())
        while not stop.is_set():
            for step in (
                lambda: sub.rename(next(old)),
                lambda: sub.symlink_to(outside),
                sub.unlink,
                sub.mkdir,
            ):
                with suppress(OSError):
                    step()

    swapper = threading.Thread(target=swap)
    swapper.start()
    here, done = Workspace(root), 0
    try:
        for number in range(400):
            try:
                replaced(here.admitted("sub/file", changes=True), b"%d" % number)
                done += 1
            except REFUSED:
                pass
    finally:
        stop.set()
        swapper.join()

    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": "secret"}
    assert done > 0


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str | None]]:
    """Paths with what is there: None for a folder, else a symlink to the text."""
    paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
    hop = st.sampled_from((*NAMES, "..", "../..", "../out", "{out}", "{root}", ".", "../out/x"))
    links = st.lists(hop, min_size=1, max_size=3).map("/".join)
    return draw(st.lists(st.tuples(paths, st.none() | links), max_size=8))


@settings(max_examples=100)
@example([("b", ".."), ("b/a", "a")], ["a"])
@given(trees(), st.lists(st.sampled_from((*NAMES, "..", ".")), min_size=1, max_size=5))
def test_in_any_tree_of_symlinks_an_admitted_write_stays_inside(
    tree: list[tuple[str, str | None]], written: list[str]
) -> None:
    with TemporaryDirectory() as made:
        above = Path(made).resolve()
        root, out = above / "work", above / "out"
        root.mkdir()
        out.mkdir()
        for path, target in tree:
            try:
                if target is None:
                    (root / path).mkdir(parents=True, exist_ok=True)
                else:
                    (root / path).symlink_to(target.format(out=out, root=root).replace("//", "/"))
            except OSError:
                pass  # a part of the path is a symlink into nothing, or it is there already
        here = Workspace(root)
        before = everything(above, but=root)

        place = here.place("/".join(written))
        if place.inside and not here.danger(place, changes=True):
            try:
                replaced(place, b"x")
                assert place.real.read_bytes() == b"x"
                assert place.real.resolve().is_relative_to(root)
            except OSError:
                pass

        assert everything(above, but=root) == before


def everything(above: Path, *, but: Path) -> dict[str, str]:
    return {
        str(path): what_is_at(path)
        for path in sorted(above.rglob("*"))
        if not path.is_relative_to(but)
    }


def what_is_at(path: Path) -> str:
    if path.is_symlink():  # one of the tree's, perhaps to itself
        return f"-> {path.readlink()}"
    return "folder" if path.is_dir() else path.read_text()


def test_a_write_does_not_go_through_a_hard_link(root: Path) -> None:
    os.link(root.parent / "out" / "secret", root / "mine")

    replaced(Workspace(root).place("mine"), b"changed")

    assert (root / "mine").read_bytes() == b"changed"
    assert (root.parent / "out" / "secret").read_text() == "secret"


def test_a_write_that_the_disk_refuses_leaves_the_old_file_and_nothing_else(root: Path) -> None:
    (root / "a.txt").write_text("old")
    place = Workspace(root).place("a.txt")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            replaced(place, b"x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert (root / "a.txt").read_text() == "old"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "sub"]


def test_nothing_but_a_file_is_read_or_replaced_and_a_pipe_does_not_hang(root: Path) -> None:
    os.mkfifo(root / "pipe")
    place = Workspace(root).place("pipe")

    with pytest.raises(ToolError, match="pipe is a device, pipe or socket, not a file"):
        with opened(place):
            pass
    with pytest.raises(ToolError, match="not a file"):
        replaced(place, b"x")
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)


def test_the_names_in_a_folder_are_shown_as_text_whatever_they_are(root: Path) -> None:
    for name in (b"plain \xc3\xa9", b"\xff\xfe", b"two\nlines", b"\xe2\x80\xaertl"):
        (root / os.fsdecode(name)).touch()

    with folder_at(Workspace(root).place(".")) as folder, folder.entries() as found:
        names = sorted(shown(entry.name) for entry in found)

    assert names == ["\\u202ertl", "\\xff\\xfe", "plain é", "sub", "two\\nlines"]
