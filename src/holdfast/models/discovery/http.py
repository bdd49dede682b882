"""A little HTTP: one request for JSON, one answer, over anyio's sockets.

`http.client` would block in threads, and the interpreter waits for those when it ends: a server
that stalls would hold up a program that has long given up on it. aiohttp takes longer to import
than the asking takes.
"""

import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from threading import Thread
from urllib.parse import quote

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import current_token
from anyio.streams.buffered import BufferedByteReceiveStream

from holdfast.core.jsontext import STRICT, dumped
from holdfast.models.discovery.places import Place

LARGEST = 2_000_000
"""Bytes of one answer. The longest that is real, a list of four hundred models, has a third."""
MOST_VALUES = 50_000
"""Lists and objects in it. Parsing cannot be interrupted, and with more of them it takes long."""
LONGEST_LINE = 16_384
MOST_HEADERS = 100
MOST_CHUNKS = 4_000
"""What has arrived already is read without a pause in which the time could be found to be up."""
STATUS = re.compile(rb"HTTP/1\.\d (\d{3})\b")
CHUNK = re.compile(rb"([0-9a-fA-F]{1,7})[ \t]*(?:;|\Z)")
STRANGE = "does not answer like a model server"
NOT_YET = {
    **dict.fromkeys((401, 403), "wants a key, or another one"),
    503: "is not ready; it may be loading a model",
}
"""Statuses of a server that is there and cannot be used as it is."""


class NoAnswer(Exception):
    """Nothing came back that could be used; why, in words that follow the name of the server."""

    def __init__(self, why: str, *, status: int = 0, is_absent: bool = False) -> None:
        super().__init__(why)
        self.why, self.status, self.is_absent = why, status, is_absent


async def json_at(place: Place, path: str, body: Mapping[str, object] | None, key: str) -> object:
    """What the server has there. No proxy is asked, and no redirect followed."""
    try:
        async with await connected(place) as stream:
            await stream.send(request(place, path, body, key.strip()))
            content = await response(BufferedByteReceiveStream(stream))
        if content.count(b"[") + content.count(b"{") > MOST_VALUES:
            raise NoAnswer(STRANGE)
        return STRICT.decode(content.decode("utf-8-sig", "replace"))
    except (anyio.DelimiterNotFound, ValueError, RecursionError):
        raise NoAnswer(STRANGE) from None
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
        raise NoAnswer("broke off its answer") from None


def request(place: Place, path: str, body: Mapping[str, object] | None, key: str) -> bytes:
    content = b"" if body is None else dumped(body).encode()
    target = quote(place.root + path, safe="/?&=%:@~!$'()*+,;")
    lines = [
        f"{'GET' if body is None else 'POST'} {target} HTTP/1.1",
        f"Host: {place.address}",
        "Accept: application/json",
        "Connection: close",
    ]
    if content:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    if key.isprintable() and key:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join([*lines, "", ""]).encode() + content


async def response(stream: BufferedByteReceiveStream) -> bytes:
    first = STATUS.match(await stream.receive_until(b"\r\n", LONGEST_LINE))
    if not first:
        raise NoAnswer(STRANGE)
    if (status := int(first[1])) != 200:
        raise NoAnswer(NOT_YET.get(status, f"answers with HTTP {status}"), status=status)
    headers = await headers_in(stream)
    if headers.get(b"transfer-encoding") == b"chunked":
        return await chunked(stream)
    if b"content-length" in headers:
        return await stream.receive_exactly(bounded(int(headers[b"content-length"])))
    content = bytearray()
    with suppress(anyio.EndOfStream):
        while bounded(len(content)) >= 0:
            content += await stream.receive()
    return bytes(content)


async def headers_in(stream: BufferedByteReceiveStream) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for _ in range(MOST_HEADERS):
        line = await stream.receive_until(b"\r\n", LONGEST_LINE)
        if not line:
            return headers
        name, _, value = line.lower().partition(b":")
        headers[name.strip()] = value.strip()
    raise NoAnswer(STRANGE)


async def chunked(stream: BufferedByteReceiveStream) -> bytes:
    content = bytearray()
    for _ in range(MOST_CHUNKS):
        length = CHUNK.match(await stream.receive_until(b"\r\n", LONGEST_LINE))
        if not length:
            raise NoAnswer(STRANGE)
        if not (more := int(length[1], 16)):
            return bytes(content)
        bounded(len(content) + more)
        content += (await stream.receive_exactly(more + 2))[:-2]
    raise NoAnswer(STRANGE)


def bounded(size: int) -> int:
    if not 0 <= size <= LARGEST:
        raise NoAnswer(f"answers with more than {LARGEST} bytes")
    return size


async def connected(place: Place) -> ByteStream:
    for address in await addresses(place):
        try:
            stream = await anyio.connect_tcp(address, place.port)
        except OSError:
            continue
        return await secured(stream, place.host) if place.tls else stream
    raise NoAnswer("is not running", is_absent=True)


async def secured(stream: ByteStream, host: str) -> ByteStream:
    from anyio.streams.tls import TLSStream

    try:
        return await TLSStream.wrap(
            stream, hostname=host, ssl_context=trusted(), standard_compatible=False
        )
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


@cache  # it reads the certificates of the system, which takes longer than an answer
def trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


async def addresses(place: Place) -> list[str]:
    if place.host == "localhost":
        return ["127.0.0.1", "::1"]
    with suppress(ValueError):
        ip_address(place.host)
        return [place.host]
    answered, token = anyio.Event(), current_token()
    found: list[str] = []

    def resolve() -> None:
        with suppress(OSError, UnicodeError):
            names = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
            found.extend(dict.fromkeys(str(each[4][0]) for each in names))
        with suppress(anyio.RunFinishedError):
            anyio.from_thread.run_sync(answered.set, token=token)

    # A name server that does not answer is left behind in a thread of ours: anyio and asyncio
    # both wait for theirs, at the latest when the program ends.
    Thread(target=resolve, daemon=True).start()
    await answered.wait()
    return found
