"""An event as a row: its body, and beside it what is large or the same in every run.

Long texts and the settings of a run are blobs, stored once under the hash of their content; the
body holds the key in their place. So the rows stay small, and a hundred runs with the same system
prompt and tools cost it once.
"""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeAlias, cast

from holdfast.core.events import Event, UserSpoke
from holdfast.core.limits import Settings
from holdfast.journal.codec import Unreadable, encode_event, event_of, plain_event
from holdfast.journal.plain import Plain, Wrong, decoder, dump, load

LARGE = 16_384
"""Characters from which on a text is a blob."""
WORTH_PACKING = 512
ASIDE = "$"
"""Stands, with the key of a blob, where a text or the settings were."""

Fetch: TypeAlias = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Row:
    body: bytes
    aside: tuple[tuple[str, bytes], ...] = ()
    """Key and content of each blob that the body points to."""


def key_of(content: bytes) -> str:
    return sha256(content).hexdigest()


def row_of(event: Event) -> Row:
    has_settings = type(event) is UserSpoke and event.settings is not None
    if not has_settings and len(body := encode_event(event)) <= LARGE:
        return Row(body)
    plain = plain_event(event)
    aside: dict[str, bytes] = {}
    if has_settings:
        plain["settings"] = put_aside(dump(plain["settings"]), aside)
    return Row(dump(without_large(plain, aside)), tuple(aside.items()))


def put_aside(content: bytes, aside: dict[str, bytes]) -> Plain:
    key = key_of(content)
    aside[key] = content
    return {ASIDE: key}


def without_large(plain: Plain, aside: dict[str, bytes]) -> Plain:
    if type(plain) is str and len(plain) > LARGE:
        return put_aside(plain.encode("utf-8", "surrogatepass"), aside)
    if type(plain) is dict:
        return {name: without_large(each, aside) for name, each in plain.items()}
    if type(plain) is list:
        return [without_large(each, aside) for each in plain]
    return plain


class Reading:
    """Makes events of rows. Settings that several runs share are decoded once."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._settings: dict[str, Settings] = {}

    def event(self, body: bytes, *, aside: bool) -> Event:
        """`Unreadable` if it is none."""
        try:
            plain = load(body)
            return self._whole(plain) if aside and type(plain) is dict else event_of(plain)
        except Wrong as wrong:
            raise Unreadable(f"an event that cannot be read: {wrong}") from None

    def _whole(self, plain: dict[str, Plain]) -> Event:
        settings = plain.get("settings")
        key = settings.get(ASIDE) if type(settings) is dict else None
        if key is None:
            return event_of(self._with_large(plain))
        event = event_of(self._with_large(plain | {"settings": None}))
        assert isinstance(event, UserSpoke)
        return replace(event, settings=self._settings_of(key))

    def _settings_of(self, key: str) -> Settings:
        if key not in self._settings:
            self._settings[key] = cast(Settings, decoder(Settings)(load(self._fetch(key))))
        return self._settings[key]

    def _with_large(self, plain: Plain) -> Plain:
        if type(plain) is dict:
            if plain.keys() == {ASIDE}:
                return self._fetch(plain[ASIDE]).decode("utf-8", "surrogatepass")
            return {name: self._with_large(each) for name, each in plain.items()}
        if type(plain) is list:
            return [self._with_large(each) for each in plain]
        return plain


def packed(content: bytes) -> tuple[bool, bytes]:
    """Smaller, if that helps."""
    if len(content) >= WORTH_PACKING:
        small = zlib.compress(content, 1)
        if len(small) < len(content) * 0.9:
            return True, small
    return False, content


def unpacked(content: bytes, *, is_packed: bool) -> bytes:
    return zlib.decompress(content) if is_packed else content


def rows_of(events: Iterable[Event]) -> list[Row]:
    return [row_of(event) for event in events]
