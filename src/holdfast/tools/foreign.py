"""Types that only pydantic can read: its models, constraints, dates, recursive types.

Pydantic is imported here and nowhere else among the tools, and only when a tool has such a type.
Its schemas are made small: what a model cannot use is left out.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.jsontext import dumped
from holdfast.tools.base import BadArguments
from holdfast.tools.schema import shortened
from holdfast.tools.signature import Make, Part, Plain, either, short_default

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

NOISE = {"title", "discriminator", "uniqueItems"}
"""Keywords without use for a model. A set takes doubles and drops them."""
REF = "#/$defs/"


def read(
    hints: Mapping[str, Any], nullable: Collection[str], tool: str
) -> tuple[dict[str, Plain], Part]:
    """The types of parameters, and the definitions they share. `nullable`: those whose default is
    None, so that their schema need not say that null is allowed."""
    import pydantic

    try:
        adapters = {name: pydantic.TypeAdapter[Any](hint) for name, hint in hints.items()}
        pairs: Any = [(name, "validation", adapter) for name, adapter in adapters.items()]
        schemas, shared = pydantic.TypeAdapter.json_schemas(pairs)
    except pydantic.errors.PydanticUserError as wrong:
        said = shortened(str(wrong).splitlines()[0], 300)
        raise TypeError(f"the tool {tool} takes something no model could give: {said}") from wrong
    definitions = {name: small(part) for name, part in shared.get("$defs", {}).items()}
    parts = {name: small(schemas[name, "validation"]) for name in hints}
    for name in nullable:
        parts[name] = without_null(parts[name])
    parts, left = inlined(parts, definitions)
    return {name: Plain(parts[name], maker(name, adapters[name])) for name in hints}, left


def maker(name: str, adapter: "TypeAdapter[Any]") -> Make:
    import pydantic

    def make(value: object) -> object:
        try:
            made: object = adapter.validate_json(dumped(value))
        except pydantic.ValidationError as wrong:
            raise BadArguments(" ".join(f"{each}." for each in problems(name, wrong))) from None
        return made

    return make


def problems(name: str, wrong: "ValidationError") -> list[str]:
    return [
        f"{'.'.join([name, *map(str, each['loc'])])}: {shortened(each['msg'].rstrip('.'), 200)}"
        for each in wrong.errors(include_url=False, include_context=False, include_input=False)[:8]
    ]


def small(schema: Any) -> Part:
    """The schema without what a model does not need."""
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key not in NOISE}
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]  # the reader refuses unknown properties anyway
    for key in ("items", "additionalProperties", "not"):
        if isinstance(kept.get(key), dict):
            kept[key] = small(kept[key])
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if key in kept:
            kept[key] = [small(part) for part in kept[key]]
    if "oneOf" in kept and "anyOf" not in kept:
        kept["anyOf"] = kept.pop("oneOf")  # its branches differ in a constant; fewer know `oneOf`
    for key in ("properties", "patternProperties"):
        if key in kept:
            kept[key] = {name: small(part) for name, part in kept[key].items()}
    if "const" in kept and kept.get("type") == "string":
        kept["enum"] = [kept.pop("const")]
    if "default" in kept:
        default = kept.pop("default")
        kept = without_null(kept) if default is None else {**kept, **short_default(default)}
    if set(kept) == {"anyOf"}:
        branches: Any = kept["anyOf"]
        return either(branches)
    return kept


def without_null(schema: Part) -> Part:
    """What may be left out need not be null as well."""
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        rest = [branch for branch in branches if branch != {"type": "null"}]
        others = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**rest[0], **others} if len(rest) == 1 else {**others, "anyOf": rest}
    kinds = schema.get("type")
    if isinstance(kinds, list):
        rest = [kind for kind in kinds if kind != "null"]
        return {**schema, "type": rest[0] if len(rest) == 1 else rest}
    return schema


def inlined(parts: dict[str, Part], definitions: dict[str, Part]) -> tuple[dict[str, Part], Part]:
    """The schemas with definitions put where they are used, if that is one place; and the others."""
    # What is recursive is used by itself and by another, so it is never put in its own place.
    used = [ref for part in (*parts.values(), *definitions.values()) for ref in refs(part)]
    once = {name for name in definitions if used.count(name) == 1}
    done = {name: filled(part, definitions, once) for name, part in parts.items()}
    left = {name: part for name, part in definitions.items() if name not in once}
    return done, {name: filled(part, definitions, once) for name, part in left.items()}


def refs(part: object) -> list[str]:
    if isinstance(part, list):
        return [ref for each in part for ref in refs(each)]
    if not isinstance(part, dict):
        return []
    own = [str(part["$ref"]).removeprefix(REF)] if isinstance(part.get("$ref"), str) else []
    return own + [ref for each in part.values() for ref in refs(each)]


def filled(part: Any, definitions: dict[str, Part], once: set[str]) -> Any:
    if isinstance(part, list):
        return [filled(each, definitions, once) for each in part]
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).removeprefix(REF)
    if name in once:
        rest = {key: value for key, value in part.items() if key != "$ref"}
        return filled({**definitions[name], **rest}, definitions, once)
    return {key: filled(value, definitions, once) for key, value in part.items()}
