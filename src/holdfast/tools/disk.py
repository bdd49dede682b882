"""Reading and replacing one file, whole or not at all, at a place that `workspace` resolved.

A file is replaced by another that is complete and on disk before it takes the name. So a crash, a
full disk or a cancelled call leaves the old file or the new one, and nobody ever sees half of it.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from holdfast.core.cut import middle_cut
from holdfast.tools.base import ToolError
from holdfast.tools.workspace import HOLDS, Held, Place, folder_of

PIECE = 1 << 20
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """How a file can be recognised as unchanged without reading it."""

    size: int
    changed: int
    inode: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Stamp":
        return cls(found.st_size, found.st_mtime_ns, found.st_ino, stat.S_IMODE(found.st_mode))


@contextmanager
def opened(place: Place) -> Iterator[tuple[int, Stamp]]:
    """A regular file, open for reading."""
    with folder_of(place) as (folder, name):
        fd = folder.open(name, os.O_RDONLY)
        try:
            found = os.fstat(fd)
            refuse_special(found.st_mode, place)
            yield fd, Stamp.of(found)
        finally:
            os.close(fd)


def refuse_special(mode: int, place: Place) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place.name)
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place.name)
    if not stat.S_ISREG(mode):
        raise ToolError(f"{place.name} is a device, pipe or socket, not a file.")


def pieces(fd: int) -> Iterator[bytes]:
    while piece := os.read(fd, PIECE):
        yield piece


def whole(place: Place, most: int) -> tuple[bytes, Stamp] | None:
    """What is in a file, and its stamp; None if there is no file. At most `most` bytes."""
    try:
        with opened(place) as (fd, stamp):
            content = bytearray()
            for piece in pieces(fd):
                content += piece
                if len(content) > most:
                    raise ToolError(
                        f"{place.name} has more than {most} bytes, too many for this tool."
                    )
            return bytes(content), stamp
    except FileNotFoundError:
        return None


def replaced(place: Place, content: bytes, mode: int | None = None) -> Stamp:
    """Write a file, with the folders it needs. A mode it has already is kept."""
    with folder_of(place, make=True) as (folder, name):
        old = found_in(folder, name)
        if old is not None:
            refuse_special(old.st_mode, place)
        # Short and hidden; with the file's own name in it, it could become too long.
        fresh = f".hf-{secrets.token_hex(8)}.tmp"
        try:
            stamp = filled(folder, fresh, content, old, mode)
            folder.replace(name, by=fresh)
        except BaseException:
            with suppress(OSError):
                folder.remove(fresh)
            raise
        folder.sync()
        return stamp


def found_in(folder: Held, name: str) -> os.stat_result | None:
    try:
        return folder.stat(name)
    except FileNotFoundError:
        return None


def refuse_locked(mode: int, place: Place) -> None:
    """A file that nobody may write could be replaced all the same; its owner meant otherwise."""
    if not mode & 0o222:
        raise ToolError(f"{place.name} is write-protected (mode {mode:o}).")


def filled(
    folder: Held, name: str, content: bytes, old: os.stat_result | None, mode: int | None
) -> Stamp:
    """A new file, complete and on disk."""
    fd = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        if old is not None and HOLDS:
            with suppress(OSError):  # only the administrator can keep another's file another's
                os.fchown(fd, old.st_uid, old.st_gid)
            mode = old.st_mode if mode is None else mode
        if mode is not None and HOLDS:
            os.fchmod(fd, stat.S_IMODE(mode))
        os.fsync(fd)
        return Stamp.of(os.fstat(fd))
    finally:
        os.close(fd)


def removed(place: Place) -> None:
    with folder_of(place) as (folder, name):
        refuse_special(folder.stat(name).st_mode, place)
        folder.remove(name)
        folder.sync()


def in_words(wrong: OSError, place: Place) -> ToolError:
    """The disk's objection as a sentence."""
    match wrong.errno:
        case errno.ENOENT:
            return ToolError(f"There is no {place.name}.")
        case errno.EISDIR:
            return ToolError(f"{place.name} is a folder. Use list_dir to see what is in it.")
        case errno.ENOTDIR | errno.ELOOP:
            return ToolError(
                f"{place.name} cannot be reached: a part of the path is a file, a symlink that "
                "leads nowhere, or was changed just now."
            )
        case errno.ENAMETOOLONG:
            return ToolError(f"A name in the path is too long: {middle_cut(place.name, 80)}.")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{place.name}: the system does not permit it.")
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"{place.name} was not written: the disk is full. It is as before.")
        case _:
            return ToolError(f"{place.name}: {wrong.strerror or wrong}.")
