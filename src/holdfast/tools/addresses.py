"""Which addresses of the web may be fetched: those that everybody can reach, and no others.

A model reads pages that others wrote, and they may ask it to fetch what only this machine can
reach: its own services, its network, the metadata of its cloud. So a URL is taken apart here in
one way, every spelling of an address becomes the address, and `forbidden` judges that. Names are
judged by what they resolve to, in `web`, which connects to the very address that was judged.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias
from unicodedata import normalize
from urllib.parse import quote, urlsplit

from holdfast.tools.base import BadArguments

Ip: TypeAlias = IPv4Address | IPv6Address

PORTS = {"http": 80, "https": 443}
LONGEST = 8_000
STRANGE = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters on whose meaning in a URL programs do not agree."""
NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
BRACKETED = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
DOTS = str.maketrans("。．｡", "...")
UNQUOTED = "/%:@!$&'()*+,;=~-._?"
NEAR = ("localhost", "localdomain", "local", "internal", "home.arpa")
"""Endings of names that never mean anything outside."""

CLOSED_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a provider's translation; also the metadata of some clouds
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata of Azure, although the address looks public
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
OPEN_6 = IPv6Network("2000::/3")
CLOSED_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # Teredo and other protocols
            "2001:db8::/32",
            "2002::/16",  # 6to4: has an IPv4 address inside, and nobody needs it
            "3fff::/20",
        ),
    )
)
MAPPED = IPv6Network("::ffff:0:0/96")
TRANSLATED = IPv6Network("64:ff9b::/96")
"""How public IPv4 addresses look in a network that has only IPv6."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL that was understood."""

    scheme: str
    host: str
    """A name in lower case and ASCII, or an address in its one spelling; no brackets."""
    port: int
    path: str
    """With the query."""

    @property
    def ip(self) -> Ip | None:
        """The address, where the host is one."""
        if ":" in self.host:
            return IPv6Address(self.host)
        return IPv4Address(self.host) if ends_in_number(self.host) else None

    @property
    def place(self) -> str:
        """Host and port, as in a list of places that are trusted."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        port = "" if PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{bracketed(self.host)}{port}{self.path}"


def address(text: str) -> Address:
    """`BadArguments` where it is not a URL that can be fetched, in words for the model."""
    text = text.strip()
    if STRANGE.search(text) or len(text) > LONGEST:
        raise BadArguments(
            "The URL has characters in it that a URL cannot have, or is too long. Percent-encode "
            f"them; at most {LONGEST} characters."
        )
    try:
        parts = urlsplit(text)
        port = parts.port
        name = parts.hostname or ""
    except ValueError as wrong:
        raise BadArguments(f"This is not a URL: {wrong}.") from None
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise BadArguments("Only http:// and https:// addresses can be fetched, written in full.")
    if "@" in parts.netloc:
        raise BadArguments("A URL with a user name or password in it is not fetched; leave it out.")
    in_brackets = "[" in parts.netloc or "]" in parts.netloc
    if port == 0 or in_brackets and not BRACKETED.fullmatch(parts.netloc):
        raise BadArguments(f"'{parts.netloc}' is no host.")
    host = ip6(name) if in_brackets else named(name)
    query = f"?{parts.query}" if parts.query else ""
    path = quote(without_dots(parts.path) + query, safe=UNQUOTED)
    return Address(scheme, host, PORTS[scheme] if port is None else port, path)


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# --- the host -----------------------------------------------------------------------------------


def ip6(text: str) -> str:
    try:
        if "%" in text:
            raise ValueError("zones of addresses mean something on one machine only")
        return IPv6Address(text).compressed
    except ValueError as wrong:
        raise BadArguments(f"'[{text}]' is no host: {wrong}.") from None


def named(text: str) -> str:
    """A name in its one spelling; or an IPv4 address, however it was written."""
    host = normalize("NFKC", text).translate(DOTS).lower().rstrip(".")
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise BadArguments(f"'{text}' is no host name.") from None
    if ends_in_number(host):
        return str(ip4(host))
    if len(host) > 253 or not NAME.fullmatch(host):
        raise BadArguments(f"'{text}' is no host name.")
    return host


def ends_in_number(host: str) -> bool:
    """Then it is an IPv4 address or nothing: no top level domain is a number."""
    last = host.rpartition(".")[2]
    return last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last) is not None


def ip4(host: str) -> IPv4Address:
    """As every C library reads it: one to four numbers, each decimal, octal or hexadecimal, of
    which the last fills all places that are left."""
    parts = host.split(".")
    try:
        *first, last = [figure(part) for part in parts]
        if len(first) > 3 or max(first, default=0) > 255 or last >= 256 ** (4 - len(first)):
            raise ValueError("a number in it is too large")
        return IPv4Address(sum(n << 8 * (3 - i) for i, n in enumerate(first)) + last)
    except ValueError as wrong:
        raise BadArguments(f"'{host}' is no IPv4 address: {wrong}.") from None


def figure(part: str) -> int:
    if not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", part):
        raise ValueError(f"'{part}' is no number")
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)


def without_dots(path: str) -> str:
    """The path with `.` and `..` resolved, so that a rule about a folder cannot be walked around;
    also where they are written with a percent sign, since servers read it so."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        plain = re.sub("%2e", ".", part, flags=re.IGNORECASE)
        if plain == "..":
            kept = kept[:-1]
        elif plain != ".":
            kept.append(part)
    ends_in_dots = bool(parts) and re.sub("%2e", ".", parts[-1], flags=re.I) in (".", "..")
    return "/" + "/".join([*kept, ""] if ends_in_dots else kept)


# --- the verdict --------------------------------------------------------------------------------


def forbidden(ip: Ip) -> str:
    """Why this address is not fetched from; empty if everybody can reach it."""
    if isinstance(ip, IPv4Address):
        closed = any(ip in network for network in CLOSED_4)
        return "it belongs to this machine, its network or nobody" if closed else ""
    if ip in MAPPED or ip in TRANSLATED:
        return forbidden(IPv4Address(int(ip) & 0xFFFF_FFFF))
    if ip not in OPEN_6 or any(ip in network for network in CLOSED_6):
        return "it belongs to this machine, its network or nobody"
    return ""


def names_what_is_near(host: str) -> bool:
    """A name that by agreement means this machine or its network, whatever it resolves to."""
    return any(host == ending or host.endswith(f".{ending}") for ending in NEAR)
