"""Schemas of arguments made small: without what only takes up the model's window.

What is left accepts and refuses exactly what the whole did. A schema that is too large to be read
with every call, or to be sent with every request, is refused.
"""

from collections.abc import Mapping

from holdfast.core.jsontext import dumped, json_object

LARGEST = 65_536
"""Characters of a schema. Larger ones would fill most windows, and take seconds to check against."""
NOISE = ("title", "$comment", "$id")
"""Keywords that say nothing to a validator, nor to a model that has the names and descriptions.
`$id` goes only where nothing refers to it."""
ONE = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
"""Keywords that hold a schema (or, some of them, a list of schemas)."""
SEVERAL = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
"""Keywords that hold schemas by name: here `title` is a name like any other."""
OLDEST = ("draft-03", "draft-04")
"""Dialects in which common keywords mean something else: their `$schema` stays."""
OLD = ("draft-06", "draft-07")
"""Dialects that differ from today's only in the keywords of `DIFFERENT`."""
DIFFERENT = ('"items":[', '"dependencies":', '"$ref":')


def parameters(schema: Mapping[str, object]) -> str:
    """The schema of a tool's arguments as text, the same for the same schema; `ValueError` if it
    is more than can be used."""
    text = modest(schema)
    whole = small(schema, keep=("$id",) if '"$ref":' in text else ())
    if is_old(str(schema.get("$schema", "")), text):
        whole["$schema"] = schema["$schema"]
    # Some servers of models refuse an object without properties.
    return dumped({"type": "object", "properties": {}, **whole})


def modest(schema: Mapping[str, object]) -> str:
    """The schema as text; `ValueError` if it is too much."""
    try:
        text = dumped(schema)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    json_object(text)  # which goes only so deep
    if len(text) > LARGEST:
        raise ValueError(f"too large: {len(text)} characters, and at most {LARGEST} can be used")
    return text


def is_modest(schema: Mapping[str, object]) -> bool:
    try:
        modest(schema)
    except ValueError:
        return False
    return True


def is_old(dialect: str, text: str) -> bool:
    """Whether a validator must know the dialect to mean the same."""
    if any(oldest in dialect for oldest in OLDEST):
        return True
    return any(old in dialect for old in OLD) and any(word in text for word in DIFFERENT)


def small(schema: Mapping[str, object], *, keep: tuple[str, ...] = ()) -> dict[str, object]:
    """`schema` without noise, at every depth."""

    def made(key: str, value: object) -> object:
        if key in NAMED and isinstance(value, Mapping):
            return {name: nested(one) for name, one in value.items()}
        if key in SEVERAL and isinstance(value, list):
            return [nested(one) for one in value]
        return nested(value) if key in ONE else value

    def nested(value: object) -> object:
        return small(value, keep=keep) if isinstance(value, Mapping) else value

    left = {
        key: value
        for key, value in schema.items()
        if key in keep or key != "$schema" and key not in NOISE
    }
    return {key: made(key, value) for key, value in left.items()}
