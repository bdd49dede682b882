"""Values as plain JSON, and back: one encoder and one decoder for each type, made from its hints.

They are made once and are closures, so that a large state costs little more than the JSON itself.
Every field is written, also one that has its default: a default that changes later must not
change what an old log means. Fields that are not known are passed over when reading. Kinds of
events and their versions are `codec`.
"""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from sys import intern
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from holdfast.core.trail import Trail

Plain: TypeAlias = Any
"""None, a boolean, a number, a text, or a list or a dict of these."""
Encode: TypeAlias = Callable[[Any], Plain]
Decode: TypeAlias = Callable[[Plain], Any]
T = TypeVar("T")

KIND = "k"
"""Where a value of a union says which member it is."""
SHORT = 24
"""Characters of a text that is worth looking up among those there are."""


class Wrong(ValueError):
    """Plain JSON that is not the value it should be; the sentence begins with the place."""


# Not ASCII only, so that a text takes no more room than it has; and "surrogatepass", because a
# lone surrogate is a character that a tool can return, and what is written must come back as it
# was. (Escaped as \ud83d\udc00, two of them would come back as one.)
_dumps = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def dump(plain: Plain) -> bytes:
    return _dumps(plain).encode("utf-8", "surrogatepass")


def load(content: bytes) -> Plain:
    """`Wrong` if it is no JSON."""
    try:
        return json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as wrong:
        raise Wrong(f"no JSON: {wrong}") from None


# --- writing --------------------------------------------------------------------------------


@cache
def encoder(kind: Any) -> Encode | None:
    """None: the value is plain as it is."""
    if kind in (str, int, float, bool, NoneType):
        return None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("value")
    if is_dataclass(kind):
        return _object_encoder(cast(type, kind))
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union_encoder(inner)
    if origin is Trail or (origin is tuple and inner[1:] == (...,)):
        item = encoder(inner[0])
        return list if item is None else lambda many: [item(each) for each in many]
    if origin is tuple:
        items = tuple(map(encoder, inner))
        return lambda many: [
            each if item is None else item(each) for item, each in zip(items, many, strict=True)
        ]
    if origin is frozenset:
        return sorted
    raise TypeError(f"no way to write a {kind}; teach holdfast.journal.plain about it")


def _object_encoder(kind: type) -> Encode:
    hints = get_type_hints(kind)
    names = tuple(field.name for field in fields(kind))
    if not names:
        return lambda value: {}
    read: Callable[[Any], tuple[Any, ...]] = attrgetter(*names, names[0])  # always a tuple
    made = [(name, item) for name in names if (item := encoder(hints[name])) is not None]

    def encode(value: Any) -> Plain:
        plain = dict(zip(names, read(value), strict=False))
        for name, item in made:
            plain[name] = item(plain[name])
        return plain

    return encode if made else lambda value: dict(zip(names, read(value), strict=False))


def _union_encoder(kinds: tuple[Any, ...]) -> Encode | None:
    members = [kind for kind in kinds if kind is not NoneType]
    if len(members) == 1:
        only = encoder(members[0])
        return only and (lambda value: None if value is None else only(value))
    encoders = {kind: (kind.__name__, encoder(kind)) for kind in members}

    def encode(value: Any) -> Plain:
        if value is None:
            return None
        name, item = encoders[type(value)]
        return {KIND: name} | (item(value) if item else {})

    return encode


# --- reading --------------------------------------------------------------------------------


@cache
def decoder(kind: Any) -> Decode:
    if kind is str:
        return _text
    if kind is int:
        return _exactly(int, "a whole number")
    if kind is bool:
        return _exactly(bool, "true or false")
    if kind is float:
        return _number
    if kind is NoneType:
        return _exactly(NoneType, "null")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_decoder(kind)
    if is_dataclass(kind):
        return _object_decoder(cast(type, kind))
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union_decoder(inner)
    if origin is Trail:
        return _list_decoder(inner[0], Trail.of)
    if origin is frozenset:
        return _list_decoder(inner[0], frozenset)
    if origin is tuple and inner[1:] == (...,):
        return _list_decoder(inner[0], tuple)
    if origin is tuple:
        return _tuple_decoder(inner)
    raise TypeError(f"no way to read a {kind}; teach holdfast.journal.plain about it")


def _text(plain: Plain) -> str:
    if type(plain) is not str:
        raise Wrong(f"a text was expected, not {shown(plain)}")
    # Ids and names of tools come again and again: one of each is enough for all sessions.
    return intern(plain) if len(plain) <= SHORT else plain


def _exactly(kind: type, what: str) -> Decode:
    def decode(plain: Plain) -> Any:
        if type(plain) is not kind:
            raise Wrong(f"{what} was expected, not {shown(plain)}")
        return plain

    return decode


def _number(plain: Plain) -> float:
    if type(plain) is float or type(plain) is int:
        return plain
    raise Wrong(f"a number was expected, not {shown(plain)}")


def _enum_decoder(kind: type[Enum]) -> Decode:
    members = {member.value: member for member in kind}

    def decode(plain: Plain) -> Enum:
        try:
            return members[plain]
        except (KeyError, TypeError):
            raise Wrong(f"no {kind.__name__} is called {shown(plain)}") from None

    return decode


def _object_decoder(kind: type) -> Decode:
    hints = get_type_hints(kind)
    items = tuple((field.name, decoder(hints[field.name])) for field in fields(kind))

    def decode(plain: Plain) -> Any:
        if type(plain) is not dict:
            raise Wrong(f"an object was expected, not {shown(plain)}")
        given = {}
        name = ""
        try:
            for name, item in items:
                if name in plain:
                    given[name] = item(plain[name])
        except Wrong as wrong:
            raise Wrong(f"{kind.__name__}.{name}: {wrong}") from None
        try:
            return kind(**given)
        except (TypeError, ValueError) as wrong:
            raise Wrong(f"{kind.__name__}: {wrong}") from None

    return decode


def _union_decoder(kinds: tuple[Any, ...]) -> Decode:
    members = [kind for kind in kinds if kind is not NoneType]
    optional = len(members) < len(kinds)
    if len(members) == 1:
        only = decoder(members[0])
        return lambda plain: None if plain is None else only(plain)
    decoders = {kind.__name__: decoder(kind) for kind in members}

    def decode(plain: Plain) -> Any:
        if plain is None and optional:
            return None
        name = plain.get(KIND) if type(plain) is dict else None
        if type(name) is not str or name not in decoders:
            raise Wrong(f"one of {', '.join(decoders)} was expected, not {shown(plain)}")
        return decoders[name](plain)

    return decode


def _list_decoder(kind: Any, make: Callable[[list[Any]], Any]) -> Decode:
    item = decoder(kind)

    def decode(plain: Plain) -> Any:
        if type(plain) is not list:
            raise Wrong(f"a list was expected, not {shown(plain)}")
        return make([item(each) for each in plain])

    return decode


def _tuple_decoder(kinds: tuple[Any, ...]) -> Decode:
    items = tuple(map(decoder, kinds))

    def decode(plain: Plain) -> Any:
        if type(plain) is not list or len(plain) != len(items):
            raise Wrong(f"a list of {len(items)} was expected, not {shown(plain)}")
        return tuple(item(each) for item, each in zip(items, plain, strict=True))

    return decode


def shown(plain: Plain) -> str:
    text = repr(plain)
    return text if len(text) <= 60 else f"{text[:57]}..."
