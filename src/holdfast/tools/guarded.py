"""The files that decide what may run later, kept while a confined command runs, and put back after it.

The sandbox lets a command write in the whole workspace, and cannot leave a part of it out. So these
few are looked at before and after. What a program does with them in between is not held.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from holdfast.tools.repository import are_known

MOST = 500
"""Files that are kept; what is beyond is not."""
LARGEST = 100_000
"""Bytes of one of them."""


@dataclass(frozen=True, slots=True)
class Kept:
    content: bytes | None
    """None: a symlink."""
    mode: int
    target: str = ""


@dataclass(frozen=True, slots=True)
class Guarded:
    workspace: Path
    files: dict[str, Kept]
    whole: bool
    """Nothing was too large or too much to be kept; then what is new can be told."""

    @classmethod
    def of(cls, workspace: Path) -> Self:
        files: dict[str, Kept] = {}
        whole = True
        for name in islice(names(workspace), MOST + 1):
            kept = looked_at(workspace / name)
            if kept is None or len(files) >= MOST:
                whole = False
            else:
                files[name] = kept
        return cls(workspace, files, whole)

    def restored(self) -> tuple[str, ...]:
        """Put back what was changed; the names of what was."""
        now = set(islice(names(self.workspace), 4 * MOST))
        changed = [name for name, kept in self.files.items() if self.was_changed(name, kept)]
        new = sorted(now - self.files.keys()) if self.whole else []
        # What is new goes first: it may stand where something else belongs.
        return tuple(map(self.put_back, [*filter(self.is_unwanted, new), *changed]))

    def was_changed(self, name: str, kept: Kept) -> bool:
        if name.startswith(".git/") and not (self.workspace / ".git").is_dir():
            return False  # the whole repository is gone: that is another matter
        return looked_at(self.workspace / name) != kept and not self.is_harmless(name)

    def is_unwanted(self, name: str) -> bool:
        """A new file, save those that git makes with every repository."""
        return not name.endswith(".sample") and not self.is_harmless(name)

    def is_harmless(self, name: str) -> bool:
        """Git itself writes down remotes and branches; that names no program."""
        now = looked_at(self.workspace / name) if name == ".git/config" else None
        if now is None or now.content is None:
            return False
        return are_known(now.content.decode(errors="replace"))

    def put_back(self, name: str) -> str:
        """Its name, and whether that failed."""
        place, kept = self.workspace / name, self.files.get(name)
        try:
            self.make_way(Path(name))
            if kept is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
            if kept is not None and kept.content is None:
                place.symlink_to(kept.target)
            elif kept is not None:
                place.write_bytes(kept.content or b"")
                place.chmod(kept.mode)
        except OSError as wrong:
            return f"{name} (which could not be put back: {wrong.strerror})"
        return name

    def make_way(self, name: Path) -> None:
        """Take away what stands there now, and links and files where its folders were."""
        for depth in range(1, len(name.parts) + 1):
            step = self.workspace.joinpath(*name.parts[:depth])
            is_last = depth == len(name.parts)
            if step.is_symlink() or (step.exists() and (is_last or not step.is_dir())):
                shutil.rmtree(step) if step.is_dir() and not step.is_symlink() else step.unlink()


def names(workspace: Path) -> Iterator[str]:
    """Those that are there, from the workspace on. Symlinked folders are not gone into."""
    for name in (".git/config", ".git/config.worktree", ".git/info/attributes"):
        if is_there(workspace, name):
            yield name
    for folder in (".git/hooks", ".holdfast"):
        if not is_there(workspace, folder):
            continue
        if not leads_straight(workspace, workspace / folder):
            yield folder
            continue
        for where, folders, files in os.walk(workspace / folder):
            links = [one for one in folders if (Path(where) / one).is_symlink()]
            for file in (*files, *links):
                yield (Path(where) / file).relative_to(workspace).as_posix()


def is_there(workspace: Path, name: str) -> bool:
    place = workspace / name
    return leads_straight(workspace, place.parent) and os.path.lexists(place)


def leads_straight(workspace: Path, folder: Path) -> bool:
    """It is a folder, and no symlink is on the way to it."""
    return folder.is_dir() and folder.resolve() == workspace.resolve() / folder.relative_to(
        workspace
    )


def looked_at(place: Path) -> Kept | None:
    """None: it is not there, or cannot be kept."""
    try:
        state = place.lstat()
        if stat.S_ISLNK(state.st_mode):
            return Kept(None, 0, str(place.readlink()))
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            return None
        return Kept(place.read_bytes(), stat.S_IMODE(state.st_mode))
    except OSError:
        return None
