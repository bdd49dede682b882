"""The keywords of JSON Schema that `schema` does not check, by the `jsonschema` package.

Made safe first: no reference leads out of the schema, and no pattern can take forever.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from holdfast.tools.schema import Problem, Rest, Schema, pointed, shortened

NESTED_REPEATS = re.compile(r"[*+}][^()]*\)[*+{]")
"""A repeat inside a repeated group: on some texts its search takes longer than the universe lasts,
and nothing can stop it."""


def rest_of(root: Schema) -> Rest:
    """All the checks of a schema, by the `jsonschema` package."""
    import jsonschema  # type: ignore[import-untyped]
    import referencing

    safe: Any = without_dangers(root, root)
    named = jsonschema.validators.validator_for(safe, default=jsonschema.Draft202012Validator)
    # Servers that do not say which draft they mean often mean an older one.
    fitting = [kind for kind in (named, jsonschema.Draft7Validator) if takes(kind, safe)]
    kind = fitting[0] if fitting else named
    try:
        kind.check_schema(safe)
    except jsonschema.SchemaError as wrong:
        raise ValueError(f"not a JSON schema: {shortened(wrong.message, 200)}") from None
    validator = kind(safe, registry=referencing.Registry())

    def rest(value: object) -> Iterator[Problem]:
        try:
            for error in validator.iter_errors(value):
                at = "".join(
                    f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path
                )
                yield Problem(at.lstrip("."), partial(shortened, error.message, 200))
        except (RecursionError, referencing.exceptions.Unresolvable) as wrong:
            what = type(wrong).__name__
            yield Problem("", lambda: f"these could not be checked ({what})")

    return rest


def takes(kind: Any, schema: object) -> bool:
    return bool(kind(kind.META_SCHEMA).is_valid(schema))


def without_dangers(schema: object, root: Schema) -> object:
    """Without references to elsewhere, and without patterns that could take forever."""
    if isinstance(schema, list):
        return [without_dangers(part, root) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {key: without_dangers(part, root) for key, part in schema.items()}
    for key in ("$id", "$schema"):
        if key in kept and (key == "$id" or not isinstance(kept[key], str)):
            del kept[key]  # so that every reference starts at the root
    patterns = kept.get("patternProperties")
    if isinstance(patterns, dict):
        kept["patternProperties"] = {k: v for k, v in patterns.items() if not is_dangerous(k)}
    for key in ("$dynamicRef", "$recursiveRef"):
        if not str(kept.get(key, "#")).startswith("#"):
            del kept[key]
    ref = kept.get("$ref")
    if isinstance(ref, str) and pointed(root, ref) is None:
        del kept["$ref"]
    if isinstance(kept.get("pattern"), str) and is_dangerous(kept["pattern"]):
        del kept["pattern"]
    return kept


def is_dangerous(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return True  # written for another dialect
    return NESTED_REPEATS.search(pattern) is not None
