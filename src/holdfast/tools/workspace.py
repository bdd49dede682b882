"""Where a path that a model wrote really leads, and folders that symlinks cannot lead out of.

A path is resolved once, with every symlink followed; what is opened afterwards is the resolved
path, name by name, and on the way no symlink is followed at all (`Held`). So a symlink that is
swapped in between leads to an error, never outside. A dangerous place must be named as what it
is: through a symlink it is refused, since the person may have been asked about another one.

Hard links and mounts cannot be told from files of the workspace. A write does not go through a
hard link all the same, because files are replaced, not changed. What is done with files is
`files`; whether a call may run is decided by the gateway.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.tools.base import ToolError

GUARDED = frozenset((".git", ".holdfast", ".ssh"))
"""What decides which commands run later, or what we may do: never changed without asking."""
LONGEST = 4_000
"""Characters of a path. Folder by folder a deeper one can be made, which no other program opens."""
FOR_A_FOLDER = (
    getattr(os, "O_PATH", 0)  # enough to go through, also where listing is not allowed
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
FOR_A_FILE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to must not hang us
    | getattr(os, "O_BINARY", 0)
)
HOLDS = os.open in os.supports_dir_fd
"""Whether this system can open a name in a folder that is held open. Windows cannot: there a
symlink that is swapped between the look and the opening is followed."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder beside the workspace that tools may use without asking."""

    path: Path
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a written path really is."""

    real: Path
    """Absolute, without a symlink in it. It need not exist."""
    root: Path
    """The folder it is opened beneath: the workspace, a folder beside it, or that of all files."""
    name: str
    """For people, rules and the model: relative to the workspace where it is inside."""
    inside: bool
    """In the workspace or a folder beside it."""
    writable: bool
    written: Path
    """What was written, as an absolute path, with its symlinks."""

    @property
    def explicit(self) -> bool:
        """No symlink made it another place than the one that was written."""
        return self.written == self.real

    @property
    def parts(self) -> tuple[str, ...]:
        return self.real.relative_to(self.root).parts


@dataclass(frozen=True, slots=True)
class Workspace:
    root: Path
    also: tuple[Folder, ...] = ()
    guarded: tuple[Path, ...] = ()
    """More files and folders that are never changed without asking."""

    def place(self, written: str) -> Place:
        """`ToolError` for what cannot be a path at all."""
        root = Path(os.path.realpath(self.root))
        absolute = Path(os.path.normpath(root / expanded(checked(written))))
        # Not from `absolute`: what `..` means after a symlink is known only when it is followed.
        real = Path(os.path.realpath(root / expanded(written)))
        for folder in (Folder(root, writable=True), *self.also):
            beneath = Path(os.path.realpath(folder.path))
            if real.is_relative_to(beneath):
                return Place(
                    real=real,
                    root=beneath,
                    name=(real.relative_to(root) if real.is_relative_to(root) else real).as_posix(),
                    inside=True,
                    writable=folder.writable,
                    written=absolute,
                )
        return Place(
            real=real,
            root=Path(real.anchor),
            name=real.as_posix(),
            inside=False,
            writable=False,
            written=absolute,
        )

    def danger(self, place: Place, *, changes: bool) -> str:
        """Why a person must be asked first; empty if nobody needs to be."""
        if not place.inside:
            return f"{place.name} is outside the workspace"
        if not changes:
            return ""
        if not place.writable:
            return f"{place.name} is in a folder that is only for reading"
        for path in (place.real, place.written):
            if self.is_guarded(path):
                return f"{place.name} can change what is run or allowed later"
        return ""

    def is_guarded(self, path: Path) -> bool:
        # Where file names have no case, `.GIT` is the same folder.
        names = {part.casefold() for part in self.below(path).parts}
        guarded = (os.path.realpath(one) for one in self.guarded)
        return bool(names & GUARDED) or any(path.is_relative_to(one) for one in guarded)

    def below(self, path: Path) -> Path:
        """`path` from the workspace on: a workspace that lies in a `.git` can be worked in."""
        root = os.path.realpath(self.root)
        return path.relative_to(root) if path.is_relative_to(root) else path

    def admitted(self, written: str, *, changes: bool) -> Place:
        """The place for a call that may run; `ToolError` if a symlink leads into danger."""
        place = self.place(written)
        if self.danger(place, changes=changes) and not place.explicit:
            raise ToolError(
                f"{written} leads through a symlink to {place.real.as_posix()}. "
                "Give that path itself if it is meant."
            )
        return place


def checked(written: str) -> str:
    if not written.strip():
        raise ToolError("The path is empty. Give the path of a file or folder.")
    if "\0" in written:
        raise ToolError(f"{shown(written)} is no path: it has a NUL character in it.")
    if len(written) > LONGEST:
        raise ToolError(f"The path is too long: {len(written)} characters.")
    try:
        os.fsencode(written)
    except UnicodeEncodeError:
        raise ToolError(f"{shown(written)} is no path: it has half a character in it.") from None
    return written


def expanded(written: str) -> str:
    """With `~` as the home folder. `~name` stays what it is: it may well be a file."""
    whole = written == "~" or written.startswith(("~/", "~" + os.sep))
    return os.path.expanduser(written) if whole else written  # noqa: PTH111


def shown(name: str) -> str:
    """A name on one line, as text that every server takes, also if its bytes are no text."""
    text = name.encode("utf-8", "surrogateescape" if is_escaped(name) else "replace")
    plain = text.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def is_escaped(name: str) -> bool:
    return all(not 0xD800 <= ord(c) <= 0xDFFF or 0xDC80 <= ord(c) <= 0xDCFF for c in name)


# --- opening --------------------------------------------------------------------------------


class Held:
    """A folder that is held open. A name in it is what it is, or an error: never a symlink."""

    def __init__(self, path: Path, fd: int | None) -> None:
        self.path = path
        self._fd = fd

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)

    def _at(self, name: str) -> str | Path:
        return name if self._fd is not None else self.path / name

    def folder(self, name: str) -> "Held":
        return held(self._at(name), self.path / name, self._fd)

    def make(self, name: str) -> None:
        """A folder, if there is none."""
        try:
            os.mkdir(self._at(name), dir_fd=self._fd)
        except FileExistsError:
            pass

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Its descriptor, which belongs to the caller."""
        return os.open(self._at(name), flags | FOR_A_FILE, mode, dir_fd=self._fd)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False)

    def link(self, name: str) -> str:
        """Where a symlink points, as it is written in it."""
        return os.readlink(self._at(name), dir_fd=self._fd)

    def replace(self, name: str, *, by: str) -> None:
        here = self._fd
        os.replace(self._at(by), self._at(name), src_dir_fd=here, dst_dir_fd=here)

    def remove(self, name: str) -> None:
        os.unlink(self._at(name), dir_fd=self._fd)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        if self._fd is None:
            with os.scandir(self.path) as found:
                yield found
            return
        with self._listable() as fd, os.scandir(fd) as found:
            yield found

    def sync(self) -> None:
        """Put the names on disk. Not every file system can; what is in the files is safe anyway."""
        with suppress(OSError):
            if self._fd is not None:
                with self._listable() as fd:
                    os.fsync(fd)

    @contextmanager
    def _listable(self) -> Iterator[int]:
        fd = os.open(".", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0), dir_fd=self._fd)
        try:
            yield fd
        finally:
            os.close(fd)


def held(path: str | Path, whole: Path, dir_fd: int | None = None) -> Held:
    """A folder, opened; `NotADirectoryError` for anything else, also for a symlink to one."""
    if HOLDS:
        return Held(whole, os.open(path, FOR_A_FOLDER, dir_fd=dir_fd))
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(whole))
    return Held(whole, None)


def folder_at(place: Place) -> Held:
    """The folder that a place is."""
    return walked(place.root, place.parts)


@contextmanager
def folder_of(place: Place, *, make: bool = False) -> Iterator[tuple[Held, str]]:
    """The folder a place is in, made where `make` is set, and the place's name there."""
    if not place.parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place.real))
    with walked(place.root, place.parts[:-1], make=make) as folder:
        yield folder, place.parts[-1]


def walked(root: Path, parts: tuple[str, ...], *, make: bool = False) -> Held:
    folder = held(root, root)
    for part in parts:
        with folder:  # until the next one is open
            if make:
                folder.make(part)
            folder = folder.folder(part)
    return folder
