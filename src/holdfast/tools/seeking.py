"""Looking through a tree of files: by name, and for lines.

No symlink is followed. A hard pattern can keep a regular expression busy for hours, during which
nothing else in its process runs; so this module can also be run as a process of its own, which can
be ended (`search` does so). It therefore imports little.
"""

import json
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path

from holdfast.tools.barred import is_barred
from holdfast.tools.texts import count, is_binary, marked
from holdfast.tools.workspace import Held, shown, walked

SKIPPED = frozenset(
    ".git .hg .svn .venv venv node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache "
    ".tox".split()
)
"""Folders that hold what other programs put there. Searched only when named as the path."""
DEEPEST = 64
MOST_ENTRIES = 200_000
FILES_SHOWN = 200
LINES_SHOWN = 100
LARGEST = 8 << 20
"""Bytes of a file that is searched."""
LINE_SEARCHED = 4_000
"""Characters of a line that a regular expression is held against: two of its repeats make a
search quadratic."""
LINE_SHOWN = 240
SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to look for, and where."""

    root: str
    parts: tuple[str, ...]
    above: str
    """What stands before the names that are found."""
    only: str = ""
    """The one file to look into, where it is not a whole folder."""
    pattern: str = ""
    contains: str = ""
    barred: tuple[str, ...] = ()
    """Patterns of what the user's rules keep from the model."""
    literal: bool = True
    ignore_case: bool = False
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    """From the folder on in which the walk began."""
    folder: bool
    opener: Callable[[], int]
    """Opens it for reading, as long as the walk has not gone on."""


@dataclass(slots=True)
class Left:
    """What was left out, to be told."""

    skipped: set[str] = field(default_factory=set)
    binary: int = 0
    large: int = 0
    unreadable: int = 0
    barred: int = 0
    long: bool = False


def walk(folder: Held, skipped: frozenset[str], left: Left | None = None) -> Iterator[Entry]:
    """Everything below, the files of a folder before its folders, in the order of names."""
    return below(folder, "", skipped, left or Left(), 0)


def below(
    folder: Held, above: str, skipped: frozenset[str], left: Left, depth: int
) -> Iterator[Entry]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with folder.entries() as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
    except OSError:
        left.unreadable += 1
        return
    for name in sorted(files):
        yield Entry(above + name, False, partial(folder.open, name, os.O_RDONLY))
    for name in sorted(folders):
        if name in skipped:
            left.skipped.add(name)
            continue
        yield Entry(f"{above}{name}", True, partial(folder.open, name, os.O_RDONLY))
        if depth >= DEEPEST:
            left.unreadable += 1
            continue
        try:
            inner = folder.folder(name)
        except OSError:
            left.unreadable += 1
            continue
        with inner:
            yield from below(inner, f"{above}{name}/", skipped, left, depth + 1)


def seek(wanted: Wanted) -> Iterator[str]:
    """Lines for the model: what was found, then what was left out."""
    left = Left()
    until = time.monotonic() + wanted.seconds
    shown_most = LINES_SHOWN if wanted.contains else FILES_SHOWN
    matches = matcher(wanted.pattern)
    looked, found, stopped = 0, 0, ""
    with walked(Path(wanted.root), wanted.parts) as folder:
        for entry in single(folder, wanted.only) or walk(folder, SKIPPED, left):
            looked += 1
            if looked > MOST_ENTRIES or time.monotonic() > until:
                stopped = f"stopped after {looked} files and folders: give a narrower path"
                break
            if not matches(entry.name):
                continue
            if is_barred(wanted.above + entry.name, wanted.barred):
                left.barred += not entry.folder
                continue
            for line in shown_of(entry, wanted, left):
                found += 1
                if found > shown_most:
                    stopped = f"only the first {shown_most} are shown: narrow pattern or path"
                    break
                yield line
            if stopped:
                break
    if not found:
        yield "Nothing found."
    if notes := told(left, stopped):
        yield f"[{'; '.join(notes)}]"


def single(folder: Held, name: str) -> list[Entry]:
    return [Entry(name, False, partial(folder.open, name, os.O_RDONLY))] if name else []


def shown_of(entry: Entry, wanted: Wanted, left: Left) -> Iterator[str]:
    name = shown(wanted.above + entry.name)
    if not wanted.contains:
        yield f"{name}/" if entry.folder else name
    elif not entry.folder:
        for number, text in lines_with(entry, wanted, left):
            yield f"{name}:{number}: {text}"


def lines_with(entry: Entry, wanted: Wanted, left: Left) -> Iterator[tuple[int, str]]:
    content = content_of(entry, left)
    if content is None:
        return
    form = marked(content)
    text = content[len(form.mark) :].decode(form.encoding, "replace")
    if wanted.literal and not is_in(wanted.contains, text, ignore_case=wanted.ignore_case):
        return  # most files, and much faster than line by line
    expression = compiled(wanted.contains, wanted.literal, wanted.ignore_case)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not wanted.literal and len(line) > LINE_SEARCHED:
            left.long = True
            line = line[:LINE_SEARCHED]
        if match := expression.search(line):
            yield number, around(line, match.start())


def is_in(piece: str, text: str, *, ignore_case: bool) -> bool:
    return piece.lower() in text.lower() if ignore_case else piece in text


def content_of(entry: Entry, left: Left) -> bytes | None:
    try:
        fd = entry.opener()
    except OSError:
        left.unreadable += 1
        return None
    with os.fdopen(fd, "rb") as file:
        try:
            content = file.read(LARGEST + 1)
        except OSError:
            left.unreadable += 1
            return None
    if len(content) > LARGEST:
        left.large += 1
    elif is_binary(content):
        left.binary += 1
    else:
        return content
    return None


@lru_cache(maxsize=8)
def compiled(contains: str, literal: bool, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(
        re.escape(contains) if literal else contains, re.IGNORECASE if ignore_case else 0
    )


def around(line: str, at: int) -> str:
    """The line, or the part of it with the match."""
    if len(line) <= LINE_SHOWN:
        return line
    start = max(0, at - LINE_SHOWN // 4)
    part = line[start : start + LINE_SHOWN]
    return f"{'...' * (start > 0)}{part}{'...' * (start + LINE_SHOWN < len(line))}"


def told(left: Left, stopped: str) -> list[str]:
    notes = [stopped] if stopped else []
    if left.skipped:
        notes.append(f"not searched: {', '.join(sorted(left.skipped))}")
    if left.binary:
        notes.append(f"{count(left.binary, 'file')} not text")
    if left.large:
        notes.append(f"{count(left.large, 'file')} over {LARGEST >> 20} MB")
    if left.unreadable:
        notes.append(f"{left.unreadable} could not be opened")
    if left.barred:
        files = count(left.barred, "file")
        notes.append(f"{files} left out, which the user's rules forbid or ask about")
    if left.long:
        notes.append(f"of long lines only the first {LINE_SEARCHED} characters were searched")
    return notes


# --- patterns of names ----------------------------------------------------------------------


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits: `*.py` by its name anywhere, `src/**/*.py` by the whole path, and a
    word without a star by being part of its name."""
    pattern = pattern.replace("\\", "/").strip().removeprefix("./").rstrip("/")
    if pattern in ("", "*", "**", "**/*", "."):
        return lambda path: True
    if not set(pattern) & set("*?[{"):
        wanted = pattern.casefold()
        if "/" in pattern:
            return lambda path: f"/{wanted}" in f"/{path.casefold()}"
        return lambda path: wanted in path.rpartition("/")[2].casefold()
    choices = [tuple(one.split("/")) for one in alternatives(pattern.lstrip("/"))]
    return lambda path: any(fits(one, tuple(path.split("/"))) for one in choices)


def fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if len(pattern) == 1:
        return fnmatchcase(path[-1], pattern[0])
    # Which places of the path can have been reached, pattern by pattern: never exponential.
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached), len(path) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(path) and fnmatchcase(path[at], part)}
        if not reached:
            return False
    return len(path) in reached


def alternatives(pattern: str) -> list[str]:
    """`a.{py,md}` as `a.py` and `a.md`; at most 64 of them."""
    done: list[str] = []
    todo = [pattern]
    while todo and len(done) + len(todo) <= 64:
        one = todo.pop()
        braces = re.search(r"\{([^{}]*)\}", one)
        if braces is None:
            done.append(one)
            continue
        before, after = one[: braces.start()], one[braces.end() :]
        todo += [before + choice + after for choice in braces[1].split(",")]
    return done + todo


# --- as a process ---------------------------------------------------------------------------


def request(wanted: Wanted) -> bytes:
    return pickle.dumps(wanted)


def main() -> None:
    """A `Wanted` of our own process on the way in; on the way out a line, as JSON, for each one."""
    for line in seek(pickle.load(sys.stdin.buffer)):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
