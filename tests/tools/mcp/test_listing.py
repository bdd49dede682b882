"""How the tools of a server look to us."""

import re
import sys
from pathlib import Path
from subprocess import run

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.jsontext import dumped, json_object
from holdfast.core.tools import SideEffect, resolve
from holdfast.tools.base import Access, BadArguments, Context, Output, Touch
from holdfast.tools.mcp import Server
from holdfast.tools.mcp.listing import Wanted, tools
from holdfast.tools.mcp.names import names, prefixes
from holdfast.tools.mcp.schema import parameters
from holdfast.tools.running import result
from tests.tools.mcp.watching import Caller, old, watching

FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
anything = st.text(max_size=80)


@given(st.dictionaries(anything, st.sets(anything, max_size=8), max_size=5))
def test_every_tool_of_every_server_has_a_name_of_its_own(servers: dict[str, set[str]]) -> None:
    prefix = prefixes(servers)
    given = [name for one, tools in servers.items() for name in names(prefix[one], tools).values()]

    assert len(set(given)) == len(given)
    assert all(FITS.fullmatch(name) for name in given)


@given(st.lists(anything, unique=True, max_size=8))
def test_the_order_of_a_list_changes_no_name(tools: list[str]) -> None:
    assert names("files", tools) == names("files", reversed(tools))


def test_names_are_as_they_were_where_they_can_be() -> None:
    assert names("my_files", ["read", "read.text", "read_text"]) == {
        "read": "my_files__read",
        "read.text": "my_files__read_text-4b02e355",
        "read_text": "my_files__read_text",
    }
    assert prefixes(["my files", "a__b"]) == {"my files": "my_files", "a__b": "a_b"}


def test_a_schema_is_made_small_but_not_looser() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "ReadArguments",
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string", "default": {"title": "kept"}},
            "tags": {"type": "array", "items": {"title": "Tag", "enum": [{"title": "kept"}]}},
        },
        "required": ["title"],
        "additionalProperties": False,
    }

    assert json_object(parameters(schema)) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "default": {"title": "kept"}},
            "tags": {"type": "array", "items": {"enum": [{"title": "kept"}]}},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def test_a_dialect_that_decides_what_is_valid_stays() -> None:
    dialect = "http://json-schema.org/draft-04/schema#"
    schema = {"$schema": dialect, "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}

    assert json_object(parameters(schema))["$schema"] == dialect


names_of_fields = st.sampled_from(["title", "a", "$schema", "properties"])
LEAVES: list[dict[str, object]] = [
    {"type": "string"},
    {"type": "integer", "minimum": 2},
    {"enum": [1, "title"]},
    {"const": None},
]
schemas = st.recursive(
    st.sampled_from(LEAVES).map(lambda leaf: {**leaf, "title": "T"}),
    lambda inner: (
        st.dictionaries(names_of_fields, inner, max_size=3).map(
            lambda fields: {"title": "T", "type": "object", "properties": fields}
        )
        | st.lists(inner, min_size=1, max_size=2).map(lambda several: {"anyOf": several})
        | inner.map(lambda one: {"type": "array", "items": one})
    ),
    max_leaves=6,
)
values = st.recursive(
    st.sampled_from([None, 1, 2, "title", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names_of_fields, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(names_of_fields, schemas, max_size=3),
    st.dictionaries(names_of_fields, values, max_size=3),
)
def test_the_small_schema_refuses_what_the_whole_one_refuses(
    fields: dict[str, object], value: dict[str, object]
) -> None:
    whole: dict[str, object] = {"type": "object", "properties": fields, "title": "T"}
    small = json_object(parameters(whole))

    def is_valid(schema: dict[str, object]) -> bool:
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))

    assert is_valid(small) == is_valid(whole)
    assert '"T"' not in dumped(small)


async def test_without_trust_nothing_a_server_says_of_its_tools_is_believed() -> None:
    async with watching(old("a"), old("b", trust=True)) as watch:
        a, b = watch.tool("a__echo"), watch.tool("b__echo")
        again, far = watch.tool("b__crash"), watch.tool("b__where")

    touched = {"text": "notes.txt"}
    assert (a.spec.effect, a.spec.mutates) == (SideEffect.UNSAFE, True)
    assert a.touch(touched, Path()) == Touch(Access.EXECUTE, ("notes.txt",))
    assert (b.spec.effect, b.spec.mutates) == (SideEffect.READ, False)
    assert b.touch(touched, Path()) == Touch(Access.READ, ("notes.txt",))
    # What only looks may look anywhere, unless the server says that it does not.
    assert far.touch(touched, Path()) == Touch(Access.NETWORK, ("notes.txt",))
    assert (again.spec.effect, again.spec.mutates) == (SideEffect.IDEMPOTENT, True)
    assert again.touch({}, Path()) == Touch(Access.EXECUTE, ("b__crash",))


async def test_a_tool_is_found_by_each_of_its_names() -> None:
    async with watching(old("my server", tools=("echo", "must visit"))) as watch:
        specs = [tool.spec for tool in watch.servers.tools]

    assert [spec.name for spec in specs] == ["my_server__echo", "my_server__must_visit"]
    for name in ("my_server.must_visit", "must_visit", "must visit", "my_server__must_visit"):
        assert resolve(name, specs) == specs[1]


async def test_arguments_are_checked_before_a_server_sees_them() -> None:
    async with watching(old()) as watch:
        echo = watch.tool("old__echo")

    assert echo.parse('{"text": "hello"}') == {"text": "hello"}
    with pytest.raises(BadArguments):
        echo.parse("{}")


async def test_a_time_limit_and_the_server_go_with_each_tool() -> None:
    async with watching(old(timeout=3.0)) as watch:
        assert {(tool.timeout, tool.source) for tool in watch.servers.tools} == {(3.0, "old")}


async def test_a_tool_that_cannot_be_understood_costs_only_itself() -> None:
    async with watching(old()) as watch:
        offered = [tool.name for tool in watch.servers.tools]

    assert "old__broken" not in offered
    assert "old__environment" in offered
    note = next(status.text for status in watch.told if "broken" in status.text)
    assert note.startswith(
        "Its tool broken is left out, since its parameters are not a JSON schema"
    )


def nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (nested(3_000), "nested too deeply"),
        (nested(100), "nested too deeply"),
        (
            {"properties": {f"p{number}": {"type": "string"} for number in range(5_000)}},
            "too large: 128906 characters, and at most 65536 can be used",
        ),
    ],
)
async def test_a_schema_that_nobody_can_use_costs_only_its_tool(
    schema: dict[str, object], why: str
) -> None:
    from mcp.types import Tool

    listed = [
        Tool.model_construct(name="huge", input_schema=schema),
        Tool.model_construct(name="promises", input_schema={}, output_schema=schema),
    ]
    wanted: list[Wanted] = []

    async def called(one: Wanted, context: Context) -> Output:
        wanted.append(one)
        return Output("")

    found, notes = tools(Server(name="s"), "s", listed, called)

    assert [tool.name for tool in found] == ["s__promises"]
    assert notes == [f"Its tool huge is left out, since its parameters are {why}."]
    await result(found[0], {}, Caller())
    assert wanted == [Wanted("promises", {}, None)]


async def test_a_wanted_tool_that_is_not_there_is_named() -> None:
    async with watching(old(tools=("ecko", "fail"))) as watch:
        assert [tool.name for tool in watch.servers.tools] == ["old__fail"]

    told = [status.text for status in watch.told]
    assert "It has no tool ecko, which the configuration asks for; did you mean echo?" in told


def test_nothing_heavy_is_imported_before_a_server_is_wanted() -> None:
    heavy = "{'mcp', 'mcp_types', 'pydantic', 'jsonschema', 'httpx2', 'opentelemetry'}"
    code = f"import sys, holdfast.tools.mcp; print(sorted({heavy} & set(sys.modules)))"

    assert run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
