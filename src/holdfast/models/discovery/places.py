"""Where servers may be: the usual ports of this machine, and what the environment names."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.models.discovery.offers import Kind

DEFAULT: Mapping[int, Kind] = {
    11434: Kind.OLLAMA,
    1234: Kind.LM_STUDIO,
    8080: Kind.LLAMA_CPP,
    8000: Kind.VLLM,
    12434: Kind.OTHER,  # Docker Model Runner
    5001: Kind.OTHER,  # KoboldCpp
    1337: Kind.OTHER,  # Jan
}
"""The ports of this machine that are asked, and who is expected there."""
APIS = {12434: "/engines/v1"}
"""Where OpenAI's API is on a port, if not at `/v1`."""

PROVIDERS = {
    "OPENAI_API_KEY": "openai",
    "ANTHROPIC_API_KEY": "anthropic",
    "OPENROUTER_API_KEY": "openrouter",
    "GEMINI_API_KEY": "gemini",
    "GOOGLE_API_KEY": "gemini",
    "MISTRAL_API_KEY": "mistral",
    "DEEPSEEK_API_KEY": "deepseek",
    "GROQ_API_KEY": "groq",
    "XAI_API_KEY": "xai",
    "TOGETHER_API_KEY": "together",
    "FIREWORKS_API_KEY": "fireworks",
    "CEREBRAS_API_KEY": "cerebras",
    "MOONSHOT_API_KEY": "moonshot",
}
"""Which provider a key in the environment is for."""


PORT = re.compile(r":([^:\]]{0,9})\Z")


class Place(NamedTuple):
    """Where a server may be."""

    tls: bool
    host: str
    port: int
    root: str
    """The path before everything else, mostly empty."""
    api: str
    """The path of OpenAI's API behind `root`."""
    kind: Kind | None = None
    """Who is expected there."""
    is_named: bool = True
    """Whether the user named it; then it is worth a word if it does not answer."""
    key_in: str = ""
    """Where in the environment its key is. The key itself must not get into a value like this."""

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}{self.root}"


def place_of(url: str, kind: Kind | None = None) -> Place:
    """What a URL says, less its user, password and query, which might be shown to someone.

    `ValueError`, in words that do not repeat it, if there is nothing to connect to.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("its host or port cannot be read") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("it must begin with http:// or https:// and name a host")
    path = parts.path.rstrip("/")
    api = "/v1" if not path or path.endswith("/v1") else ""
    tls = parts.scheme == "https"
    port = port or (443 if tls else 80)
    return Place(tls, host, port, path.removesuffix("/v1"), api, kind)


def ollama_at(given: str) -> Place:
    """What OLLAMA_HOST means to Ollama itself: a host, a port, both of them, or a URL."""
    given = given.strip().strip("\"'").strip()
    if given == "ollama.com":
        given = "https://ollama.com"
    if "://" not in given:
        address, _, path = given.partition("/")
        if address.count(":") > 1 and "[" not in address:
            address = f"[{address}]"  # all of it is an IPv6 address
        port = PORT.search(address)
        host = address[: port.start()] if port else address
        is_usable = port and port[1].isdecimal() and int(port[1]) < 65_536
        given = f"http://{host or '127.0.0.1'}:{port[1] if port and is_usable else 11434}/{path}"
    place = place_of(given, Kind.OLLAMA)
    # What a server binds to is no address to connect to.
    return place._replace(host={"0.0.0.0": "127.0.0.1", "::": "::1"}.get(place.host, place.host))


def places(env: Mapping[str, str], ports: Mapping[int, Kind]) -> tuple[list[Place], list[str]]:
    """Where to ask, each place once, and what is wrong with the environment."""
    found: dict[tuple[str, int], Place] = {}
    problems: list[str] = []
    readers: Iterable[tuple[str, Callable[[str], Place], str]] = (
        ("OLLAMA_HOST", ollama_at, "OLLAMA_API_KEY"),
        ("OPENAI_BASE_URL", place_of, "OPENAI_API_KEY"),
    )
    for name, reader, key_in in readers:
        if not (given := env.get(name, "").strip()):
            continue
        try:
            place = reader(given)._replace(key_in=key_in)
        except ValueError as wrong:
            problems.append(f"{name} cannot be used: {wrong}.")
        else:
            found.setdefault(spot(place), place)
    for port, kind in ports.items():
        place = Place(False, "localhost", port, "", APIS.get(port, "/v1"), kind, is_named=False)
        if kind is not Kind.OLLAMA or not env.get("OLLAMA_HOST", "").strip():
            found.setdefault(spot(place), place)
    return list(found.values()), problems


def spot(place: Place) -> tuple[str, int]:
    """The same for all names of this machine."""
    return "localhost" if place.host in ("127.0.0.1", "::1") else place.host, place.port


def providers(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosted providers for which there is a key; of the key itself nothing is kept."""
    return tuple(dict.fromkeys(PROVIDERS[name] for name in PROVIDERS if env.get(name, "").strip()))
