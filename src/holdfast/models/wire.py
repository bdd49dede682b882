"""HTTP, as narrow as the clients need it: post bytes, read bytes, never wait for ever.

The one module that knows the HTTP library (ADR 0009), and imports it only when the first request
is made. Whatever the network does comes out as a `ModelError`; what the bytes mean is read
elsewhere.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import ip_address
from os import strerror
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from anyio.lowlevel import EventLoopToken, current_token

from holdfast.core.events import Failure
from holdfast.models.base import ModelError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from aiohttp.payload import Payload

LARGEST = 64 * 1024 * 1024
"""Bytes of one answer: far above any reply, and a bound for a server that never ends."""
OF_AN_ERROR = 64 * 1024
"""Bytes that are read of an answer which is an error."""
LONGEST_HEADER = 64 * 1024
NEAR = 0.1
"""Seconds in which the end of a stream follows its last event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Seconds of silence after which a server counts as gone."""

    connect: float = 10
    first: float = 600
    """Until the first sign of a reply. Long, since a server may load the model and read the
    prompt before it says anything: minutes, on a machine without a graphics card."""
    between: float = 120
    """Between two signs of it."""
    soon: float = 5
    """For what should follow at once: the rest of an error, the end of a reply that is whole."""

    def __post_init__(self) -> None:
        for name in ("connect", "first", "between", "soon"):
            if not getattr(self, name) > 0:
                raise ValueError(f"waits.{name} is {getattr(self, name)}, and must be above zero")


class Answer:
    """What came back: a status at once, then bytes."""

    def __init__(
        self, host: str, response: "ClientResponse", scope: anyio.CancelScope, waits: Waits
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        self._host = host
        self._response = response
        self._scope = scope
        self._size = 0
        self._waits = waits
        self._moved: float | None = None
        self.said_something = False

    def is_alive(self) -> None:
        """There was a sign of the reply, so the wait begins anew.

        Bytes alone are none: a connection can be kept open by comments when nobody is at work.
        """
        self.said_something = True
        now = anyio.current_time()
        # To move a deadline costs more than to look at the clock, and deltas come by hundreds.
        if self._moved is None or now - self._moved > self._waits.between / 16:
            self._moved = now
            self._scope.deadline = now + self._waits.between * 17 / 16

    async def read(self) -> bytes:
        """The bytes that have come; none at the end. Raises `ModelError` if it is no real end."""
        try:
            data = await self._response.content.readany()
        except Exception as error:
            raise failure_behind(error, self._host) from error
        self._size += len(data)
        if self._size > LARGEST:
            raise ModelError(Failure.GARBLED, f"the answer is larger than {LARGEST} bytes")
        return data

    async def soon(self) -> bytes:
        """The same where little is to come: nothing, if it does not come soon."""
        with anyio.move_on_after(self._waits.soon):
            return await self.read()
        return b""

    async def rest(self) -> bytes:
        parts = []
        while data := await self.read():
            parts.append(data)
        return b"".join(parts)

    async def beginning(self) -> bytes:
        """As much as is needed of an error, and no more than comes at once: what there is of it
        says more than that it broke off, or did not end."""
        data = b""
        with suppress(ModelError), anyio.move_on_after(self._waits.soon):
            while len(data) < OF_AN_ERROR and (more := await self.read()):
                data += more
        return data

    async def end(self) -> None:
        """Read on to the end, if it is near, so that the connection can be used again."""
        with anyio.move_on_after(NEAR):
            await self.beginning()


class Wire:
    """The connections to one server. They belong to the event loop that is running; `aclose`
    gives them up, and the next request makes new ones."""

    def __init__(
        self, base: str, headers: Mapping[str, str] | None = None, waits: Waits | None = None
    ) -> None:
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = base if "@" not in base else "What was given"
            raise ValueError(f"{shown!r} is no address of a server: http://host:port is needed")
        self.base = base.rstrip("/")
        self.host = parts.netloc.rpartition("@")[2]
        # A stream is to be read as it comes, not when a block of compressed bytes is full.
        plain = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._headers = {**plain, **(headers or {})}
        self._secrets = [value.rpartition(" ")[2] for value in (headers or {}).values() if value]
        self._waits = waits or Waits()
        self._is_near = is_near(parts.hostname)
        self._proxy: str | None = None
        self._session: ClientSession | None = None
        self._loop: EventLoopToken | None = None

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Answer]:
        """The answer to one request. The connection is closed when the block is left early."""
        return self._exchange("POST", path, body, headers)

    async def post_json(self, path: str, body: bytes) -> object:
        """A question to the server itself, and its answer as JSON."""
        async with self.post(path, body) as answer:
            return await self._json_of(answer, path)

    async def get_json(self, path: str) -> object:
        """The same for what is only looked up."""
        async with self._exchange("GET", path) as answer:
            return await self._json_of(answer, path)

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Answer]:
        waits, session = self._waits, await self._open()
        answer: Answer | None = None
        with anyio.CancelScope(deadline=anyio.current_time() + waits.first) as scope:
            ask = partial(session.request, method, self.base + path, proxy=self._proxy)
            try:
                response = await sent(partial(ask, headers=headers, allow_redirects=False), body)
            except Exception as error:
                raise failure_behind(error, self.host) from error
            with woken_when_lost(response):
                try:
                    answer = Answer(self.host, response, scope, waits)
                    yield answer
                except BaseException as error:
                    response.close()  # who knows in which state the other side is
                    if isinstance(error, ModelError):
                        error.hide(self._secrets)
                    raise
            if response.content.at_eof():
                response.release()
            else:
                response.close()
        if scope.cancelled_caught:
            wait = waits.between if answer and answer.said_something else waits.first
            raise ModelError(Failure.GONE, f"nothing came from {self.host} for {wait:g} seconds")

    async def _json_of(self, answer: Answer, path: str) -> object:
        data = await answer.rest()
        if answer.status != 200:
            raise ModelError(Failure.REJECTED, f"HTTP {answer.status} from {self.host}{path}")
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError) as wrong:
            raise ModelError(
                Failure.GARBLED, f"{self.host}{path} did not answer in JSON"
            ) from wrong
        return value

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None and self._loop == current_token():
            await session.close()

    async def _open(self) -> "ClientSession":
        if self._session is not None and self._loop == current_token():
            return self._session
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

        old, self._session = self._session, None
        if old is not None:
            await old.close()  # its loop is gone, and its connections with it
        if not self._is_near:  # a proxy is for the far: it cannot reach what runs on this machine
            self._proxy = proxy_for(self.base)
        self._loop = current_token()
        self._session = ClientSession(
            # How many at a time is for others to decide. Idle connections are given up before
            # the servers do it: uvicorn closes them after five seconds.
            connector=TCPConnector(limit=0, keepalive_timeout=4),
            timeout=ClientTimeout(total=None, connect=self._waits.connect),
            cookie_jar=DummyCookieJar(),
            headers=self._headers,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
        )
        return self._session


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address."""
    from urllib.request import getproxies, proxy_bypass  # slow to import, and seldom needed

    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


async def sent(
    ask: "Callable[..., Awaitable[ClientResponse]]", body: bytes | None
) -> "ClientResponse":
    import aiohttp

    try:
        return await ask(data=payload(body))
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        # A connection that was kept may have been given up at the other end, which shows only now:
        # servers close idle ones, and some end one after an error.
        return await ask(data=payload(body))


def payload(body: bytes | None) -> "Payload | None":
    return None if body is None else payload_class()(body)


@cache
def payload_class() -> "type[Payload]":
    """The library goes on sending when a request was cancelled, and warns of large bodies; a
    window of some megabytes is nothing unusual here."""
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.payload import Payload

    class Body(Payload):
        _autoclose = True

        def __init__(self, body: bytes) -> None:
            super().__init__(body, content_type="application/json")
            self._size = len(body)

        def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
            return bytes(self._value).decode(encoding, errors)

        async def write(self, writer: AbstractStreamWriter) -> None:
            await self.write_with_length(writer, None)

        async def write_with_length(
            self, writer: AbstractStreamWriter, content_length: int | None
        ) -> None:
            transport = getattr(writer, "transport", None)
            try:
                await writer.write(self._value)
            except BaseException:
                if transport is not None:
                    transport.abort()
                raise

    return Body


@contextmanager
def woken_when_lost(response: "ClientResponse") -> Iterator[None]:
    """Nonsense in the framing of a stream makes the library close the connection, but whoever is
    reading is not told and would wait until it counts as silent."""
    connection = response.connection
    protocol = connection.protocol if connection is not None else None
    lost = protocol.closed if protocol is not None else None
    if lost is None:  # all of it has come
        yield
        return

    def wake(_: object) -> None:
        from aiohttp import ClientPayloadError

        if not response.content.is_eof() and response.content.exception() is None:
            response.content.set_exception(ClientPayloadError("the connection was lost"))

    # Else the loop would print that nobody has looked at it.
    lost.add_done_callback(lambda lost: lost.cancelled() or lost.exception())
    lost.add_done_callback(wake)
    try:
        yield
    finally:
        lost.remove_done_callback(wake)


def failure_behind(error: Exception, host: str) -> Exception:
    """The one failure that an exception of the HTTP library means here; others are bugs, and
    stay what they are."""
    import aiohttp

    rejected, gone = partial(ModelError, Failure.REJECTED), partial(ModelError, Failure.GONE)
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return rejected(f"the certificate of {host} is not trusted: {error}")
        case aiohttp.ClientConnectorDNSError():
            return gone(f"the name {host} is not known")
        case aiohttp.ClientConnectorError():
            why = strerror(error.os_error.errno or 0).lower()
            return gone(f"cannot connect to {host}: {why}")
        case aiohttp.InvalidURL():  # its own words would show the password in an address
            return rejected(f"{host} cannot be asked: its address, or that of a proxy, is wrong")
        case RuntimeError() if "closed" in str(error):
            return gone(f"the connection to {host} was closed by this program")
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            # Broken HTTP, or a body that ended before its announced end.
            return gone(f"the answer of {host} broke off")
        case TimeoutError():
            return gone(f"{host} does not take connections")
        case aiohttp.ClientError() | OSError():
            return gone(f"{host} closed the connection")
        case ValueError():  # a header or an address with characters that cannot be sent
            return rejected(f"{host} cannot be asked: {error}")
        case _:
            return error


def is_near(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
