"""JSON schemas: what they ask for, in words, and whether a value is that.

The keywords that tools use are checked here, because the `jsonschema` package takes longer to
import than most tools take to run. A schema with any other keyword is checked by that package as
well. Nothing is ever fetched: a reference that leads out of its schema allows everything.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from holdfast.core.jsontext import dumped, one_line

Schema: TypeAlias = dict[str, object]
Rest: TypeAlias = Callable[[object], Iterator["Problem"]]

ANYTHING: Schema = {}
NEVER: Schema = {"enum": []}
"""What `false` means as a schema."""
NOTES = {
    "$comment", "$defs", "$schema", "default", "definitions", "deprecated", "description",
    "examples", "format", "readOnly", "title", "writeOnly",
}  # fmt: skip
"""Keywords that refuse nothing."""
TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
LONGEST_SHAPE = 600
DEEPEST_SHAPE = 4
LONGEST_VALUE = 60
MOST_STEPS = 50_000
"""How often a part of a value is held against a part of its schema, before the size of the value is
added. Choices inside choices could otherwise keep the event loop busy for minutes."""


class TooMuch(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Problem:
    at: str
    say: Callable[[], str]
    """What is wrong. Made only if someone is told: most problems are found by trying choices."""

    def __str__(self) -> str:
        return f"{self.at}: {self.say()}" if self.at else self.say()


class Book:
    """One schema with its definitions, ready to check values."""

    def __init__(self, root: Schema, *, closed: bool = False) -> None:
        """`closed`: an object with properties takes no others, unless its schema says that it
        does. JSON Schema has it the other way round."""
        self.root = root
        self.closed = closed
        self.steps = MOST_STEPS
        self.rest: Rest | None = None if self.knows(root) else by_jsonschema(root, self.step)

    def begin(self, size: int) -> None:
        """From here on, for a value that is so many characters long."""
        self.steps = MOST_STEPS + 4 * size

    def step(self, cost: int = 1) -> None:
        self.steps -= cost
        if self.steps < 0:
            raise TooMuch("they are too large or too deeply nested to be checked")

    def problems(self, value: object) -> list[Problem]:
        found = list(self.found(value, self.root, ""))
        return found if found or self.rest is None else list(self.rest(value))

    def fits(self, value: object, schema: object) -> bool:
        return next(self.found(value, schema, ""), None) is None

    def meant(self, schema: object) -> Schema:
        """The schema, or the one that it refers to."""
        for _ in range(len(TYPES) * 3):
            if not isinstance(schema, dict):
                return NEVER if schema is False else ANYTHING
            if "$ref" not in schema or not isinstance(schema["$ref"], str):
                return schema
            target = pointed(self.root, str(schema["$ref"]))
            schema = True if target is None else target
        return ANYTHING  # it refers to itself

    def found(self, value: object, schema: object, at: str) -> Iterator[Problem]:
        self.step()
        schema = self.meant(schema)
        if not schema:
            return
        branches = schema.get("anyOf")
        if isinstance(branches, list) and not any(self.fits(value, one) for one in branches):
            yield Problem(at, lambda: unlike(self.shape(schema), value))
            return
        types = types_of(schema)
        if types and not any(is_a(value, kind) for kind in types):
            yield Problem(at, lambda: unlike(self.wanted(schema), value))
            return
        self.step(len(listed(schema, "enum")) // 16)
        if not is_choice(value, schema):
            yield Problem(at, lambda: unlike(self.wanted(schema), value))
            return
        yield from bounds(value, schema, at)
        if isinstance(value, dict):
            yield from self.in_object(value, schema, at)
        if isinstance(value, list):
            first = schema.get("prefixItems")
            firsts: list[object] = first if isinstance(first, list) else []
            for index, item in enumerate(value):
                part = firsts[index] if index < len(firsts) else schema.get("items", True)
                yield from self.found(item, part, f"{at}[{index}]")

    def in_object(self, value: dict[str, object], schema: Schema, at: str) -> Iterator[Problem]:
        properties = properties_of(schema)
        for name in required_of(schema):
            if name not in value:
                yield Problem(inside(at, name), partial(self.missing, properties.get(name, True)))
        others = self.others(schema)
        for name, item in value.items():
            if name in properties:
                yield from self.found(item, properties[name], inside(at, name))
            elif others is False:
                yield Problem(inside(at, name), lambda: "is unknown")
            else:
                yield from self.found(item, others, inside(at, name))

    def missing(self, schema: object) -> str:
        return f"is missing; expected {self.wanted(self.meant(schema))}"

    def others(self, schema: Schema) -> object:
        """The schema of properties that are not named, False if there may be none."""
        ours = not (self.closed and "properties" in schema)
        return schema.get("additionalProperties", ours)

    def wanted(self, schema: Schema) -> str:
        """What is expected, in a few words."""
        if "enum" in schema or "const" in schema or "anyOf" in schema:
            return self.shape(schema)
        return " or ".join(TYPES.get(kind, kind) for kind in types_of(schema)) or "a value"

    def shape(self, schema: object, depth: int = 0) -> str:
        """The schema on one line: `{path: string, limit?: integer}`."""
        schema = self.meant(schema)
        if isinstance(choices := schema.get("enum"), list):
            return joined(map(dumped, choices), " | ", 200) or "nothing"
        if "const" in schema:
            return dumped(schema["const"])
        if depth >= DEEPEST_SHAPE:
            return " | ".join(types_of(schema)) or "any"
        if isinstance(branches := schema.get("anyOf", schema.get("oneOf")), list):
            shapes = (self.shape(branch, depth + 1) for branch in branches)
            return joined(shapes, " | ", LONGEST_SHAPE)
        properties = properties_of(schema)
        if properties:
            required = set(required_of(schema))
            fields = (
                f"{name}{'' if name in required else '?'}: {self.shape(part, depth + 1)}"
                for name, part in properties.items()
            )
            return f"{{{joined(fields, ', ', LONGEST_SHAPE)}}}"
        if "items" in schema:
            return f"[{self.shape(schema['items'], depth + 1)}, ...]"
        return " | ".join(types_of(schema)) or "any"

    def knows(self, schema: object, depth: int = 0) -> bool:
        """Everything that the schema refuses is refused by `found`."""
        if isinstance(schema, bool):
            return True
        if not isinstance(schema, dict) or depth > 40:
            return False
        if "$ref" in schema:
            own = set(schema) - NOTES
            return own == {"$ref"} and pointed(self.root, str(schema["$ref"])) is not None
        for key, part in schema.items():
            if key not in NOTES and not (key in KNOWN and KNOWN[key](part)):
                return False
        parts = [*listed(schema, "anyOf"), *listed(schema, "prefixItems")]
        parts += properties_of(schema).values()
        parts += [schema[key] for key in ("items", "additionalProperties") if key in schema]
        parts += [part for key in ("$defs", "definitions") for part in named(schema, key).values()]
        return all(self.knows(part, depth + 1) for part in parts)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


KNOWN: Mapping[str, Callable[[object], bool]] = {
    "type": lambda v: v in TYPES if isinstance(v, str) else is_text_list(v) and set(v) <= set(TYPES),  # type: ignore[call-overload]
    "enum": lambda v: isinstance(v, list) and bool(v) and all(map(is_scalar, v)),
    "const": is_scalar,
    "properties": lambda v: isinstance(v, dict),
    "required": is_text_list,
    "additionalProperties": lambda v: isinstance(v, bool | dict),
    "items": lambda v: isinstance(v, bool | dict),
    "prefixItems": lambda v: isinstance(v, list) and bool(v),
    "anyOf": lambda v: isinstance(v, list) and bool(v),
    "minimum": is_number, "maximum": is_number,
    "exclusiveMinimum": is_number, "exclusiveMaximum": is_number,
    "minLength": is_count, "maxLength": is_count, "minItems": is_count, "maxItems": is_count,
}  # fmt: skip
LIMITS = {key for key in KNOWN if key.startswith(("min", "max", "exclusive"))}
BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", lambda have, limit: have >= limit),
    ("maximum", "at most", lambda have, limit: have <= limit),
    ("exclusiveMinimum", "more than", lambda have, limit: have > limit),
    ("exclusiveMaximum", "less than", lambda have, limit: have < limit),
)


def bounds(value: object, schema: Schema, at: str) -> Iterator[Problem]:
    if schema.keys().isdisjoint(LIMITS):
        return
    if isinstance(value, int | float) and not isinstance(value, bool):
        for key, words, holds in BOUNDS:
            limit = schema.get(key)
            if isinstance(limit, int | float) and is_number(limit) and not holds(value, limit):
                yield Problem(at, partial(unlike, f"{words} {limit}", value))
    for kind, suffix, unit in ((str, "Length", "characters"), (list, "Items", "items")):
        if isinstance(value, str | list) and isinstance(value, kind):
            least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
            if isinstance(least, int) and len(value) < least:
                yield Problem(at, partial(unlike, f"at least {least} {unit}", len(value)))
            if isinstance(most, int) and len(value) > most:
                yield Problem(at, partial(unlike, f"at most {most} {unit}", len(value)))


def is_a(value: object, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return is_number(value) and (isinstance(value, int) or value == value // 1)  # type: ignore[operator]
        case "number":
            return is_number(value)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "null":
            return value is None
    return True  # a type we have not heard of: `jsonschema` refuses the whole schema


def is_choice(value: object, schema: Schema) -> bool:
    choices = listed(schema, "enum") if isinstance(schema.get("enum"), list) else None
    if choices is not None and not any(same(value, choice) for choice in choices):
        return False
    return "const" not in schema or same(value, schema["const"])


def same(one: object, other: object) -> bool:
    """As JSON has it: `true` is not 1, but 1.0 is."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def types_of(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(map(str, kind)) if isinstance(kind, list) else ()


def properties_of(schema: Schema) -> dict[str, object]:
    return named(schema, "properties")


def required_of(schema: Schema) -> list[str]:
    return [str(name) for name in listed(schema, "required")]


def named(schema: Schema, key: str) -> dict[str, object]:
    found = schema.get(key)
    return found if isinstance(found, dict) else {}


def listed(schema: Schema, key: str) -> list[object]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def pointed(root: object, ref: str) -> object:
    """The part of a schema that a local reference names; None if it leads anywhere else."""
    if ref == "#":
        return root
    if not ref.startswith("#/"):
        return None
    for step in ref[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, dict) or step not in root:
            return None
        root = root[step]
    return root


def by_jsonschema(root: Schema, step: Callable[[int], None]) -> Rest:
    from holdfast.tools.keywords import rest_of

    return rest_of(root, step)


def unlike(wanted: str, value: object) -> str:
    return f"expected {wanted}, got {shown(value)}"


def shown(value: object) -> str:
    return shortened(one_line(dumped(value)), LONGEST_VALUE)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def joined(texts: Iterable[str], between: str, most: int) -> str:
    """As many of the texts as can be shown; the others are not even made."""
    made = ""
    for text in texts:
        made += f"{between}{text}" if made else text
        if len(made) > most:
            break
    return shortened(made, most)


def inside(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
