"""Events and states as bytes, and back, for as long as there are logs.

Every event is written with the name of its kind and the version of that kind. A version goes up
when old and new readers would fold the event differently; a field that may be ignored needs no
new version. Old versions are brought up to date by `UPCASTERS`, one version at a time. What a
newer Holdfast wrote is refused and not passed over: a fold that left something out would lie.
"""

from collections.abc import Callable
from math import isfinite
from typing import TypeAlias, cast, get_args

import msgspec

from holdfast.core.events import Event
from holdfast.core.state import State
from holdfast.journal.base import JournalError
from holdfast.journal.plain import KIND, Plain, Wrong, decoder, dump, encoder, load, shown

VERSION = "v"
Upcast: TypeAlias = Callable[[dict[str, Plain]], dict[str, Plain]]

KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Event)}
VERSIONS: dict[str, int] = dict.fromkeys(KINDS, 1)
"""The version of each kind that is written now."""
UPCASTERS: dict[tuple[str, int], Upcast] = {}
"""By kind and version: makes the plain form of that version into that of the next. May change the
kind, for one that was renamed."""


class Unreadable(JournalError):
    """An event that this version cannot read, and must not pass over."""


_ENCODERS = {kind: (name, VERSIONS[name], encoder(kind)) for name, kind in KINDS.items()}


def plain_event(event: Event) -> dict[str, Plain]:
    name, version, encode = _ENCODERS[type(event)]
    assert encode is not None  # an event is a dataclass
    return {KIND: name, VERSION: version} | cast(dict[str, Plain], encode(event))


def event_of(plain: Plain) -> Event:
    """`Unreadable` if it is no event, or one of a newer version."""
    if type(plain) is not dict:
        raise Unreadable(f"an event was expected, not {shown(plain)}")
    plain = current(plain)
    try:
        return cast(Event, decoder(KINDS[plain[KIND]])(plain))
    except Wrong as wrong:
        raise Unreadable(f"an event that cannot be read: {wrong}") from None


def current(plain: dict[str, Plain]) -> dict[str, Plain]:
    """The same event in the versions of today."""
    while True:
        name, version = plain.get(KIND), plain.get(VERSION)
        if type(name) is not str or type(version) is not int:
            raise Unreadable(f"an event has a kind and a version; this has not: {shown(plain)}")
        if upcast := UPCASTERS.get((name, version)):
            plain = upcast(plain)
            continue
        if name not in KINDS or version > VERSIONS[name]:
            raise Unreadable(
                f"'{name}' of version {version} was written by a newer Holdfast, and leaving it "
                "out would make the session mean something else. Upgrade to read it."
            )
        if version < VERSIONS[name]:
            raise Unreadable(f"'{name}' has no version {version}")
        return plain


_fast = msgspec.json.Encoder().encode
_BEGINNINGS = {
    kind: f'{{"{KIND}":"{name}","{VERSION}":{VERSIONS[name]}'.encode()
    for name, kind in KINDS.items()
}


def encode_event(event: Event) -> bytes:
    """The bytes of `plain_event`. Through msgspec where that can keep it, in a sixth of the time;
    it has no lone surrogates, no infinite numbers and no very large ones."""
    if isfinite(getattr(event, "at", 0.0)):
        try:
            rest = _fast(event)[1:]
            return _BEGINNINGS[type(event)] + (b"," if len(rest) > 1 else b"") + rest
        except (UnicodeEncodeError, OverflowError):
            pass
    return dump(plain_event(event))


def decode_event(content: bytes) -> Event:
    try:
        return event_of(load(content))
    except Wrong as wrong:
        raise Unreadable(f"an event that cannot be read: {wrong}") from None


def encode_state(state: State) -> bytes:
    encode = encoder(State)
    assert encode is not None
    return dump(encode(state))


def decode_state(content: bytes) -> State:
    """`Wrong` if it is not one. A state has no version: it is only ever read by the same code."""
    return cast(State, decoder(State)(load(content)))
