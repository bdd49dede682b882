"""From the text of a call's arguments to arguments that its tool can take.

Small models write `"3"` for 3 and one value for a list of them. Where that can mean only one thing
it is taken as meant; a value that is right as it stands is never changed. What has two readings is
refused, with a sentence from which the model can put it right. Text that is not even JSON was
already mended, or not, where the reply was read.

Read as meant:

- a number or `true` in quotes, 0 and 1 for a boolean, a whole number where text is wanted;
- an object or a list written as JSON text;
- one value where a list is wanted, unless it holds a comma or a line break and may be several;
- a choice in other capitals, a name in other capitals or with other dashes;
- null, or `""` and `"null"` where no text is wanted, for something that may be left out: left out.

A property that the tool does not know is left out only if it says nothing (null, empty) or is a
remark (`reason`). Anything else might be what the call depends on, as `dry_run` would be.
"""

import re
from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from itertools import islice

from holdfast.core.jsontext import STRICT, json_object, parsed
from holdfast.core.messages import clean
from holdfast.tools.base import Arguments, BadArguments
from holdfast.tools.schema import (
    Book,
    Schema,
    TooMuch,
    is_a,
    listed,
    properties_of,
    required_of,
    types_of,
)

REMARKS = {"comment", "explanation", "justification", "reason", "reasoning", "thought", "thoughts"}
NOTHING = {"", "null", "none"}
WHOLE = re.compile(r"[+-]?\d{1,300}(\.0+)?")
NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
MOST_PROBLEMS = 8
LONGEST_NAME = 64
"""Characters of a name that is held against others. It takes the square of them."""
NAMES_COMPARED = 500
ALMOST = 0.85


def reader(schema: str, *, closed: bool = False) -> Callable[[str], Arguments]:
    """Reads arguments for a JSON schema; `ValueError` if it is none.

    What comes out is valid against the schema. `closed`: properties that it does not name are
    refused, though it does not forbid them.
    """
    book = Book(json_object(schema), closed=closed)

    def read(text: str) -> Arguments:
        given = given_arguments(text, book)
        book.begin(len(text))
        try:
            meant = Reading(book).meant_by(given)
            problems = sentences(book, meant)
        except TooMuch as wrong:
            raise BadArguments(f"The arguments cannot be taken: {wrong}.") from None
        if problems:
            raise BadArguments(f"{' '.join(problems)} Expected: {book.shape(book.root)}")
        return meant

    return read


def given_arguments(text: str, book: Book) -> dict[str, object]:
    try:
        return json_object(text) if text.strip() else {}
    except ValueError as wrong:
        raise BadArguments(
            f"The arguments must be one JSON object ({wrong}). Expected: {book.shape(book.root)}"
        ) from None


def sentences(book: Book, value: dict[str, object]) -> list[str]:
    problems = book.problems(value)
    # Only for what is said: looking for a name that may be meant takes long.
    said = [f"{one}.{hint(one.at, book, value)}" for one in problems[:MOST_PROBLEMS]]
    left = len(problems) - len(said)
    return [*said, f"And {left} more."] if left else said or suspicions(book, value)


def hint(at: str, book: Book, value: dict[str, object]) -> str:
    """Of a property of the arguments that is unknown: the one that may be meant."""
    known = properties_of(book.meant(book.root))
    if at not in value or at in known:
        return ""
    close = closest(at, [name for name in known if name not in value])
    return f" Did you mean '{close}'?" if close else ""


def suspicions(book: Book, value: dict[str, object]) -> list[str]:
    """A schema that merely does not forbid other properties was not made to take slips."""
    schema = book.meant(book.root)
    if "additionalProperties" in schema or "patternProperties" in schema:
        return []
    known = properties_of(schema)
    absent = [name for name in known if name not in value]
    unknown = islice((name for name in value if name not in known), MOST_PROBLEMS)
    close = ((name, closest(name, absent, ALMOST)) for name in unknown)
    return [f"{name}: is unknown. Did you mean '{it}'?" for name, it in close if it]


def closest(name: str, known: list[str], alike: float = 0.6) -> str:
    """The known name that is most like this one; empty if none is like it."""
    if len(name) > LONGEST_NAME:
        return ""
    short = [one for one in known if len(one) <= LONGEST_NAME]
    return next(iter(get_close_matches(name, short[:NAMES_COMPARED], 1, alike)), "")


class Reading:
    """One object on its way to being what its schema asks for, as far as that is safe."""

    def __init__(self, book: Book) -> None:
        self.book = book

    def meant_by(self, given: dict[str, object]) -> dict[str, object]:
        meant = self.meant(given, self.book.root)
        return meant if isinstance(meant, dict) else given

    def meant(self, value: object, schema: object) -> object:
        self.book.step()
        if isinstance(value, float) and finite(value) is None:
            raise TooMuch("a number in them is too large")
        schema = self.book.meant(schema)
        if isinstance(value, str):
            value = encodable(value)
        if not schema and not isinstance(value, dict | list):
            return value
        choices = listed(schema, "anyOf") or listed(schema, "oneOf")
        if choices:
            return self.one_of(value, choices)
        value = self.retyped(value, schema)
        if isinstance(value, dict):
            return self.members(value, schema)
        if isinstance(value, list):
            first = listed(schema, "prefixItems")
            rest = schema.get("items", True)
            parts = [*first, *[rest] * (len(value) - len(first))]
            return [self.meant(item, part) for item, part in zip(value, parts, strict=False)]
        return value

    def one_of(self, value: object, choices: list[object]) -> object:
        for choice in choices:
            if self.book.fits(value, choice):
                return self.meant(value, choice)
        for choice in choices:
            meant = self.meant(value, choice)
            if self.book.fits(meant, choice):
                return meant
        return value

    def members(self, value: dict[str, object], schema: Schema) -> dict[str, object]:
        known, required = properties_of(schema), required_of(schema)
        others = self.book.others(schema)
        meant: dict[str, object] = {}
        spelling = spellings(value, schema)
        for key, item in value.items():
            name = spelling.get(key, encodable(key))
            if name in known:
                if name in required or not self.says_nothing(item, known[name]):
                    meant[name] = self.meant(item, known[name])
            elif others is not False:
                meant[name] = self.meant(item, others)
            elif not (item in (None, "", [], {}) or name.lower() in REMARKS):
                meant[name] = item
        return meant

    def says_nothing(self, item: object, schema: object) -> bool:
        empty = item is None or (isinstance(item, str) and item.strip().lower() in NOTHING)
        return empty and not self.book.fits(item, schema)

    def retyped(self, value: object, schema: Schema) -> object:
        """`value` as the first type of the schema that it can only mean."""
        types, choices = types_of(schema), listed(schema, "enum")
        self.book.step(len(choices) // 16)
        if not types or any(is_a(value, kind) for kind in types):
            value = whole(value) if "integer" in types else value
            return chosen(value, choices)
        for kind in types:
            found = self.as_kind(value, kind, schema)
            if found is not None:
                return chosen(found, choices)
        return value

    def as_kind(self, value: object, kind: str, schema: Schema) -> object:
        """None if the value can mean nothing of this kind."""
        text = value.strip() if isinstance(value, str) else ""
        match kind:
            case "integer" if WHOLE.fullmatch(text):
                return int(text.partition(".")[0])
            case "number" if NUMBER.fullmatch(text):
                number = float(text)
                return int(text) if text.lstrip("+-").isdecimal() else finite(number)
            case "boolean" if text.lower() in ("true", "false"):
                return text.lower() == "true"
            case "boolean" if value in (0, 1) and not isinstance(value, float):
                return value == 1
            case "string" if isinstance(value, int) and not isinstance(value, bool):
                return str(value) if abs(value) < 10**300 else None
            case "object" if text.startswith("{"):
                return written(text)
            case "array" if text.startswith("["):
                return written(text)
            case "array":
                return self.as_list(value, schema)
        return None

    def as_list(self, value: object, schema: Schema) -> list[object] | None:
        if value is None or (isinstance(value, str) and may_be_several(value)):
            return None
        item = schema.get("items", True)
        meant = self.meant(value, item)
        return [meant] if self.book.fits(meant, item) else None


def whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value == value // 1 else value


def finite(number: float) -> float | None:
    return number if number - number == 0 else None


def may_be_several(text: str) -> bool:
    return text.strip().lower() in NOTHING or "," in text or "\n" in text


def written(text: str) -> object:
    try:
        return parsed(text, STRICT)
    except ValueError:
        return None


def chosen(value: object, choices: list[object]) -> object:
    """The choice that differs from `value` only in its capitals, if there is just one."""
    if not isinstance(value, str) or value in choices:
        return value
    alike = [
        choice
        for choice in choices
        if isinstance(choice, str) and choice.casefold() == value.strip().casefold()
    ]
    return alike[0] if len(alike) == 1 else value


def spellings(value: dict[str, object], schema: Schema) -> dict[str, str]:
    """For each key that names one property in another spelling, which nothing else gives: that
    property."""
    known = properties_of(schema)
    unknown = value.keys() - known
    if not unknown or schema.get("additionalProperties", False) is not False:
        return {}
    alike, rivals = Counter(map(bare, known)), Counter(map(bare, value))
    named = {bare(name): name for name in known}
    single = (key for key in unknown if alike[bare(key)] == 1 and rivals[bare(key)] == 1)
    return {key: named[bare(key)] for key in single}


def bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()


def encodable(text: str) -> str:
    """Without lone surrogates, which no file and no server takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return clean(text)
    return text
