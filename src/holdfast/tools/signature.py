"""What a function takes: the JSON schema of its parameters, and how to make them from JSON.

Schemas are sent with every request, so they hold nothing that a model can do without. Plain types,
enums, typed dicts and dataclasses are read here; anything else is left to pydantic, which is
imported only then.
"""

import dataclasses
import inspect
import types
from collections import abc
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from holdfast.core.jsontext import dumped
from holdfast.tools.base import Context
from holdfast.tools.docstrings import described
from holdfast.tools.schema import Book

Make: TypeAlias = Callable[[Any], object]
Part: TypeAlias = dict[str, object]

LONGEST_DEFAULT = 40
TYPES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
LISTS = (list, tuple, set, frozenset, abc.Sequence, abc.Iterable, abc.Collection, abc.Set)


class NotPlain(Exception):
    """A type that is not read here."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A type: its schema, and what makes a value of it from JSON that the schema allows."""

    schema: Part
    make: Make | None = None
    """None: the JSON value is the value."""


@dataclass(frozen=True, slots=True)
class Signature:
    schema: str
    description: str
    makers: Mapping[str, Make]
    context: str = ""
    """The parameter that gets the context; else empty."""
    paths: tuple[str, ...] = ()
    """Parameters that are paths of files."""

    def made(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Python values for arguments that are valid against the schema."""
        own = deepcopy(dict(arguments))  # a function may change what it is given
        return {k: self.makers[k](v) if k in self.makers else v for k, v in own.items()}


def signature_of(function: Callable[..., object], name: str) -> Signature:
    """`TypeError` if a model could not be told what the function takes."""
    parameters = inspect.signature(function).parameters
    hints = hints_of(function, name)
    context = ""
    taken: dict[str, object] = {}
    for parameter in parameters.values():
        hint = hints.get(parameter.name, parameter.empty)
        if is_context(hint):
            context = parameter.name
            continue
        refuse_nameless(parameter, name)
        taken[parameter.name] = hint if hint is not parameter.empty else guessed(parameter.default)
    read = {each: plain_or_none(hint, parameters[each].default) for each, hint in taken.items()}
    foreign = {each: taken[each] for each, plain in read.items() if plain is None}
    more, definitions = by_pydantic(foreign, parameters, name) if foreign else ({}, {})
    told = described(function.__doc__, taken.keys())
    properties: dict[str, Part] = {}
    makers: dict[str, Make] = {}
    for each in taken:
        plain = read[each] or more[each]
        properties[each] = finished(plain.schema, told.parameters, parameters[each])
        if plain.make is not None:
            makers[each] = plain.make
    required = [each for each in taken if parameters[each].default is inspect.Parameter.empty]
    schema: Part = {"type": "object", "properties": properties}
    schema |= {"required": required} if required else {}
    schema |= {"$defs": definitions} if definitions else {}
    paths = tuple(each for each, hint in taken.items() if is_path(hint))
    return Signature(dumped(schema), told.text, makers, context, paths)


def hints_of(function: Callable[..., object], name: str) -> dict[str, object]:
    target = function if hasattr(function, "__annotations__") else type(function).__call__
    try:
        return get_type_hints(getattr(function, "func", target), include_extras=True)
    except NameError as wrong:
        raise TypeError(
            f"an annotation of the tool {name} cannot be read: {wrong}. Import the type at the top "
            "of the module, not under TYPE_CHECKING and not inside a function."
        ) from None


def refuse_nameless(parameter: inspect.Parameter, name: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(
            f"the tool {name} takes {parameter}; a model must be told each parameter by name."
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(
            f"the parameter {parameter.name} of the tool {name} cannot be given by name."
        )
    if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise TypeError(
            f"the tool {name} is a method without its object; decorate the bound one: "
            f"tool(thing.{name})."
        )


def guessed(default: object) -> object:
    """The type of a parameter without annotation."""
    return type(default) if type(default) in (str, int, float, bool) else Any


def is_context(hint: object) -> bool:
    return hint is Context or Context in get_args(hint)


def is_path(hint: object) -> bool:
    return hint is Path or (get_origin(hint) in (Annotated, *UNIONS) and Path in get_args(hint))


def plain_or_none(hint: object, default: object) -> Plain | None:
    try:
        return plain(hint, without_null=default is None)
    except NotPlain:
        return None


UNIONS = (Union, types.UnionType)


def plain(hint: Any, seen: Collection[object] = (), *, without_null: bool = False) -> Plain:
    if hint in (Any, object):
        return Plain({})
    if isinstance(hint, type) and hint in TYPES:
        return Plain({"type": TYPES[hint]}, float if hint is float else None)
    if hint is None:
        return Plain({"type": "null"})
    if hint is Path:
        return Plain({"type": "string"}, Path)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return annotated(hint, seen, without_null=without_null)
    if origin is Literal:
        return Plain(choices(list(parts)))
    if origin in UNIONS:
        return union([part for part in parts if not (without_null and part is type(None))], seen)
    if origin in LISTS or hint in LISTS:
        return collection(origin or hint, parts, seen)
    if origin in (dict, abc.Mapping) or hint in (dict, abc.Mapping):
        return mapping(parts, seen)
    if not isinstance(hint, type) or hint in seen:
        raise NotPlain
    if issubclass(hint, Enum):
        return enumeration(hint)
    if is_typeddict(hint):
        return typed_dict(hint, [*seen, hint])
    if dataclasses.is_dataclass(hint) and not hasattr(hint, "__pydantic_validator__"):
        return record(hint, [*seen, hint])
    raise NotPlain


def annotated(hint: Any, seen: Collection[object], *, without_null: bool) -> Plain:
    inner, *notes = get_args(hint)
    if not all(isinstance(note, str) for note in notes):
        raise NotPlain
    read = plain(inner, seen, without_null=without_null)
    return Plain({**read.schema, "description": " ".join(notes)}, read.make)


def choices(values: list[object]) -> Part:
    kinds = {TYPES.get(type(value)) for value in values}
    if None in kinds:
        raise NotPlain
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def enumeration(hint: type[Enum]) -> Plain:
    members = list(hint)
    if not members:
        raise NotPlain
    return Plain(choices([member.value for member in members]), hint)


def union(parts: list[Any], seen: Collection[object]) -> Plain:
    read = [plain(part, seen) for part in parts]
    if len(read) == 1:
        return read[0]
    schema = either([each.schema for each in read])
    if all(each.make in (None, float) for each in read):
        return Plain(schema)
    book = Book(schema, closed=True)

    def make(value: object) -> object:
        """By the first branch that takes the value."""
        branch = next(each for each in read if book.fits(value, each.schema))
        return branch.make(value) if branch.make is not None else value

    return Plain(schema, make)


def either(schemas: list[Any]) -> Part:
    if all(set(schema) == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def collection(kind: Any, parts: tuple[Any, ...], seen: Collection[object]) -> Plain:
    fixed = kind is tuple and parts and parts[-1] is not Ellipsis
    if fixed:
        return fixed_tuple(parts, seen)
    item = plain(parts[0], seen) if parts else Plain({})
    schema: Part = {"type": "array"}
    schema |= {"items": item.schema} if item.schema else {}
    build: Callable[..., object] = kind if kind in (tuple, set, frozenset) else list
    build = frozenset if kind is abc.Set else build
    make = item.make
    if make is None:
        return Plain(schema, None if build is list else build)
    return Plain(schema, lambda values: build(make(value) for value in values))


def fixed_tuple(parts: tuple[Any, ...], seen: Collection[object]) -> Plain:
    items = [plain(part, seen) for part in parts]
    first = items[0].schema
    like = all(item.schema == first for item in items)
    schema: Part = {"type": "array"}
    schema |= {"items": first} if like else {"prefixItems": [item.schema for item in items]}
    schema |= {"minItems": len(items), "maxItems": len(items)}
    makers = [item.make or same for item in items]
    return Plain(
        schema, lambda values: tuple(make(v) for make, v in zip(makers, values, strict=True))
    )


def same(value: object) -> object:
    return value


def mapping(parts: tuple[Any, ...], seen: Collection[object]) -> Plain:
    if parts and parts[0] is not str:
        raise NotPlain
    item = plain(parts[1], seen) if parts else Plain({})
    schema: Part = {"type": "object"}
    schema |= {"additionalProperties": item.schema} if item.schema else {}
    make = item.make
    if make is None:
        return Plain(schema)
    return Plain(schema, lambda values: {key: make(value) for key, value in values.items()})


def typed_dict(hint: Any, seen: Collection[object]) -> Plain:
    fields: dict[str, Plain] = {}
    required: list[str] = []
    for name, part in get_type_hints(hint, include_extras=True).items():
        needed = name in hint.__required_keys__
        if get_origin(part) in (Required, NotRequired):
            needed = get_origin(part) is Required
            part = get_args(part)[0]
        fields[name] = plain(part, seen)
        required += [name] if needed else []
    return Plain(*object_of(fields, required, dict))


def record(hint: Any, seen: Collection[object]) -> Plain:
    """A dataclass."""
    hints = get_type_hints(hint, include_extras=True)
    given = [each for each in dataclasses.fields(hint) if each.init]
    if {each.name for each in given} != set(inspect.signature(hint).parameters):
        raise NotPlain  # it has an `__init__` of its own, or an `InitVar`
    empty = dataclasses.MISSING
    fields: dict[str, Plain] = {}
    required: list[str] = []
    told = described(hint.__doc__, hints.keys()).parameters
    for each in given:
        needed = each.default is empty and each.default_factory is empty
        read = plain(hints[each.name], seen, without_null=each.default is None)
        shown = short_default(each.default) if each.default is not empty else {}
        note: Part = {"description": told[each.name]} if each.name in told else {}
        fields[each.name] = Plain({**read.schema, **note, **shown}, read.make)
        required += [each.name] if needed else []
    return Plain(*object_of(fields, required, lambda values: hint(**values)))


def object_of(fields: dict[str, Plain], required: list[str], build: Make) -> tuple[Part, Make]:
    makers = {name: each.make for name, each in fields.items() if each.make is not None}
    schema: Part = {
        "type": "object",
        "properties": {name: each.schema for name, each in fields.items()},
    }
    schema |= {"required": required} if required else {}

    def make(values: dict[str, object]) -> object:
        return build({k: makers[k](v) if k in makers else v for k, v in values.items()})

    return schema, make


def finished(schema: Part, told: Mapping[str, str], parameter: inspect.Parameter) -> Part:
    """The schema of a parameter with its description and default."""
    note: Part = {}
    if parameter.name in told and "description" not in schema:
        note = {"description": told[parameter.name]}
    kept = {key: value for key, value in schema.items() if key != "default"}
    return {**kept, **note, **short_default(parameter.default)}


def short_default(default: object) -> Part:
    if isinstance(default, Enum):
        default = default.value
    if not isinstance(default, str | int | float) or default == "":
        return {}
    try:
        text = dumped(default)
    except ValueError:  # NaN
        return {}
    return {"default": default} if len(text) <= LONGEST_DEFAULT else {}


def by_pydantic(
    hints: dict[str, object], parameters: Mapping[str, inspect.Parameter], name: str
) -> tuple[dict[str, Plain], Part]:
    from holdfast.tools.foreign import read

    nullable = {each for each in hints if parameters[each].default is None}
    return read(hints, nullable, name)
