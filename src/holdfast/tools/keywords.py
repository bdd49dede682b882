"""The keywords of JSON Schema that `schema` does not check, by the `jsonschema` package.

Made safe first: no reference leads out of the schema, no pattern can take forever, and each check
counts as a step, of which there are only so many. Schemas of servers are written by strangers, and
nothing can stop a check from outside.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from holdfast.tools.schema import Problem, Rest, Schema, pointed, shortened

LONGEST_PATTERN = 200
MOST_PATTERNS = 20
"""Of names of properties, in one object: each is held against every name."""
REMEMBERS = re.compile(r"\\[1-9]")
"""What a group matched, again: the search then goes back over everything it has tried."""
ESCAPED = re.compile(r"\\.", re.DOTALL)
ONE_OF = re.compile(r"\[\^?\]?[^\]]*\]")
REPEATED = re.compile(r"(?:[*+?]|\{\d*,\d*\})[?+]?")
REPEATED_GROUP = re.compile(r"\)[*+?{]")
COUNTED = re.compile(r"\{(\d+)\}")
MOST_COUNTED = 64


def rest_of(root: Schema, step: Callable[[int], None]) -> Rest:
    """All the checks of a schema, by the `jsonschema` package. `step` is told before each of them
    how much it costs, and may end it with an exception."""
    import jsonschema  # type: ignore[import-untyped]
    import referencing

    safe: Any = without_dangers(root, root)
    named = jsonschema.validators.validator_for(safe, default=jsonschema.Draft202012Validator)
    # Servers that do not say which draft they mean often mean an older one.
    fitting = (kind for kind in (named, jsonschema.Draft7Validator) if takes(kind, safe))
    kind = next(fitting, None)
    if kind is None:
        wrong = jsonschema.exceptions.best_match(named(named.META_SCHEMA).iter_errors(safe))
        raise ValueError(f"not a JSON schema: {shortened(wrong.message, 200)}")
    sizes: dict[int, int] = {}
    """For each list and object in the value that is checked, by its id, how large it is."""

    def before(wanted: object, value: object) -> None:
        large = sizes.get(id(value)) or length(value)  # it is written into each problem
        step(1 + length(wanted) // 16 + large // 64)

    checks = {key: counted(check, before) for key, check in kind.VALIDATORS.items()}
    validator = jsonschema.validators.extend(kind, checks)(safe, registry=referencing.Registry())

    def rest(value: object) -> Iterator[Problem]:
        sizes.clear()
        try:
            measure(value, sizes)
            for error in validator.iter_errors(value):
                at = "".join(
                    f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path
                )
                yield Problem(at.lstrip("."), partial(shortened, error.message, 200))
        except (RecursionError, referencing.exceptions.Unresolvable) as wrong:
            what = type(wrong).__name__
            yield Problem("", lambda: f"these could not be checked ({what})")

    return rest


def counted(
    check: Callable[..., Any], before: Callable[[object, object], None]
) -> Callable[..., Any]:
    def checked(validator: Any, wanted: object, value: object, schema: object) -> Any:
        before(wanted, value)
        return check(validator, wanted, value, schema)

    return checked


def measure(value: object, sizes: dict[int, int]) -> int:
    """About how many characters it takes to write the value down."""
    if isinstance(value, list):
        sizes[id(value)] = 2 + sum(measure(one, sizes) for one in value)
        return sizes[id(value)]
    if isinstance(value, dict):
        sizes[id(value)] = 2 + sum(len(key) + measure(one, sizes) for key, one in value.items())
        return sizes[id(value)]
    return 8 + length(value)


def length(value: object) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def takes(kind: Any, schema: object) -> bool:
    return bool(kind(kind.META_SCHEMA).is_valid(schema))


def without_dangers(schema: object, root: Schema) -> object:
    """Without references to elsewhere, and without what could take forever."""
    if isinstance(schema, list):
        return [without_dangers(part, root) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {key: without_dangers(part, root) for key, part in schema.items()}
    for key in ("$id", "$schema"):
        if key in kept and (key == "$id" or not isinstance(kept[key], str)):
            del kept[key]  # so that every reference starts at the root
    # With it every item is held against every other; whoever asked for it checks it as well.
    if isinstance(kept.get("uniqueItems"), bool):
        del kept["uniqueItems"]
    patterns = kept.get("patternProperties")
    if isinstance(patterns, dict):
        safe = [(k, v) for k, v in patterns.items() if not is_dangerous(k)]
        kept["patternProperties"] = dict(safe[:MOST_PATTERNS])
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
    """Its search may take more than one look through the text. Known to take one: a pattern that
    repeats nothing, and one that is bound to the beginning and repeats one thing once."""
    if len(pattern) > LONGEST_PATTERN or REMEMBERS.search(pattern):
        return True
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return True  # written for another dialect
    plain = ONE_OF.sub("x", ESCAPED.sub("x", pattern)).replace("(?:", "(")
    if "(?" in plain or REPEATED_GROUP.search(plain):
        return True
    counts = [int(one) for one in COUNTED.findall(plain)]
    repeats = len(REPEATED.findall(plain))
    if plain.startswith("^") and not has_choice(plain):
        return repeats > 1 or any(one > MOST_COUNTED for one in counts)
    return bool(repeats or counts)


def has_choice(plain: str) -> bool:
    """Outside of groups, where the beginning of the pattern is only that of its first choice."""
    depth = 0
    for character in plain:
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            return True
    return False
