"""Messages as the bytes of a request, each of them encoded once.

A request holds the whole window, and the next one holds it again with a little more at its end.
Its parts are shared (`core.effects.Request`), so what was encoded is found again by identity: a
round costs what it adds, not what it carries. What a message looks like is each client's own
business; here is only how messages are put together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import TypeAlias

from holdfast.core.effects import Request
from holdfast.core.history import Entry
from holdfast.core.jsontext import dumped
from holdfast.core.messages import Message, clean
from holdfast.core.tools import ToolSpec

MOST_KEPT = 64 * 1024 * 1024
"""Bytes of encoded messages that one client keeps: some hundred sessions with full windows."""
AROUND = 200
"""Bytes of memory that a message takes beside its own."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands around a message. Neighbours of the same shape become one message, since many
    chat templates refuse two messages of one role in a row."""

    open: bytes
    between: bytes
    close: bytes


WHOLE = Shape(b"", b",", b"")
"""A message that is written whole, and never joined with its neighbour."""

Encoded: TypeAlias = tuple[Shape, bytes]
"""A message without what stands around it."""
Encode: TypeAlias = Callable[[Message], Encoded]


def shaped(shape: Shape, inner: str) -> Encoded:
    return shape, clean(inner).encode()


def in_string(text: str) -> str:
    """`text` as it stands between the quotes of a JSON string."""
    return dumped(text)[1:-1]


class Series:
    """Messages one after the other, in pieces: a large window is copied once, into the request."""

    __slots__ = ("_last", "first", "pieces", "size")

    def __init__(self) -> None:
        self.first = self._last = WHOLE
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, shape: Shape, inner: bytes) -> None:
        if not self.pieces:
            self.first = shape
        else:
            self.pieces.append(self._to(shape))
        self.pieces.append(inner)
        self._last = shape
        self.size += len(inner) + AROUND

    def extend(self, other: "Series") -> None:
        if not other.pieces:
            return
        if not self.pieces:
            self.first = other.first
        else:
            self.pieces.append(self._to(other.first))
        self.pieces += other.pieces
        self._last = other._last
        self.size += other.size

    def join(self) -> None:
        """Make one piece of all, where nothing will be added any more."""
        self.pieces = [b"".join(self.pieces)]

    def _to(self, shape: Shape) -> bytes:
        """What stands between the last message and one of this shape."""
        last = self._last
        return shape.between if shape is last else last.close + b"," + shape.open

    def whole(self) -> list[bytes]:
        return [self.first.open, *self.pieces, self._last.close] if self.pieces else []


class Encoder:
    """Encodes the messages of requests, and remembers how."""

    def __init__(self, encode: Encode, most_kept: int = MOST_KEPT) -> None:
        self._encode = encode
        self._most = most_kept
        self._size = 0
        self._kept: dict[int, tuple[tuple[Entry, ...], Series]] = {}
        """By the identity of a series of entries or, while it still grows, of the first of them.
        They are held here, so no other object can take their place. The least lately used stands
        first."""

    def forget(self) -> None:
        """What was encoded can be encoded again."""
        self._kept.clear()
        self._size = 0

    def messages(self, request: Request, *first: Encoded) -> list[bytes]:
        """All messages of the request, separated by commas; `first` stands before them."""
        every = Series()
        for shape, inner in first:
            every.add(shape, inner)
        for entries in (request.head, *request.body.blocks):
            if entries:
                every.extend(self._finished(entries))
        if request.body.tail:
            every.extend(self._growing(request.body.tail))
        for note in request.tail:
            every.add(*self._encode(note))
        return every.whole()

    def _finished(self, entries: tuple[Entry, ...]) -> Series:
        known = self._kept.pop(id(entries), None)
        if known is None:
            series = self._grown(entries)
            series.join()
            self._size += series.size
            known = entries, series
        return self._keep(id(entries), known)

    def _growing(self, entries: tuple[Entry, ...]) -> Series:
        series = self._grown(entries)
        self._size += series.size
        return self._keep(id(entries[0]), (entries, series))

    def _grown(self, entries: tuple[Entry, ...]) -> Series:
        """A series that goes on where the one ended that began with the same entries."""
        before, series = self._kept.pop(id(entries[0]), ((), Series()))
        self._size -= series.size
        if len(before) > len(entries) or not all(map(is_, before, entries)):
            before, series = (), Series()
        for entry in entries[len(before) :]:
            series.add(*self._encode(entry.message))
        return series

    def _keep(self, key: int, known: tuple[tuple[Entry, ...], Series]) -> Series:
        self._kept[key] = known
        while self._size > self._most:
            oldest = next(iter(self._kept))
            self._size -= self._kept.pop(oldest)[1].size
        return known[1]


def outer_name(name: str) -> str:
    """A tool's name as every server takes it. `core.tools.resolve` reads both as one."""
    return name.replace(".", "__")


def parameters(tool: ToolSpec) -> str:
    """The schema of a tool's arguments; one that says nothing is refused by some servers."""
    is_empty = tool.parameters in ("", "{}")
    return '{"type":"object","properties":{}}' if is_empty else tool.parameters
