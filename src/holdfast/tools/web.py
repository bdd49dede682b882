"""`fetch_url`: a page of the web as text, and no way into this machine or its network.

Every host is resolved here, every address it has is judged by `addresses`, and the connection goes
to the addresses that were judged, also after each redirect: a name that means something else a
moment later changes nothing. A redirect to another host is not followed but told: that is another
call, for the rules and the person to judge. No cookies, no proxies, no passwords. What a page says
is `readable`.
"""

import codecs
import re
import socket
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urljoin

import anyio
import anyio.to_thread

from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.addresses import (
    PORTS,
    Address,
    Ip,
    address,
    forbidden,
    names_what_is_near,
)
from holdfast.tools.arguments import reader
from holdfast.tools.base import (
    Access,
    Arguments,
    BadArguments,
    Binary,
    Context,
    Output,
    Tool,
    ToolError,
    Touch,
)
from holdfast.tools.readable import readable

if TYPE_CHECKING:
    from aiohttp import ClientResponse, TCPConnector
    from aiohttp.abc import ResolveResult

AGENT = "holdfast (a language model's agent)"
PARAMETERS = (
    '{"type":"object","properties":{"url":{"type":"string","description":"The whole address, '
    'with https://"}},"required":["url"],"additionalProperties":false}'
)
MOST_BYTES = 1_000_000
"""Of one body, unpacked. A long article has a tenth of this."""
MOST_REDIRECTS = 5
OF_AN_ERROR = 2_000
"""Characters that are shown of the body of an error."""
SECONDS = 30.0
"""For everything together: names, redirects, the whole body."""

MOVED = (301, 302, 303, 307, 308)
HTML = ("text/html", "application/xhtml+xml")
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXTS = re.compile(
    r"text/.*|application/(.*\+)?(json|xml|yaml)|image/svg\+xml|"
    r"application/(javascript|ecmascript|x-yaml|toml|x-ndjson|jsonl|sql|x-sh|rtf|x-www-form-urlencoded)"
)
CHARSETS = ("utf", "iso8859", "cp", "koi8", "gb", "big5", "shift_jis", "euc_", "ascii", "mac")
"""Python knows more, and some of them are no charsets."""
META = re.compile(rb"<meta[^>]{0,300}?charset=[\"']?([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name."""


def fetch_url_tool(
    *,
    allow_private: bool = False,
    trusted: tuple[str, ...] = (),
    most_bytes: int = MOST_BYTES,
    seconds: float = SECONDS,
    resolve: Resolve | None = None,
) -> Tool:
    """`trusted` names exact places, `host:port`, that may be fetched although they are private;
    `allow_private` allows all of them, and is for machines that hold nothing worth protecting."""
    web = Web(allow_private, frozenset(trusted), most_bytes, resolve or resolved)
    read = reader(PARAMETERS)

    def parse(text: str) -> Arguments:
        given = read(text)
        return {"url": address(str(given["url"])).url}

    async def run(arguments: Arguments, context: Context) -> Output:
        try:
            with anyio.fail_after(seconds):
                return await web.fetched(address(str(arguments["url"])))
        except TimeoutError:
            raise ToolError(
                f"The page did not come within {seconds:g} seconds. Try again later, or another "
                "address."
            ) from None

    def touch(arguments: Arguments, workspace: Path) -> Touch:
        return touched(address(str(arguments["url"])), web.trusted)

    return Tool(
        spec=ToolSpec(
            name="fetch_url",
            description="Read a page of the web: its text, with links and tables.",
            parameters=PARAMETERS,
            # By the rules of HTTP a GET changes nothing, and a server that breaks them does so
            # for every crawler and every reload: to fetch again after a crash adds no danger.
            effect=SideEffect.READ,
            mutates=False,
            aliases=("web_fetch", "fetch", "webfetch", "open_url", "browse"),
        ),
        parse=parse,
        touch=touch,
        run=run,
        timeout=seconds + 5,
    )


def touched(wanted: Address, trusted: frozenset[str]) -> Touch:
    """The danger is only what the URL itself shows: this looks, and asks no server for a name."""
    near = names_what_is_near(wanted.host) or (wanted.ip is not None and forbidden(wanted.ip))
    danger = ""
    if near and wanted.place not in trusted:
        danger = f"{wanted.host} is this machine or a part of its network"
    return Touch(Access.NETWORK, (wanted.host, wanted.url), danger)


async def resolved(host: str, port: int) -> Sequence[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


@dataclass(frozen=True, slots=True)
class Body:
    data: bytes
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Web:
    allow_private: bool
    trusted: frozenset[str]
    most_bytes: int
    resolve: Resolve

    async def fetched(self, wanted: Address) -> Output:
        for _ in range(MOST_REDIRECTS + 1):
            came = await self._asked(wanted)
            if isinstance(came, Output):
                return came
            wanted = came
        raise ToolError(f"More than {MOST_REDIRECTS} redirects; the last one led to {wanted.url}.")

    async def _asked(self, wanted: Address) -> Output | Address:
        """What is there, or where it has moved to."""
        from aiohttp import ClientError, ClientSession, ClientTimeout
        from yarl import URL

        addresses = await self._allowed(wanted)
        try:
            async with (
                ClientSession(  # one for each request, so that no cookie lives on
                    connector=pinned(wanted.host, addresses),
                    timeout=ClientTimeout(total=None),
                    auto_decompress=False,  # it is unpacked here, with a bound
                    trust_env=False,  # a proxy would resolve the name once more
                    headers={"User-Agent": AGENT, "Accept-Encoding": "gzip, deflate"},
                ) as session,
                session.get(URL(wanted.url, encoded=True), allow_redirects=False) as response,
            ):
                location = response.headers.get("Location", "")
                if response.status in MOVED and location:
                    moved = redirected(wanted, location)
                    return moved if follows(wanted, moved) else elsewhere(wanted, moved)
                body = await unpacked(response, self.most_bytes)
                return await shown(wanted, response, body)
        except (ClientError, OSError, ValueError, zlib.error) as wrong:
            said = str(wrong) or type(wrong).__name__
            raise ToolError(f"{wanted.url} could not be fetched: {said}") from wrong

    async def _allowed(self, wanted: Address) -> tuple[Ip, ...]:
        """The addresses of the host, if all of them may be fetched from."""
        near = names_what_is_near(wanted.host)
        may = self.allow_private or wanted.place in self.trusted
        if near and not may:
            raise ToolError(f"{wanted.host} is not fetched: it is this machine or its network.")
        addresses = (wanted.ip,) if wanted.ip is not None else await self._found(wanted)
        for each in addresses:
            if not may and (why := forbidden(each)):
                raise ToolError(f"{wanted.host} ({each}) is not fetched: {why}.")
        return addresses

    async def _found(self, wanted: Address) -> tuple[Ip, ...]:
        try:
            names = await self.resolve(wanted.host, wanted.port)
        except OSError as wrong:
            raise ToolError(f"There is no host named {wanted.host} ({wrong}).") from wrong
        # A zone (`fe80::1%eth0`) is dropped: with or without it the address is judged the same.
        addresses = tuple(ip_address(name.partition("%")[0]) for name in names)
        if not addresses:
            raise ToolError(f"The host {wanted.host} has no address.")
        return tuple(dict.fromkeys(addresses))


def redirected(wanted: Address, location: str) -> Address:
    try:
        return address(urljoin(wanted.url, location))
    except (BadArguments, ValueError) as wrong:
        raise ToolError(f"{wanted.url} redirects to {location[:200]!r}: {wrong}") from None


def follows(wanted: Address, moved: Address) -> bool:
    """Whoever may fetch the one may fetch the other: it is the same place, or its way to TLS."""
    if wanted.host != moved.host or (wanted.scheme, moved.scheme) == ("https", "http"):
        return False
    return moved.port in (wanted.port, PORTS["https"])


def elsewhere(wanted: Address, moved: Address) -> Output:
    return Output(
        f"{wanted.url}\nThe page is not here: it redirects to another place, {moved.url}\n"
        "Nothing was fetched from there. To read it, call fetch_url with that address."
    )


def pinned(name: str, addresses: tuple[Ip, ...]) -> "TCPConnector":
    """A connector that knows this host and no other, and only these addresses of it. For TLS the
    name is still the name."""
    from aiohttp import TCPConnector
    from aiohttp.abc import AbstractResolver

    class Pinned(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list["ResolveResult"]:
            if host.rstrip(".") != name:
                raise OSError(f"{host} was not judged")
            return [entry(name, each, port) for each in addresses]

        async def close(self) -> None: ...

    return TCPConnector(resolver=Pinned(), use_dns_cache=False, force_close=True)


def entry(host: str, ip: Ip, port: int) -> "ResolveResult":
    return {
        "hostname": host,
        "host": str(ip),
        "port": port,
        "family": socket.AF_INET if ip.version == 4 else socket.AF_INET6,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST,
    }


# --- the body -----------------------------------------------------------------------------------


async def unpacked(response: "ClientResponse", most: int) -> Body:
    """At most so many bytes, of what was packed too: a small file can unpack to gigabytes."""
    packing = response.headers.get("Content-Encoding", "").strip().lower()
    if packing not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ToolError(f"The page came packed as {packing!r}, which was not asked for.")
    unpack = None if packing in ("", "identity") else Unpacking(packing)
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += unpack.of(chunk, most + 1 - len(data)) if unpack else chunk
        if len(data) > most:
            return Body(bytes(data[:most]), is_cut=True)
    return Body(bytes(data), is_cut=False)


class Unpacking:
    """gzip and zlib say what they are; some servers send `deflate` without its header."""

    def __init__(self, packing: str) -> None:
        self._bare = packing == "deflate"
        self._stream = zlib.decompressobj(wbits=47)
        self._begun = False

    def of(self, chunk: bytes, most: int) -> bytes:
        if not self._begun and self._bare and chunk and chunk[0] & 0x0F != 8:
            self._stream = zlib.decompressobj(wbits=-15)
        self._begun = self._begun or bool(chunk)
        return self._stream.decompress(chunk, most)


async def shown(wanted: Address, response: "ClientResponse", body: Body) -> Output:
    kind = response.content_type if "Content-Type" in response.headers else sniffed(body.data)
    kind = kind.lower()
    failed = response.status >= 400
    length = f"{len(body.data)} bytes" + (", cut here: the page goes on" if body.is_cut else "")
    header = f"{wanted.url}\nstatus {response.status}, {kind}, {length}"
    if kind in PICTURES and not failed:
        if body.is_cut:
            raise ToolError(f"{header}\nThe picture is too large to be shown.")
        return Output(header, (Binary(body.data, kind, wanted.path.rpartition("/")[2][:80]),))
    if kind not in HTML and not TEXTS.fullmatch(kind):
        return Output(
            f"{header}\nThis is neither text nor a picture that can be shown.", failed=True
        )
    text = decoded(body.data, response.charset, is_html=kind in HTML)
    if kind in HTML:
        # In a thread: the largest page takes seconds.
        text = await anyio.to_thread.run_sync(readable, text, wanted.url, abandon_on_cancel=True)
    if failed:
        text = text[:OF_AN_ERROR]
    return Output(f"{header}\n\n{text}" if text.strip() else f"{header}\n(no text)", failed=failed)


def sniffed(data: bytes) -> str:
    """What it is, where the server does not say."""
    start = data[:512].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "text/html"
    return "application/octet-stream" if b"\0" in data[:4_096] else "text/plain"


def decoded(data: bytes, charset: str | None, *, is_html: bool) -> str:
    """By its first bytes, the server's word, the page's word; else UTF-8, and if it is not that,
    what the web was written in before."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    meta = META.search(data[:2_048]) if is_html else None
    for told in (charset, meta[1].decode() if meta else None):
        if told and (known := known_charset(told)):
            return data.decode(known, "replace")
    try:
        # A cut may have gone through a character.
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def known_charset(told: str) -> str | None:
    try:
        name = codecs.lookup(told.strip("\"' ")).name
    except (LookupError, ValueError):
        return None
    # What calls itself Latin-1 or ASCII on the web is this superset of both.
    if name in ("iso8859-1", "ascii"):
        return "cp1252"
    return name if name.startswith(CHARSETS) and name != "utf-7" else None
