"""Secrets never reach the disk: they are taken out of an event before it is written.

Known by their shape (keys of providers, tokens, private keys, passwords in addresses), by a name
before them (`api_key=...`), or because they were named: values given here, and those of environment
variables that hold keys. In place of each stands `[secret: what]`, which holds no quote and no
backslash, so that JSON stays JSON. What is redacted once stays as it is.

This is a net and no wall: a password that looks like a word passes. A commit, a uuid and a hash
are no secrets.

A driver calls `Redactor.event` on what comes from the world before the loop sees it, so that state,
log and screens agree, and the model is not sent the secret either. The journal calls it again.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, cast, get_args, get_origin, get_type_hints
from urllib.parse import quote

from holdfast.core.events import Event
from holdfast.core.limits import Settings

Clean: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Shape:
    """How one kind of secret looks."""

    kind: str
    sign: str
    """Occurs wherever the secret does. `pattern` begins with it, and so is found about as fast as
    any text; all shapes as one pattern took many times as long."""
    pattern: re.Pattern[str]
    """The secret is its group `secret`; what stands before and after it is kept."""


def shape(kind: str, sign: str, rest: str, before: str = "") -> Shape:
    """`sign`, then `rest`; `before` is what the text up to the end of the sign must look like."""
    # Looking back from behind the sign leaves the sign at the beginning of the pattern.
    return Shape(kind, sign, re.compile(re.escape(sign) + before + rest))


def token(kind: str, sign: str, rest: str) -> Shape:
    """A secret that is known by its first letters, which may be kept."""
    return shape(kind, sign, rf"(?P<secret>{rest})", rf"(?<=\b{re.escape(sign)})")


NOT_IN_VALUES = r"\s\"'\\,;&<>(){}\[\]"
SAID = r"[\"'\\]{0,3}[ \t]{0,3}(?::|=>?)[ \t]{0,3}[\"'\\]{0,3}"
"""Between a name and its value: `=`, `: "`, `\\": \\"`."""
RANDOM = (
    r"(?P<secret>(?=[A-Za-z_./+=-]*[0-9])(?=[0-9_./+=-]*[A-Za-z])[A-Za-z0-9_./+=-]{12,})(?![(\w])"
)
PASSWORD = rf"(?P<secret>(?=[^{NOT_IN_VALUES}]*[0-9!$%^*#?])[^{NOT_IN_VALUES}]{{6,200}})(?![(\w])"
BEARER = r"[ \t]{1,3}(?P<secret>(?=[^\s\"'\\]*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{16,})"
OF_A_KEY = (
    r"(?i:(?<=api.key)|(?<=apikey)|(?<=access.key)|(?<=accesskey)|(?<=account.key)|(?<=secret.key))"
)

SHAPES = (
    token("api key", "sk-", r"[A-Za-z0-9_-]{20,}"),
    token("api key", "AIza", r"[0-9A-Za-z_-]{30,}"),
    token("aws key", "AKIA", r"[A-Z0-9]{16}\b"),
    token("aws key", "ASIA", r"[A-Z0-9]{16}\b"),
    *(token("github token", f"gh{letter}_", r"[A-Za-z0-9]{20,}") for letter in "pousr"),
    token("github token", "github_pat_", r"[A-Za-z0-9_]{20,}"),
    token("gitlab token", "glpat-", r"[A-Za-z0-9_-]{16,}"),
    token("huggingface token", "hf_", r"[A-Za-z0-9]{24,}"),
    token("slack token", "xox", r"[a-z]-[A-Za-z0-9-]{10,}"),
    token("jwt", "eyJ", r"[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?"),
    shape(
        "private key",
        "-----BEGIN ",
        r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY-----(?P<secret>(?:[A-Za-z0-9+/=\s:,]|-(?!----)|\\[nr])+)",
    ),
    *(shape("credentials", sign, BEARER, rf"(?<=\b.{sign})") for sign in ("earer", "EARER")),
    *(
        shape("credentials", sign, BEARER, rf"(?i:(?<=authorization: .{sign}))")
        for sign in ("asic", "ASIC")
    ),
    shape("password", "://", r"[^\s/:@\"'\\<>\[\]]{0,80}:(?P<secret>[^\s/@\"'\\<>\[\]]{1,200})@"),
    *(shape("key", sign, SAID + RANDOM, OF_A_KEY) for sign in ("key", "Key", "KEY")),
    *(shape("key", sign, SAID + RANDOM) for sign in ("ecret", "ECRET")),
    *(shape("key", sign, SAID + RANDOM) for sign in ("oken", "OKEN")),
    *(
        shape("password", sign, SAID + PASSWORD)
        for sign in ("assword", "ASSWORD", "asswd", "ASSWD", "pwd", "PWD")
    ),
)

HOLDS_A_KEY = re.compile(r"(?i)(?:key|token|secret|password|passwd|pwd|credentials?)$")
"""Names of environment variables whose values are secrets."""
SHORTEST = 8
"""Characters of a named secret; a shorter one would be found in innocent words."""


class Redactor:
    def __init__(
        self,
        *,
        values: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`values` are secrets as they are; `environment` is the process's own unless given."""
        around = os.environ if environment is None else environment
        known = {value for value in values if value.strip()}
        known |= {
            value
            for name, value in around.items()
            if HOLDS_A_KEY.search(name) and len(value) >= SHORTEST and not value.startswith("/")
        }
        every = {form for value in known for form in forms(value)}
        self._known = sorted(every, key=len, reverse=True)  # one may be a part of another
        self._settings: tuple[Settings, Settings] | None = None

    def text(self, text: str) -> str:
        """The same object if there is no secret in it."""
        for value in self._known:
            if value in text:
                text = text.replace(value, "[secret: named]")
        for each in SHAPES:
            if each.sign in text:
                text = each.pattern.sub(partial(replaced, each.kind), text)
        return text

    def event(self, event: Event) -> Event:
        """The same object if there is no secret in it."""
        return cast(Event, self._value(event))

    def _value(self, value: Any) -> Any:
        if isinstance(value, Settings):
            known = self._settings  # taken once: the loop and the writer both come here
            if known is None or known[0] is not value:
                known = self._settings = value, self._fields(value)
            return known[1]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple):
            clean = tuple(map(self._value, value))
            return value if same(value, clean) else clean
        return self._fields(value)

    def _fields(self, value: Any) -> Any:
        changes = {}
        kind: type = type(value)
        for name in wordy(kind):
            old = getattr(value, name)
            if not old or (type(old) is str and len(old) < SHORTEST):
                continue  # most fields of most events
            new = self._value(old)
            if new is not old:
                # What is owed to a provider is sealed: it goes back as it came, or not at all.
                changes[name] = "" if name == "owed" else new
        return replace(value, **changes) if changes else value


def same(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    return all(a is b for a, b in zip(old, new, strict=True))


def replaced(kind: str, found: re.Match[str]) -> str:
    whole, start = found[0], found.start()
    first, last = found.start("secret") - start, found.end("secret") - start
    return f"{whole[:first]}[secret: {kind}]{whole[last:]}"


def forms(value: str) -> set[str]:
    """A secret as it may be written: plainly, in JSON, in an address."""
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value.encode("utf-8", "replace"), safe=""),
    }


@cache
def wordy(kind: type) -> tuple[str, ...]:
    """The fields of a value in which there can be words."""
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind)
    return tuple(field.name for field in fields(kind) if can_say(hints[field.name]))


def can_say(kind: Any) -> bool:
    if kind is str:
        return True
    if get_origin(kind) in (Union, UnionType, tuple):
        return any(can_say(inner) for inner in get_args(kind) if inner not in (NoneType, ...))
    return is_dataclass(kind) and bool(wordy(cast(type, kind)))
