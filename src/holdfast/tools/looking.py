"""What is in a file or a folder, as much of it as a model can take at once.

The text is given as it is, without line numbers: a model copies from it what it wants replaced.
No file is read into memory as a whole unless it is small.
"""

import codecs
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain, islice

from holdfast.tools.barred import is_barred
from holdfast.tools.base import Binary, Output, ToolError
from holdfast.tools.disk import Stamp, opened, pieces
from holdfast.tools.seeking import SKIPPED, walk
from holdfast.tools.texts import SNIFFED, count, decoded, image, is_binary, marked
from holdfast.tools.workspace import Held, Place, Workspace, folder_at, folder_of, shown

SCANNED = 1 << 28
"""Bytes of a file that are looked at to reach a line: what a disk gives in about a second."""
COUNTED = 1 << 26
"""And when the page is full, only to say how many lines there are."""
LONGEST_LINE = 100_000
"""Bytes of one line that are kept; more of it nobody reads."""
IMAGE_MOST = 8 << 20
WIDE_MOST = 16 << 20
"""Bytes of a UTF-16 file, which is decoded as a whole."""
LISTED = 200
"""Entries of a folder that are listed."""
LOOKED_AT = 50_000
"""Entries of a folder that are read at all."""
HIDDEN_NAMED = 5
ENDLESS = 1 << 60


@dataclass(slots=True)
class Page:
    """Lines from `offset` on, as they come in."""

    offset: int
    limit: int
    room: int
    lines: list[str] = field(default_factory=list)
    size: int = 0
    full: bool = False
    latin: bool = False

    def take(self, line: bytes, length: int) -> None:
        text = self.text(line, whole=length == len(line))
        if length > len(line):
            text += f"[... truncated: a line of {length} bytes or more]"
        if self.lines and self.size + len(text) > self.room:
            self.full = True
            return
        self.lines.append(text)
        self.size += len(text) + 1
        self.full = len(self.lines) >= self.limit

    def text(self, line: bytes, *, whole: bool) -> str:
        line = line.removesuffix(b"\r")
        try:
            return codecs.getincrementaldecoder("utf-8")().decode(line, final=whole)
        except UnicodeDecodeError:
            self.latin = True
            return line.decode("latin-1")


@dataclass(slots=True)
class Scan:
    """A file on its way past: which line we are in, and what of it was kept."""

    page: Page
    line: int = 1
    kept: bytearray = field(default_factory=bytearray)
    length: int = 0
    seen: int = 0

    def feed(self, piece: bytes) -> None:
        self.seen += len(piece)
        start = 0
        while not self.page.full and (end := piece.find(b"\n", start)) >= 0:
            self.part(piece[start:end])
            self.finish()
            start = end + 1
        if not self.page.full:
            self.part(piece[start:])
            return
        self.line += piece.count(b"\n", start)
        last = piece.rfind(b"\n", start) + 1
        self.length = len(piece) - last if last else self.length + len(piece) - start

    def part(self, part: bytes) -> None:
        self.length += len(part)
        if self.line >= self.page.offset:
            self.kept += part[: LONGEST_LINE - len(self.kept)]

    def finish(self) -> None:
        if self.line >= self.page.offset:
            self.page.take(bytes(self.kept), self.length)
        self.kept.clear()
        self.length = 0
        self.line += 1

    def give_up(self) -> None:
        """What was kept of the line we are in is shown all the same."""
        if self.kept and not self.page.full:
            self.finish()

    @property
    def lines(self) -> int:
        """At the end: what follows the last line end is a line only if it is something."""
        if self.length and not self.page.full:
            self.finish()
            return self.line - 1
        return self.line if self.length else self.line - 1


def read(place: Place, offset: int, limit: int | None, room: int) -> tuple[Output, Stamp]:
    """Lines from `offset` on, at most `limit` and about `room` characters; or an image."""
    with opened(place) as (fd, stamp):
        start = os.read(fd, SNIFFED)
        if media := image(start):
            return picture(place, media, start, fd), stamp
        if is_binary(start):
            raise ToolError(f"{place.name} is not text ({stamp.size} bytes); it cannot be shown.")
        notes = []
        source: Iterator[bytes] = chain((start.removeprefix(codecs.BOM_UTF8),), pieces(fd))
        if marked(start).encoding != "utf-8":
            notes.append(f"it is {marked(start).encoding}")
            source = iter((wide(place, start, fd),))
        page = Page(max(offset, 1), limit or ENDLESS, room)
        total = scanned(page, source)
    if page.latin:
        notes.append("read as Latin-1: it is not UTF-8")
    return Output(told(place, page, total, notes, stamp.size)), stamp


def scanned(page: Page, source: Iterator[bytes]) -> int | None:
    """How many lines there are, unless there are too many to count."""
    scan = Scan(page)
    for piece in source:
        scan.feed(piece)
        if scan.seen > (COUNTED if page.full else SCANNED):
            scan.give_up()
            return None
    return scan.lines


def told(place: Place, page: Page, total: int | None, notes: list[str], size: int) -> str:
    if total == 0:
        return f"[{place.name} is empty]"
    if not page.lines:
        raise out_of_reach(place, page, total, size)
    last = page.offset + len(page.lines) - 1
    if page.offset > 1 or last != total:
        many = total if total is not None else "more than were counted"
        notes.insert(0, f"lines {page.offset}-{last} of {many}")
        notes.append("this is the end" if last == total else f"offset={last + 1} reads on")
    text = "\n".join(page.lines)
    return f"{text}\n[{'; '.join(notes)}]" if notes else text


def out_of_reach(place: Place, page: Page, total: int | None, size: int) -> ToolError:
    if total is None:
        return ToolError(
            f"{place.name} ({measured(size)}) is too large to reach line {page.offset}. "
            "search_files with `contains` finds lines in smaller files; a command can cut it."
        )
    lines = count(total, "line")
    return ToolError(f"{place.name} has {lines}; offset {page.offset} is past its end.")


def wide(place: Place, start: bytes, fd: int) -> bytes:
    """UTF-16 as UTF-8."""
    return decoded(limited(place, start, fd, WIDE_MOST))[0].encode()


def picture(place: Place, media: str, start: bytes, fd: int) -> Output:
    content = limited(place, start, fd, IMAGE_MOST)
    text = f"[{place.name}: {media}, {measured(len(content))}]"
    return Output(text, (Binary(content, media, place.real.name),))


def limited(place: Place, start: bytes, fd: int, most: int) -> bytes:
    content = bytearray(start)
    for piece in pieces(fd):
        content += piece
        if len(content) > most:
            raise ToolError(f"{place.name} has more than {measured(most)}, too much to be shown.")
    return bytes(content)


# --- folders --------------------------------------------------------------------------------


def listing(place: Place, *, hidden: bool, barred: tuple[str, ...] = ()) -> str:
    """The entries of a folder, folders first, without those that a pattern bars."""
    above = "" if place.name == "." else f"{place.name.rstrip('/')}/"
    with folder_at(place) as folder:
        with folder.entries() as found:
            every = {entry.name: is_folder(entry) for entry in islice(found, LOOKED_AT)}
        kinds = {name: every[name] for name in every if not is_barred(above + name, barred)}
        wanted = sorted((not kinds[n], n) for n in kinds if hidden or not n.startswith("."))
        lines = [described(folder, name) for _, name in wanted[:LISTED]]
    if not every:
        return f"[{shown(place.name)} is an empty folder]"
    if len(wanted) > LISTED:
        more = "at least " if len(every) == LOOKED_AT else ""
        lines.append(f"[{LISTED} of {more}{len(wanted)}; search_files finds the others by name]")
    if left := sorted(kinds.keys() - {name for _, name in wanted}):
        first = ", ".join(shown(name) for name in left[:HIDDEN_NAMED])
        lines.append(f"[{len(left)} hidden: {first}{', ...' * (len(left) > HIDDEN_NAMED)}]")
    if count_barred := len(every) - len(kinds):
        lines.append(f"[{count_barred} left out, which the user's rules forbid or ask about]")
    return "\n".join(lines)


def is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def described(folder: Held, name: str) -> str:
    """`name/`, `name -> target`, or `name` with its size."""
    try:
        found = folder.stat(name)
        if stat.S_ISLNK(found.st_mode):
            return f"{shown(name)} -> {shown(folder.link(name))}"
    except OSError:
        return f"{shown(name)}  (gone)"
    if stat.S_ISDIR(found.st_mode):
        return f"{shown(name)}/"
    if not stat.S_ISREG(found.st_mode):
        return f"{shown(name)}  (not a file)"
    return f"{shown(name)}  {measured(found.st_size)}"


def measured(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


# --- what was meant -------------------------------------------------------------------------


def missing(workspace: Workspace, place: Place, written: str) -> ToolError:
    """There is no such file; perhaps one of these is meant."""
    close = dict.fromkeys([*beside(place), *elsewhere(workspace, written)])
    if not close:
        return ToolError(
            f"There is no {shown(place.name)}. list_dir and search_files show what there is."
        )
    return ToolError(f"There is no {shown(place.name)}. Did you mean: {', '.join(close)}?")


def beside(place: Place) -> list[str]:
    """Names like it in the same folder."""
    try:
        with folder_of(place) as (folder, name), folder.entries() as found:
            alike = {entry.name.casefold(): entry.name for entry in islice(found, LOOKED_AT)}
    except OSError:
        return []
    close = get_close_matches(name.casefold(), alike, n=3, cutoff=0.6)
    above = place.name.rpartition("/")[0]
    return [shown(f"{above}/{alike[one]}" if above else alike[one]) for one in close]


def elsewhere(workspace: Workspace, written: str) -> list[str]:
    """Files of the same name in the workspace. Only there: nobody was asked about other folders."""
    name = written.replace("\\", "/").rstrip("/").rpartition("/")[2]
    try:
        with folder_at(workspace.place(".")) as folder:
            near = [entry.name for entry in islice(walk(folder, SKIPPED), 5_000)]
    except OSError:
        return []
    return [shown(one) for one in near if one.rpartition("/")[2] == name][:3]
