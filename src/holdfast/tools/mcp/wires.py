"""The wires to a server: a process with pipes, or HTTP, by way of the official SDK.

Here is what the SDK leaves out: noticing that the wire was cut, keeping the end of what a process
writes to stderr, and the status with which an HTTP server refused. What is said over a wire is
left to `link`.
"""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

from holdfast.tools.mcp.config import Server, Wire

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

STDERR = 2_000
"""Characters of stderr that are kept: its end, where the reason stands."""
LAST_WORDS = 0.5
"""Seconds we wait for the rest of stderr when a process has gone: a child of it may hold it."""
MAKERS = {
    "npx": "install node",
    "node": "install node",
    "npm": "install node",
    "bunx": "install bun",
    "uvx": "install uv",
    "uv": "install uv",
    "python": "install Python",
    "docker": "install Docker",
    "deno": "install deno",
}


class CannotStart(Exception):
    """A server that cannot be started as it is configured, in a sentence with the way out."""


class Signs:
    """What is seen of a server beside its messages."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        """Nothing more will come from it."""
        self.stderr = ""
        self.refusal = ""
        """With which status an HTTP server last refused a request; empty if it did not."""
        self.there = False
        """Somebody is at the other end, whatever they say."""
        self.babbled = False
        """It wrote something to stdout that is no message."""

    def wrote(self, text: str) -> None:
        self.stderr = (self.stderr + text)[-STDERR:]


@asynccontextmanager
async def connected(
    server: Server, env: Mapping[str, str], workspace: Path, signs: Signs
) -> AsyncIterator["TransportStreams"]:
    """The two streams of messages; `signs.ended` is set when the one that comes in has ended."""
    match server.wire:
        case Wire.STDIO:
            wire = process(server, env, workspace, signs)
        case Wire.HTTP:
            wire = http(server, signs)
        case Wire.SSE:
            wire = sse(server, signs)
    async with wire as (read, write):
        yield Watched(read, signs.ended), write


# --- a process ------------------------------------------------------------------------------


@asynccontextmanager
async def process(
    server: Server, env: Mapping[str, str], workspace: Path, signs: Signs
) -> AsyncIterator["TransportStreams"]:
    from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS, StdioServerParameters, stdio_client

    inherited = {name: env[name] for name in DEFAULT_INHERITED_ENV_VARS if name in env}
    whole = {**inherited, **server.env}
    cwd = folder(server, workspace)
    parameters = StdioServerParameters(
        command=found(server, whole.get("PATH", os.defpath), cwd),
        args=list(server.args),
        env=whole,
        cwd=cwd,
        # One letter that is not UTF-8 must not end the connection.
        encoding_error_handler="replace",
    )
    reader, writer = os.pipe()
    async with AsyncExitStack() as stack:
        stack.callback(os.close, reader)
        with os.fdopen(writer, "w") as stderr:  # ours is closed at once: so we see it end
            try:
                started = await stack.enter_async_context(stdio_client(parameters, errlog=stderr))
            except OSError as wrong:
                raise CannotStart(
                    f"'{server.command}' could not be started: {wrong.strerror or wrong}"
                ) from wrong
        signs.there = True
        async with anyio.create_task_group() as group:
            drained = anyio.Event()
            group.start_soon(drain, reader, signs, drained)
            try:
                yield started
            finally:
                with anyio.move_on_after(LAST_WORDS if signs.ended.is_set() else 0, shield=True):
                    await drained.wait()
                group.cancel_scope.cancel()


def folder(server: Server, workspace: Path) -> Path:
    return workspace / Path(server.cwd).expanduser() if server.cwd else workspace


def found(server: Server, path: str, cwd: Path) -> str:
    """Where the command is; said beforehand, since the system's own word for it is no help."""
    if not cwd.is_dir():
        raise CannotStart(f"its folder {cwd} does not exist: make it, or change its cwd")
    command = str(Path(server.command).expanduser()) if "~" in server.command else server.command
    if os.sep in command:
        command = str(cwd / command)
    place = shutil.which(command, path=path)
    if place is None:
        way = MAKERS.get(command, "install it")
        raise CannotStart(f"{server.command} not found: {way}, or remove the server")
    return place


async def drain(reader: int, signs: Signs, drained: anyio.Event) -> None:
    """Keep reading stderr, however much there is: a process whose pipe is full stands still."""
    os.set_blocking(reader, False)
    while True:
        await anyio.wait_readable(reader)
        try:
            read = os.read(reader, 65_536)
        except BlockingIOError:
            continue
        if not read:
            drained.set()
            return
        signs.wrote(read.decode("utf-8", "replace"))


# --- HTTP -----------------------------------------------------------------------------------


@asynccontextmanager
async def http(server: Server, signs: Signs) -> AsyncIterator["TransportStreams"]:
    from mcp.client.streamable_http import streamable_http_client

    async with (
        client(server, signs) as one,
        streamable_http_client(server.url, http_client=one) as streams,
    ):
        yield streams


@asynccontextmanager
async def sse(server: Server, signs: Signs) -> AsyncIterator["TransportStreams"]:
    from mcp.client.sse import sse_client

    def made(
        headers: dict[str, str] | None = None,
        timeout: "httpx2.Timeout | None" = None,
        auth: "httpx2.Auth | None" = None,
    ) -> "httpx2.AsyncClient":
        return client(server, signs)

    async with sse_client(server.url, httpx_client_factory=made) as streams:
        yield streams


def client(server: Server, signs: Signs) -> "httpx2.AsyncClient":
    import httpx2

    class Watchful(httpx2.AsyncClient):
        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            try:
                return await super().send(request, **options)
            except httpx2.ConnectError:
                # The SDK tries twice to follow the notifications again and then says nothing.
                signs.ended.set()
                raise

    async def look(response: httpx2.Response) -> None:
        signs.there = True
        refused = response.status_code >= 400
        signs.refusal = f"{response.status_code} {response.reason_phrase}" if refused else ""

    return Watchful(
        headers=dict(server.headers),
        # A call may be silent for long, and so may the stream of notifications: how long is for
        # the gateway to say.
        timeout=httpx2.Timeout(30.0, read=None),
        event_hooks={"response": [look]},
    )


# --- both -----------------------------------------------------------------------------------


class Watched:
    """A stream of messages that says when it has ended. The SDK answers what was asked when that
    happens, but tells nobody else."""

    def __init__(
        self, stream: "ReadStream[SessionMessage | Exception]", ended: anyio.Event
    ) -> None:
        self.stream = stream
        self.ended = ended

    @property
    def last_context(self) -> object:
        """The SDK looks for it, to run what a message starts in the context it was sent from."""
        return getattr(self.stream, "last_context", None)

    async def receive(self) -> "SessionMessage | Exception":
        return await self.stream.receive()

    async def aclose(self) -> None:
        await self.stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        try:
            return await self.stream.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self.ended.set()
            raise

    async def __aenter__(self) -> Self:
        await self.stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self.stream.__aexit__(exc_type, exc_val, exc_tb)
