"""HTTP/1.1 by hand, on plain sockets: a request is read, and an answer is written step by step.

No framework, because a framework would not let us misbehave: here every write is one `send`, and
a connection can be left hanging, closed in the middle of a chunk, or reset. What is written is
decided elsewhere; this file only knows bytes.
"""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from http import HTTPStatus
from typing import TypeAlias

from anyio import (
    CancelScope,
    create_task_group,
    sleep,
    sleep_forever,
    wait_readable,
    wait_writable,
)
from anyio.lowlevel import checkpoint

LARGEST_HEAD = 64 * 1024
LARGEST_BODY = 64 * 1024 * 1024
"""Bytes of one request. Both are far above anything a client means to send."""
RST = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time at all: closing then sends RST and not FIN."""


class BadRequest(Exception):
    """What came is not HTTP as we know it."""


class HungUp(Exception):
    """The client closed the connection before it had its answer."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Without what follows a question mark."""
    headers: Mapping[str, str]
    """Their names in lower case."""
    body: bytes = b""
    version: str = "HTTP/1.1"

    @property
    def keeps_alive(self) -> bool:
        wish = self.headers.get("connection", "").lower()
        return wish == "keep-alive" if self.version == "HTTP/1.0" else wish != "close"


# --- an answer, as the steps in which it is written --------------------------------------------


class Do(Enum):
    """What a server can do in the middle of an answer, other than go on."""

    STALL = auto()
    """Write nothing more, and keep the connection open."""
    CLOSE = auto()
    """Close the connection properly, with a FIN."""
    RESET = auto()
    """Throw the connection away, with a RST."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Write this for ever."""

    piece: bytes
    pause: float
    """Seconds between two of them."""


Step: TypeAlias = bytes | Do | Repeat


class Framing(Enum):
    """How a client knows where the body ends."""

    LENGTH = auto()
    CHUNKED = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Answer:
    """Each piece of bytes is one write; of a chunked body, one chunk."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    framing: Framing = Framing.LENGTH
    promised: int | None = None
    """The Content-Length to claim; None: that of the pieces."""
    has_head: bool = True
    """Without it there is no status and there are no headers: only the steps are done."""
    about: str = ""
    """What it is, in a few words for people."""
    resets_next: bool = False
    """The next request on this connection is met with a RST."""

    @property
    def pieces(self) -> tuple[bytes, ...]:
        return tuple(step for step in self.steps if isinstance(step, bytes))

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def told(self) -> str:
        """What was answered, in a line for people."""
        text = b"".join(self.pieces)[:120].decode("utf-8", "replace")
        return f"{self.status} {self.about or ' '.join(text.split())}".strip()

    def head(self, request: Request) -> bytes:
        known = {status.value: status.phrase for status in HTTPStatus}
        headers = dict(self.headers)
        match self.framing:
            case Framing.LENGTH:
                size = self.size if self.promised is None else self.promised
                headers["Content-Length"] = str(size)
            case Framing.CHUNKED:
                headers["Transfer-Encoding"] = "chunked"
            case Framing.CLOSE:
                pass
        if self.framing is Framing.CLOSE or not request.keeps_alive:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {self.status} {known.get(self.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1", "replace")


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


LAST_CHUNK = b"0\r\n\r\n"


# --- a connection --------------------------------------------------------------------------------


class Connection:
    """One client. Reads and writes exactly what it is told, and knows when the client left."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._unread = bytearray()

    async def request(self) -> Request | None:
        """The next request; None if the client has no more of them. May raise `BadRequest`."""
        while not self._unread:
            if not await self._receive():
                return None
        try:
            return await self._read()
        except HungUp:
            return None

    async def write(self, answer: Answer, request: Request) -> bool:
        """Whether the connection can be used again. Raises `HungUp` if the client left before
        the last step was done."""
        if answer.framing is Framing.CHUNKED and request.version == "HTTP/1.0":
            answer = replace(answer, framing=Framing.CLOSE)
        has_left = is_over = False
        last: Do | None = None

        async def watch(writing: CancelScope) -> None:
            nonlocal has_left
            if await self._has_left() and not is_over:
                has_left = True
                writing.cancel()

        async with create_task_group() as group:
            group.start_soon(watch, group.cancel_scope)
            try:
                last = await self._steps(answer, request)
            except OSError:
                has_left = True
            is_over = True
            group.cancel_scope.cancel()
        if has_left:
            raise HungUp
        # Only now, when nobody waits for the socket any more, may it be closed.
        if last is Do.RESET:
            self.reset()
        elif last is Do.CLOSE:
            self.close()
        return last is None and request.keeps_alive and answer.framing is not Framing.CLOSE

    async def reset_at_next_request(self) -> None:
        if await self._receive():
            self.reset()

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    # --- writing

    async def _steps(self, answer: Answer, request: Request) -> Do | None:
        """Returns what is to be done with the connection after the last of them."""
        is_chunked = answer.framing is Framing.CHUNKED
        if answer.has_head:
            await self._send(answer.head(request))
        for place, step in enumerate(answer.steps):
            match step:
                case bytes():
                    piece = chunk(step) if is_chunked and step else step
                    if is_chunked and place == len(answer.steps) - 1:
                        # In one write with the last piece: a client that has read the last event
                        # and closes at once has not hung up on us.
                        piece += LAST_CHUNK
                    await self._send(piece)
                case Repeat(piece, pause):
                    while True:
                        await self._send(chunk(piece) if is_chunked else piece)
                        await sleep(pause)
                case Do.STALL:
                    await sleep_forever()
                case Do.CLOSE | Do.RESET:
                    return step
        if is_chunked and not answer.steps:
            await self._send(LAST_CHUNK)
        return None

    async def _send(self, data: bytes) -> None:
        await checkpoint()  # the client may have left, and others wait for their turn
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                await wait_writable(self._socket)

    async def _has_left(self) -> bool:
        """Returns when the client closes; or when it sends more, after which nobody can tell."""
        while True:
            await wait_readable(self._socket)
            try:
                return not self._socket.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            except OSError:
                return True

    # --- reading

    async def _receive(self) -> bool:
        while True:
            try:
                data = self._socket.recv(65_536)
            except BlockingIOError:
                await wait_readable(self._socket)
                continue
            except OSError:
                return False
            self._unread += data
            return bool(data)

    async def _read(self) -> Request:
        method, target, version = await self._request_line()
        headers: dict[str, str] = {}
        while line := await self._line():
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                raise BadRequest(f"not a header: {line!r}")
            headers[name.lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            await self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            body = await self._chunks()
        else:
            body = await self._bytes(as_size(headers.get("content-length", "0"), base=10))
        return Request(method, target.partition("?")[0], headers, body, version)

    async def _request_line(self) -> tuple[str, str, str]:
        line = await self._line()
        parts = line.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise BadRequest(f"not the first line of a request: {line[:100]!r}")
        return parts[0], parts[1], parts[2]

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := as_size((await self._line()).partition(";")[0].strip(), base=16):
            body += await self._bytes(size)
            if await self._line():
                raise BadRequest("a chunk is longer than it says")
            if len(body) > LARGEST_BODY:
                raise BadRequest(f"a body of more than {LARGEST_BODY} bytes")
        while await self._line():
            pass
        return bytes(body)

    async def _line(self) -> str:
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > LARGEST_HEAD:
                raise BadRequest(f"a line of more than {LARGEST_HEAD} bytes")
            if not await self._receive():
                raise HungUp
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line.removesuffix(b"\r").decode("latin-1")

    async def _bytes(self, size: int) -> bytes:
        while len(self._unread) < size:
            if not await self._receive():
                raise HungUp
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data


def as_size(text: str, *, base: int) -> int:
    try:
        size = int(text, base)
    except ValueError:
        raise BadRequest(f"not a size: {text[:40]!r}") from None
    if not 0 <= size <= LARGEST_BODY:
        raise BadRequest(f"a body of {text[:40]} bytes")
    return size
