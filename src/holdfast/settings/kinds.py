"""The kinds of values: how each is read from a file, from the text of a variable, and named.

`KEYS` is made of the fields in `values`, so nothing can be set that is not a field, and no field
is forgotten.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from math import isfinite
from typing import Literal, Union, get_args, get_origin, get_type_hints

from holdfast.core.limits import Limits
from holdfast.settings.values import Amount, Table, Values

AUTO = "auto"
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Wrong(ValueError):
    """A value that is not of its kind; the text says what would be."""


@dataclass(frozen=True, slots=True)
class Kind:
    says: str
    """What a value must be, to go behind "must be"."""
    read: Callable[[object], object]
    """From what a TOML file holds. Raises `Wrong` without a text: `says` is enough."""
    parse: Callable[[str], object]
    """From the text of a variable to what a file would hold."""

    def of(self, value: object) -> object:
        try:
            return self.read(value)
        except Wrong as wrong:
            raise Wrong(str(wrong) or f"must be {self.says}") from None

    def of_text(self, text: str) -> object:
        try:
            value = self.parse(text.strip())
        except ValueError:
            raise Wrong(f"must be {self.says}") from None
        return self.of(value)


def whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong
    return value


def number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise Wrong
    return float(value)


def amount(value: object) -> object:
    if isinstance(value, float) and 0 < value < 1:
        return value
    return whole(value)


def yes(value: object) -> object:
    if not isinstance(value, bool):
        raise Wrong
    return value


def text(value: object) -> object:
    if not isinstance(value, str):
        raise Wrong
    return value


def texts(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise Wrong
    return tuple(value)


def one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else texts(value)


def numbers(value: object) -> object:
    table = open_table(value)
    for each in table.values():
        whole(each)
    return table


def open_table(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise Wrong
    return {str(key): each for key, each in value.items()}


def choice(words: Mapping[str, object], value: object) -> object:
    if not isinstance(value, str) or value not in words:
        raise Wrong
    return words[value]


def maybe(kind: Kind, value: object) -> object:
    return None if value in (AUTO, None) else kind.read(value)


def yes_or_no(given: str) -> object:
    if given.lower() not in YES + NO:
        raise ValueError
    return given.lower() in YES


def amount_of(given: str) -> object:
    return float(given) if "." in given else int(given)


def listed(given: str) -> object:
    """Words with commas between them, or a list as TOML has it, for words with a comma inside."""
    if given.startswith("["):
        return toml_of(given)
    return [word.strip() for word in given.split(",") if word.strip()]


def toml_of(given: str) -> object:
    import tomllib

    return tomllib.loads(f"value = {given}")["value"]


WHOLE = Kind("a whole number", whole, int)
NUMBER = Kind("a number", number, float)
YES_NO = Kind("true or false", yes, yes_or_no)
TEXT = Kind("a text", text, str)
TEXTS = Kind("a list of texts", texts, listed)
MODELS = Kind("the name of a model or a list of names", one_or_many, listed)
AMOUNT = Kind("a whole number, or a share of the window between 0 and 1", amount, amount_of)
NUMBERS = Kind("a table of names and whole numbers", numbers, toml_of)
TABLE = Kind("a table", open_table, toml_of)


def one_of(words: Mapping[str, object]) -> Kind:
    return Kind(f"one of {', '.join(words)}", partial(choice, words), str)


def or_auto(kind: Kind) -> Kind:
    def parse(given: str) -> object:
        return AUTO if given == AUTO else kind.parse(given)

    return Kind(f'{kind.says}, or "{AUTO}"', partial(maybe, kind), parse)


def kind_of(hint: object) -> Kind:
    """The kind of the values that a field with this type takes."""
    if hint == Amount:
        return or_auto(AMOUNT)
    if get_origin(hint) in (Union, types.UnionType):
        inner, _none = get_args(hint)
        return or_auto(kind_of(inner))
    if get_origin(hint) is Literal:
        return one_of({word: word for word in get_args(hint)})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return one_of({each.value: each for each in hint})
    if hint == Mapping[str, int]:
        return NUMBERS
    return PLAIN[hint]


PLAIN: Mapping[object, Kind] = {
    int: WHOLE, float: NUMBER, bool: YES_NO, str: TEXT, tuple[str, ...]: TEXTS,
    Table: TABLE, Mapping[str, Table]: TABLE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    """As it is written with dots: `limits.rounds`."""
    kind: Kind
    default: object

    @property
    def variable(self) -> str:
        return f"HOLDFAST_{self.name.replace('.', '_').upper()}"


DOLLARS = "limits.dollars"
"""People think of money in dollars; a run counts `cost`, in millionths of one."""
MILLION = 1_000_000


def keys() -> dict[str, Key]:
    found: dict[str, Key] = {}
    values, hints = Values(), get_type_hints(Values)
    for each in fields(Values):
        value = getattr(values, each.name)
        if not is_dataclass(value):
            kind = MODELS if each.name == "model" else kind_of(hints[each.name])
            found[each.name] = Key(each.name, kind, value)
            continue
        inside = get_type_hints(type(value))
        for inner in fields(value):
            name = f"{each.name}.{inner.name}"
            found[name] = Key(name, kind_of(inside[inner.name]), getattr(value, inner.name))
    found[DOLLARS] = Key(DOLLARS, NUMBER, Limits().cost / MILLION)
    del found["limits.cost"]
    return found


KEYS: Mapping[str, Key] = keys()
GROUPS = frozenset(name.partition(".")[0] for name in KEYS if "." in name)
OPEN = frozenset(name for name, key in KEYS.items() if key.kind is TABLE)
"""Tables whose own keys are not ours: `[mcp_servers.NAME]`, `[ui]`."""
