"""Server-sent events, decoded from bytes as they come: in whatever pieces, a byte at a time if
it must be.

Only the framing is read here; what the data means is the business of `chunks` and its siblings.
The format is that of the WHATWG standard, with two things more: a comment is reported, so that a
caller can tell a server at work from one that is merely kept open, and so is an event which the
end of the stream cut off. Such an event is never delivered.
"""

from dataclasses import dataclass

from holdfast.core.events import Failure
from holdfast.models.base import ModelError

LARGEST = 16 * 1024 * 1024
"""Bytes of one event. A whole reply in one event is some hundred kilobytes at most; the bound is
there for a server that never ends its line."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    data: str
    name: str = ""
    """What the stream calls the event; empty where it says nothing, which means `message`."""
    id: str = ""
    """The last id the stream has given, with this event or before."""
    retry: int | None = None
    """The last wish of the stream how many milliseconds to wait before connecting again."""


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """A comment: the connection lives. Of the model it says nothing."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An event without the blank line that would close it: the stream broke off in it."""

    data: str
    """What there was of its data. A caller may know by it a last `[DONE]` without its line end."""


class TooLong(ModelError):
    """One event is larger than anything a model says."""

    def __init__(self, most: int) -> None:
        super().__init__(Failure.GARBLED, f"one event of the stream is larger than {most} bytes")


class Events:
    """The events in a stream of bytes. One decoder reads one stream, once."""

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._line: list[bytes] = []
        """The pieces of a line whose end has not come. They are joined once, when it has, so
        that the work stays in proportion to the bytes however small the pieces are."""
        self._line_size = 0
        self._event_size = 0
        self._data: list[bytes] = []
        self._name = self._id = ""
        self._retry: int | None = None
        self._begun = False
        self._after_cr = False

    def feed(self, data: bytes) -> list[Event | KeepAlive]:
        """The events and comments that `data` completes. Raises `TooLong`."""
        if not data:
            return []
        if self._after_cr and data[0] == 0x0A:  # the other half of a CR LF
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        found: list[Event | KeepAlive] = []
        if end:
            lines = (b"".join((*self._line, data[:end])) if self._line else data[:end]).splitlines()
            self._line.clear()
            self._line_size = 0
            data = data[end:]
            for line in lines:
                self._read(line, found)
        if data:
            self._line.append(data)
            self._line_size += len(data)
            self._check(self._line_size)
        return found

    def end(self) -> Unfinished | None:
        """What the end of the stream cut off, if it did."""
        rest = b"".join(self._line)
        if not self._begun:
            rest = rest.removeprefix(BOM)
        self._line.clear()
        self._line_size = 0
        if rest[:1] not in (b"", b":"):
            self._field(rest)
        unfinished = Unfinished(self._joined()) if self._event_size else None
        self._forget()
        return unfinished

    def _read(self, line: bytes, found: list[Event | KeepAlive]) -> None:
        self._check(len(line))
        if not self._begun:
            self._begun = True
            line = line.removeprefix(BOM)
        if not line:
            if self._data:
                found.append(Event(self._joined(), self._name, self._id, self._retry))
            self._forget()
        elif line[0] == 0x3A:
            found.append(KeepAlive(line[1:].decode("utf-8", "replace").strip()))
        else:
            self._field(line)

    def _field(self, line: bytes) -> None:
        self._event_size += len(line)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self._retry = int(value)

    def _joined(self) -> str:
        return b"\n".join(self._data).decode("utf-8", "replace")

    def _forget(self) -> None:
        self._data.clear()
        self._name, self._event_size = "", 0

    def _check(self, line_size: int) -> None:
        if self._event_size + line_size > self._largest:
            raise TooLong(self._largest)
