"""Which servers of tools there are: the `mcpServers` JSON that everyone writes, read into values.

`${VAR}` and `${VAR:-default}` are filled in from the environment that is given. What is wrong is
said all at once, one sentence each, with the server, the key and the way out, and without any
value, since values may be secret. Starting the servers is left to `servers`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from urllib.parse import parse_qsl, urlsplit

from holdfast.core.jsontext import json_object

START = 60.0
"""Seconds a server has to connect: one that `npx` must fetch first takes that long."""
SECONDS = 1_000
"""A time-out from here on was probably meant in milliseconds, as other programs take it."""
KEYS = (
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "type",
    "disabled",
    "timeout",
    "start_timeout",
    "trust",
    "tools",
)
HOLDERS = ("mcpServers", "mcp_servers")
"""The keys under which a file holds its servers."""
OF_A_KEY = re.compile(r"(?i)auth|key|token|secret|password|passwd|credential|cookie")
SHORTEST_KEY = 8
"""Characters; a shorter one would be found in innocent words."""
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Wire(Enum):
    """How a server is spoken to."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"
    """The way before streamable HTTP; some servers know no other."""


WIRES = {
    "stdio": Wire.STDIO,
    "http": Wire.HTTP,
    "streamable-http": Wire.HTTP,
    "streamableHttp": Wire.HTTP,
    "streamable_http": Wire.HTTP,
    "sse": Wire.SSE,
}


class ConfigError(ValueError):
    """What is wrong with the configuration of servers, one sentence a line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server, with everything filled in. Its `repr` keeps its secrets."""

    name: str
    wire: Wire = Wire.STDIO
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Beside the few variables that every server gets: `PATH`, `HOME`, and their like."""
    cwd: str = ""
    """Empty: the folder the run works in."""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    timeout: float | None = None
    """Seconds one call may take; None takes that of the gateway."""
    start_timeout: float = START
    trust: bool = False
    """What it says about its tools is believed: which ones only look, which can be run again."""
    tools: tuple[str, ...] | None = None
    """The tools, by the server's own names, that are offered; None means all."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Texts that must never be shown where we speak of the server: all that was set for it."""
    credentials: tuple[str, ...] = field(default=(), repr=False)
    """Those among them that are keys, and must not be seen in what the server says either. Not
    all of them: a folder that was set for it may well be named in its results."""

    def veil(self, text: str) -> str:
        """`text` without any of the server's secrets."""
        return without(self.secrets, text)

    def veil_result(self, text: str) -> str:
        """What the server says, without the keys it was given."""
        return without(self.credentials, text)


def without(hidden: Iterable[str], text: str) -> str:
    for each in hidden:
        text = text.replace(each, "***")
    return text


@dataclass(frozen=True, slots=True)
class Loaded:
    servers: tuple[Server, ...]
    warnings: tuple[str, ...] = ()


def load(text: str, env: Mapping[str, str]) -> Loaded:
    """The servers in the text of a JSON file."""
    try:
        return read(json_object(text), env)
    except ConfigError:
        raise
    except ValueError as wrong:
        raise ConfigError(
            [f"The configuration of MCP servers is no JSON object: {wrong}"]
        ) from None


def read(mapping: Mapping[str, object], env: Mapping[str, str]) -> Loaded:
    """The servers in a mapping: under `mcpServers` or `mcp_servers`, or the tables themselves."""
    holder = next((key for key in HOLDERS if key in mapping), None)
    tables = mapping if holder is None else mapping[holder]
    if not isinstance(tables, Mapping):
        raise ConfigError([f"{holder} must hold a table for each server: its name, then its keys."])
    readers = [Reader(str(name), table, env) for name, table in tables.items()]
    servers = tuple(reader.server() for reader in readers)
    problems = [problem for reader in readers for problem in reader.problems]
    if problems:
        raise ConfigError(problems)
    return Loaded(servers, tuple(line for reader in readers for line in reader.warnings))


class Reader:
    """Reads the table of one server, and gathers what is wrong with it."""

    def __init__(self, name: str, table: object, env: Mapping[str, str]) -> None:
        self.name = name
        self.env = env
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.filled: list[str] = []
        """Values that came out of the environment: taken as secrets."""
        self.table: Mapping[str, object] = table if isinstance(table, Mapping) else {}
        if not isinstance(table, Mapping):
            self.wrong("", 'must be a table with "command" or "url"')

    def server(self) -> Server:
        self.warn_of_unknown_keys()
        disabled = self.flag("disabled")
        found = Server(
            name=self.name,
            wire=self.wire(),
            command=self.text("command"),
            args=self.texts("args") or (),
            env=self.pairs("env"),
            cwd=self.text("cwd"),
            url=self.text("url"),
            headers=self.pairs("headers"),
            disabled=disabled,
            timeout=self.seconds("timeout"),
            start_timeout=self.seconds("start_timeout") or START,
            trust=self.flag("trust"),
            tools=self.texts("tools"),
        )
        self.check(found)
        if disabled:  # a variable may well be missing for one that nobody starts
            self.problems.clear()
        return with_secrets(found, self.filled)

    def check(self, found: Server) -> None:
        if not self.name.strip():
            self.wrong("", "needs a name: it becomes the prefix of its tools")
        if found.url and found.command:
            self.wrong("url", 'stands beside "command": keep one of them')
        if self.problems:
            return
        if found.wire is Wire.STDIO and not found.command:
            self.wrong("command", 'is missing: say what starts the server, or give its "url"')
        if found.wire is not Wire.STDIO and not found.url.startswith(("http://", "https://")):
            self.wrong("url", "must begin with http:// or https://")
        if found.wire is not Wire.STDIO:
            for key in ("args", "env", "cwd"):
                if key in self.table:
                    self.warn(key, "is not used: a server with a url is not started by us.")
        elif "headers" in self.table:
            self.warn("headers", "is not used: a server with a command gets no HTTP requests.")

    def wire(self) -> Wire:
        if "type" not in self.table:
            return Wire.HTTP if "url" in self.table else Wire.STDIO
        wire = WIRES.get(str(self.table["type"]))
        if wire is None:
            self.wrong("type", 'must be "stdio", "http" or "sse", or be left out')
        return wire or Wire.STDIO

    def text(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str):
            self.wrong(key, "must be a text")
            return ""
        return self.fill(key, value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            self.wrong(key, 'must be a list of texts, such as ["a", "b"]')
            return None
        return tuple(self.fill(key, one) for one in value)

    def pairs(self, key: str) -> Mapping[str, str]:
        value = self.table.get(key, {})
        if not isinstance(value, Mapping):
            self.wrong(key, "must be a table of names and texts")
            return {}
        pairs = {}
        for name, one in value.items():
            if isinstance(one, bool) or not isinstance(one, str | int | float):
                self.wrong(f"{key}.{name}", "must be a text")
                continue
            pairs[str(name)] = self.fill(f"{key}.{name}", str(one))
        return pairs

    def flag(self, key: str) -> bool:
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            self.wrong(key, "must be true or false")
            return False
        return value

    def seconds(self, key: str) -> float | None:
        value = self.table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            self.wrong(key, "must be a number of seconds above 0")
            return None
        if value >= SECONDS:
            self.warn(key, f"is in seconds: for {value:g} milliseconds write {value / 1000:g}.")
        return float(value)

    def fill(self, key: str, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name, default = found.groups()
            value = self.env.get(name) or default
            if value is None:
                self.wrong(key, f"needs the variable {name}: set it, or write ${{{name}:-default}}")
                return ""
            if value != default:
                self.filled.append(value)
            return value

        return VARIABLE.sub(value, text)

    def warn_of_unknown_keys(self) -> None:
        for key in self.table:
            if key not in KEYS:
                self.warn(str(key), f"is not known and was ignored{did_you_mean(str(key))}")

    def wrong(self, key: str, what: str) -> None:
        self.problems.append(f"{self.place(key)} {what}.")

    def warn(self, key: str, what: str) -> None:
        self.warnings.append(f"{self.place(key)} {what}")

    def place(self, key: str) -> str:
        return f"MCP server '{self.name}': {key}" if key else f"MCP server '{self.name}'"


def did_you_mean(key: str) -> str:
    close = get_close_matches(key.lower().replace("-", "_"), KEYS, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else "."


def with_secrets(server: Server, filled: Iterable[str]) -> Server:
    """`server`, knowing what of it must not be shown: variables, headers, passwords in its url."""
    values = [*filled, *server.env.values(), *server.headers.values()]
    values += [value.split(" ", 1)[1] for value in server.headers.values() if " " in value]
    if server.url:
        values += secrets_of_url(server.url)
    # Shorter ones are no secrets, and hiding each "1" or "on" would make a text unreadable.
    hidden = {value.strip() for value in values if len(value.strip()) >= 4}
    return replace(
        server, secrets=longest_first(hidden), credentials=longest_first(keys_of(server))
    )


def longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    """One may hold another."""
    return tuple(sorted(texts, key=lambda one: (-len(one), one)))


def keys_of(server: Server) -> set[str]:
    """What was set under the name of a key, with and without the word `Bearer` before it."""
    named = {**server.env, **server.headers}
    values = [value.strip() for name, value in named.items() if OF_A_KEY.search(name)]
    values += [value.split(" ", 1)[1].strip() for value in values if " " in value]
    return {value for value in values if len(value) >= SHORTEST_KEY}


def secrets_of_url(url: str) -> list[str]:
    parts = urlsplit(url)
    given = [parts.password or "", parts.username or "", *(v for _, v in parse_qsl(parts.query))]
    return [value for value in given if value]
