"""What a tool returned, as an `Output`: a text every model and disk accepts, and bytes for people.

Nothing a tool returns is an error here: what cannot be written down is described, and said to be
only a description. How much of the text a model sees is decided by its cap, elsewhere.
"""

import dataclasses
import json
import mimetypes
from collections.abc import Iterable, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TypeAlias
from uuid import UUID

from holdfast.core.messages import clean
from holdfast.tools.base import Binary, Output

DEEPEST = 50
"""Levels of a value that are written out. Below that stands a note: a model gets lost long before,
and the interpreter would end in a RecursionError a little later."""
LONGEST_REPR = 2_000
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)

Plain: TypeAlias = "str | int | float | bool | None | list[Plain] | dict[str, Plain]"


def output_of(value: object) -> Output:
    """Whatever a tool returned or yielded last, as an `Output`."""
    match value:
        case Output():
            return with_mentions(clean(value.text), value.binaries, failed=value.failed)
        case Binary():
            return with_mentions("", (value,))
        case bytes() | bytearray() | memoryview():
            return from_bytes(bytes(value))
        case BaseException():
            return Output(clean(error_text(value)), failed=True)
    writing = Writing()
    plain = writing.plain(value)
    return with_mentions(clean(text_of(plain)), tuple(writing.binaries))


def text_of(plain: Plain) -> str:
    if plain is None:
        return ""
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, separators=(", ", ": "))


def from_bytes(data: bytes) -> Output:
    """Text, if that is what the bytes are; else kept as they are, and mentioned."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return with_mentions("", (Binary(data, media_of(data)),))
    if "\0" in text:
        return with_mentions("", (Binary(data, media_of(data)),))
    return Output(text.removeprefix("\ufeff"))


def media_of(data: bytes) -> str:
    found = (media for start, media in MAGIC if data.startswith(start))
    return next(found, "application/octet-stream")


def with_mentions(text: str, binaries: tuple[Binary, ...], *, failed: bool = False) -> Output:
    """The text, with a line for each of the bytes that it does not mention yet."""
    lines = [line for line in map(mention, binaries) if line not in text]
    return Output("\n".join([*([text] if text else []), *lines]), binaries, failed)


def mention(binary: Binary) -> str:
    media = binary.media
    if media == "application/octet-stream" and binary.name:
        media = mimetypes.guess_type(binary.name)[0] or media
    name = f"{clean(binary.name)}, " if binary.name else ""
    return f"[{name}{media}, {size(len(binary.data))}: kept for the user; you cannot see it]"


def size(count: int) -> str:
    if count < 1_000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{count / 1e3:.1f} KB"
    return f"{count / 1e6:.1f} MB"


def error_text(error: BaseException) -> str:
    said = text_or_note(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def text_or_note(value: object) -> str:
    try:
        return str(value)
    except Exception as wrong:
        return described(value, f"its text could not be made: {type(wrong).__name__}")


def described(value: object, why: str) -> str:
    """What is said of a value that cannot be written down."""
    try:
        shown = repr(value)
    except Exception:
        shown = f"<{type(value).__name__}>"
    if len(shown) > LONGEST_REPR:
        shown = f"{shown[:LONGEST_REPR]}... ({len(shown)} characters)"
    return f"{shown} [only a description: {why}]"


class Writing:
    """One value on its way to plain JSON. Bytes inside it are taken out and mentioned."""

    def __init__(self) -> None:
        self.binaries: list[Binary] = []
        self.open: set[int] = set()

    def plain(self, value: object, depth: int = 0) -> Plain:
        match value:
            case Enum():  # before str and int, which it may be as well
                return self.plain(value.value, depth)
            case None | bool():
                return value
            case str():
                return str.__str__(value)
            case int():
                return (
                    int(value)
                    if abs(value) < 10**4_000
                    else f"a number of {value.bit_length()} bits"
                )
            case float():
                return float(value) if is_finite(value) else repr(float(value))
            case datetime() | date() | time():
                return value.isoformat()
            case timedelta() | Decimal() | UUID() | PurePath() | complex():
                return str(value)
            case BaseException():
                return error_text(value)
            case Output():
                self.binaries.extend(value.binaries)
                return value.text
            case Binary():
                self.binaries.append(value)
                return mention(value)
            case bytes() | bytearray() | memoryview():
                inner = from_bytes(bytes(value))
                self.binaries.extend(inner.binaries)
                return inner.text
        return self.nested(value, depth)

    def nested(self, value: object, depth: int) -> Plain:
        if id(value) in self.open:
            return "[the same again: it contains itself]"
        if depth >= DEEPEST:
            return f"[nested deeper than {DEEPEST} levels: left out]"
        self.open.add(id(value))
        try:
            return self.parts(value, depth)
        except Exception as wrong:  # foreign code: iteration, properties, serializers
            return described(value, f"reading it raised {type(wrong).__name__}")
        finally:
            self.open.discard(id(value))

    def parts(self, value: object, depth: int) -> Plain:
        dumps = getattr(value, "model_dump", None)
        if dumps is not None and not isinstance(value, type):
            return self.plain(dumps(), depth + 1)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
            return {name: self.plain(field, depth + 1) for name, field in fields}
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return self.plain(value._asdict(), depth + 1)
        if isinstance(value, Set):
            return self.listed(in_order(value), depth)
        if isinstance(value, list | tuple):
            return self.listed(value, depth)
        return described(value, f"a {type(value).__name__} cannot be written as text")

    def mapping(self, value: Mapping[object, object], depth: int) -> Plain:
        pairs = [(key, self.plain(item, depth + 1)) for key, item in value.items()]
        written: dict[str, Plain] = {self.key(key): item for key, item in pairs}
        if len(written) == len(pairs):
            return written
        return [[self.plain(key, DEEPEST), item] for key, item in pairs]  # two keys look the same

    def listed(self, items: Iterable[object], depth: int) -> Plain:
        return [self.plain(item, depth + 1) for item in items]

    def key(self, key: object) -> str:
        plain = self.plain(key, DEEPEST - 1)
        return plain if isinstance(plain, str) else text_of(plain) or "null"


def is_finite(value: float) -> bool:
    return value - value == 0


def in_order(values: Set[object]) -> list[object]:
    """A set has no order; one that changes from run to run would make equal results unequal."""
    return sorted(values, key=lambda value: (type(value).__name__, text_or_note(value)))
