"""The files that decide what may run later, kept while a confined command runs, and put back after it.

The sandbox lets a command write in the whole workspace, and cannot leave a part of it out. So these
few are looked at before and after. What a program does with them in between is not held.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast.tools.repository import are_known

MOST = 500
"""Files that are kept; what is beyond is not."""
LARGEST = 1_000_000


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
    had_git: bool

    @classmethod
    def of(cls, workspace: Path) -> Self:
        files: dict[str, Kept] = {}
        whole = True
        for name in names(workspace):
            kept = looked_at(workspace / name)
            if kept is None or len(files) >= MOST:
                whole = False
            else:
                files[name] = kept
        return cls(workspace, files, whole, (workspace / ".git").is_dir())

    def restored(self) -> tuple[str, ...]:
        """Put back what was changed; the names of what was."""
        now = set(names(self.workspace))
        changed = [name for name, kept in self.files.items() if self.was_changed(name, kept)]
        if self.whole:
            changed += [name for name in sorted(now - self.files.keys()) if self.is_unwanted(name)]
        return tuple(name for name in changed if self.put_back(name))

    def was_changed(self, name: str, kept: Kept) -> bool:
        if name.startswith(".git/") and not (self.workspace / ".git").is_dir():
            return False  # the whole repository is gone: that is another matter
        now = looked_at(self.workspace / name)
        if now == kept:
            return False
        # Git itself writes down remotes and branches; that names no program.
        harmless = name == ".git/config" and now is not None and now.content is not None
        return not (harmless and are_known((now.content or b"").decode(errors="replace")))

    def is_unwanted(self, name: str) -> bool:
        """A new file: the settings of a new repository are its own affair if they are harmless."""
        if name.endswith(".sample"):
            return False
        kept = looked_at(self.workspace / name)
        if name == ".git/config" and kept is not None and kept.content is not None:
            return not are_known(kept.content.decode(errors="replace"))
        return True

    def put_back(self, name: str) -> bool:
        place, kept = self.workspace / name, self.files.get(name)
        if not leads_straight(self.workspace, place.parent):
            with suppress(OSError):
                first = self.workspace / Path(name).parts[0]
                (first if first.is_symlink() else place.parent).unlink()
        try:
            if place.is_symlink() or place.exists():
                place.unlink()
            if kept is None:
                return True
            place.parent.mkdir(parents=True, exist_ok=True)
            if kept.content is None:
                place.symlink_to(kept.target)
            else:
                place.write_bytes(kept.content)
                place.chmod(kept.mode)
        except OSError:
            return False
        return True


def names(workspace: Path) -> Iterator[str]:
    """Those that are there, from the workspace on. Symlinked folders are not gone into."""
    for name in (".git/config", ".git/config.worktree", ".git/info/attributes"):
        if leads_straight(workspace, (workspace / name).parent) and os.path.lexists(
            workspace / name
        ):
            yield name
    for folder in (".git/hooks", ".holdfast"):
        root = workspace / folder
        if not leads_straight(workspace, root):
            if root.is_symlink():
                yield folder
            continue
        for where, _, files in os.walk(root):
            for file in files:
                yield (Path(where) / file).relative_to(workspace).as_posix()


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
