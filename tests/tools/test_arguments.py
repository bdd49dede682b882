"""Arguments are read as they are meant, or refused with a sentence that helps."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.tools.arguments import reader
from holdfast.tools.base import BadArguments
from holdfast.tools.schema import Book

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        "order": {"type": "string", "enum": ["Newest", "oldest"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        "file_path": {"type": ["string", "null"]},
    },
    "required": ["query"],
}
SHAPE = (
    "{query: string, limit?: integer, ratio?: number, deep?: boolean, tags?: [string, ...], "
    'where?: {x: integer}, order?: "Newest" | "oldest", either?: integer | [integer, ...], '
    "file_path?: string | null}"
)


def read(arguments: object, schema: object = SEARCH, *, closed: bool = True) -> object:
    return reader(json.dumps(schema), closed=closed)(json.dumps(arguments))


def refusal(arguments: object, schema: object = SEARCH, *, closed: bool = True) -> str:
    with pytest.raises(BadArguments) as wrong:
        read(arguments, schema, closed=closed)
    return str(wrong.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"limit": "3"}, {"limit": 3}),
        ({"limit": " +3.0 "}, {"limit": 3}),
        ({"limit": 3.0}, {"limit": 3}),
        ({"ratio": "1e-3"}, {"ratio": 0.001}),
        ({"ratio": "7"}, {"ratio": 7}),
        ({"deep": "True"}, {"deep": True}),
        ({"deep": 0}, {"deep": False}),
        ({"tags": "one"}, {"tags": ["one"]}),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"tags": [1, "b"]}, {"tags": ["1", "b"]}),
        ({"where": '{"x": "4"}'}, {"where": {"x": 4}}),
        ({"order": "NEWEST"}, {"order": "Newest"}),
        ({"either": "5"}, {"either": 5}),
        ({"either": ["5"]}, {"either": [5]}),
        ({"either": "[5]"}, {"either": [5]}),
        ({"filePath": "a"}, {"file_path": "a"}),
        ({"File-Path": "a"}, {"file_path": "a"}),
        ({"file_path": None}, {"file_path": None}),
        ({"limit": None, "deep": "null", "tags": ""}, {}),
        ({"verbose": None, "extra": {}, "reason": "to find it"}, {}),
        ({"query": "\ud83d\ude00 \ud800"}, {"query": "\U0001f600 \ufffd"}),
        ({"query": 2026}, {"query": "2026"}),
    ],
)
def test_what_can_mean_one_thing_is_read_as_it(
    given: Mapping[str, object], meant: Mapping[str, object]
) -> None:
    assert read({"query": "q", **given}) == {"query": "q", **meant}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": "many"}, 'limit: expected a whole number, got "many".'),
        ({"limit": "3.5"}, 'limit: expected a whole number, got "3.5".'),
        ({"limit": 0}, "limit: expected at least 1, got 0."),
        ({"limit": True}, "limit: expected a whole number, got true."),
        ({"ratio": "nan"}, 'ratio: expected a number, got "nan".'),
        ({"deep": "yes"}, 'deep: expected true or false, got "yes".'),
        ({"deep": 2}, "deep: expected true or false, got 2."),
        ({"tags": "a, b"}, 'tags: expected a list, got "a, b".'),
        ({"tags": ["a", None]}, "tags[1]: expected text, got null."),
        ({"where": {}}, "where.x: is missing; expected a whole number."),
        ({"where": {"x": 1, "z": 2}}, "where.z: is unknown."),
        ({"order": "best"}, 'order: expected "Newest" | "oldest", got "best".'),
        ({"either": "x"}, 'either: expected integer | [integer, ...], got "x".'),
        ({"query": 1.1}, "query: expected text, got 1.1."),
        ({"limitt": 3}, "limitt: is unknown. Did you mean 'limit'?"),
        ({"filePath": "a", "FilePath": "b"},
         "filePath: is unknown. Did you mean 'file_path'? FilePath: is unknown. "
         "Did you mean 'file_path'?"),
        ({"dry_run": True}, "dry_run: is unknown."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_field_by_field_with_the_expected_shape(
    given: Mapping[str, object], said: str
) -> None:
    assert refusal({"query": "q", **given}) == f"{said} Expected: {SHAPE}"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert refusal({"qery": "q", "limit": []}) == (
        "query: is missing; expected text. qery: is unknown. Did you mean 'query'? "
        f"limit: expected a whole number, got []. Expected: {SHAPE}"
    )


def test_a_long_list_of_mistakes_is_cut() -> None:
    said = refusal({"query": "q", "tags": [None] * 50})

    assert said.endswith(f"tags[7]: expected text, got null. And 42 more. Expected: {SHAPE}")


@pytest.mark.parametrize("text", ["[]", "3", "{", "nonsense", '{"a": NaN}', "[" * 99_999])
def test_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BadArguments, match="must be one JSON object"):
        reader("{}")(text)


def test_no_text_at_all_means_no_arguments() -> None:
    assert reader("{}")(" ") == {}


def test_a_number_that_overflows_is_refused() -> None:
    with pytest.raises(BadArguments, match="a number in them is too large"):
        reader(json.dumps(SEARCH))('{"query": "q", "ratio": 1e999}')


def test_a_schema_that_forbids_nothing_lets_others_pass_but_no_slips() -> None:
    assert read({"query": "q", "colour": 1}, closed=False) == {"query": "q", "colour": 1}
    assert refusal({"query": "q", "limitt": 1}, closed=False).startswith(
        "limitt: is unknown. Did you mean 'limit'?"
    )
    opened = {**SEARCH, "additionalProperties": True}
    assert read({"query": "q", "limitt": 1}, opened) == {"query": "q", "limitt": 1}


def test_definitions_and_recursion_are_followed() -> None:
    tree = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["size"],
            }
        },
    }

    assert read({"root": {"size": "1", "children": {"size": "2"}}}, tree) == {
        "root": {"size": 1, "children": [{"size": 2}]}
    }
    assert "root.children[0].size: is missing" in refusal(
        {"root": {"size": 1, "children": [{"children": []}]}}, tree
    )


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ({"type": "string", "pattern": "^a+$"}, "aa", "b"),
        ({"oneOf": [{"type": "integer"}, {"const": "x"}]}, "x", "y"),
        ({"allOf": [{"type": "integer"}, {"multipleOf": 3}]}, 6, 7),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, "ab", "a"),
        ({"type": "array", "items": [{"type": "integer"}], "additionalItems": False}, [1], [1, 2]),
        ({"not": {"type": "string"}}, 1, "1"),
        ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, {"xa": 1}, {"xa": []}),
    ],
)  # fmt: skip
def test_the_other_keywords_of_json_schema_hold_too(
    part: object, good: object, bad: object
) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": part},
    }

    assert read({"a": good}, schema) == {"a": good}
    assert refusal({"a": bad}, schema).startswith("a")


@pytest.mark.parametrize(
    "ref",
    [
        "http://127.0.0.1:1/schema.json",
        "https://example.com/x#/a",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/missing",
        "#anchor",
    ],
)
def test_a_reference_to_elsewhere_is_not_followed_and_allows_everything(ref: str) -> None:
    schema = {"$id": "http://127.0.0.1:1/root.json", "properties": {"a": {"$ref": ref}}}

    assert read({"a": [1, {"b": 2}]}, schema) == {"a": [1, {"b": 2}]}


def test_a_reference_to_false_allows_nothing() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/no"}, "b": False}, "$defs": {"no": False}}

    assert refusal({"a": 1, "b": 2}, schema) == (
        "a: expected nothing, got 1. b: expected nothing, got 2. "
        "Expected: {a?: nothing, b?: nothing}"
    )


def test_an_older_draft_is_understood_also_without_its_name() -> None:
    schema = {"properties": {"a": {"type": "array", "items": [{"type": "integer"}]}}}

    assert read({"a": [1, "x"]}, schema) == {"a": [1, "x"]}
    assert refusal({"a": ["x"]}, schema).startswith("a[0]")


def test_a_dynamic_reference_to_elsewhere_is_not_followed_either() -> None:
    schema = {"properties": {"a": {"$dynamicRef": "http://127.0.0.1:1/x"}}}

    assert read({"a": 1}, schema) == {"a": 1}


@pytest.mark.parametrize(
    "schema",
    ['{"type": "strin"}', '{"properties": 5}', '{"required": "a"}', "[]", "{", '{"minLength": -1}'],
)
def test_what_is_no_schema_is_refused_at_once(schema: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        reader(schema)


def test_a_pattern_that_could_take_forever_is_not_tried() -> None:
    evil = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}

    assert read({"a": "a" * 50 + "!"}, evil) == {"a": "a" * 50 + "!"}


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-01-02", "tomorrow"),
        ("^[a-z][a-z0-9_-]*$", "a-1", "A 1"),
        ("^(red|green)$", "red", "redder"),
        ("^https?://", "http://a", "ftp://a"),
        ("[*+?]", "a+", "a"),
    ],
)
def test_a_pattern_that_takes_one_look_is_tried(pattern: str, right: str, wrong: str) -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}

    assert read({"a": right}, schema) == {"a": right}
    assert refusal({"a": wrong}, schema).startswith("a: ")


def doubled(levels: int) -> dict[str, object]:
    """Each level asks twice for the next."""
    defs: dict[str, object] = {"d0": {"type": "integer"}}
    for level in range(levels):
        defs[f"d{level + 1}"] = {"allOf": [{"$ref": f"#/$defs/d{level}"}] * 2}
    return {"properties": {"a": {"$ref": f"#/$defs/d{levels}"}}, "$defs": defs}


@pytest.mark.timeout(20)
def test_checks_inside_checks_end_with_a_sentence() -> None:
    many = {"type": "array", "items": {"enum": [str(n) for n in range(5_000)], "multipleOf": 1}}
    sentence = (
        "The arguments cannot be taken: they are too large or too deeply nested to be checked."
    )

    assert read({"a": 1}, doubled(8)) == {"a": 1}
    assert refusal({"a": 1}, doubled(60)) == sentence
    assert refusal({"a": ["zz"] * 20_000}, {"properties": {"a": many}}) == sentence
    often = {"properties": {"a": {"oneOf": [{"type": "string"}] * 1_000}}}
    assert refusal({"a": [["z" * 50] * 2_000]}, often) == sentence


@pytest.mark.timeout(20)
def test_many_items_and_many_names_are_read_in_one_look() -> None:
    items = [{"a": number} for number in range(20_000)]
    names = {f"{'x' * 50}{number}": {"type": "string"} for number in range(20_000)}
    unique = {"properties": {"a": {"type": "array", "uniqueItems": True}}}
    given = {f"{'x' * 51}{number}": "" for number in range(20_000)}

    assert read({"a": items}, unique) == {"a": items}
    said = refusal({**given, "y": 1}, {"properties": names, "additionalProperties": False})
    assert said.startswith("y: is unknown. Expected: {")


@pytest.mark.timeout(20)
def test_the_shape_of_a_schema_without_end_is_cut() -> None:
    every = {f"p{number}": {"$ref": "#/$defs/a"} for number in range(500)}
    choices = {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}
    for part in ({"properties": every}, choices):
        schema = {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": part}}
        said = refusal({"y": 1}, {**schema, "additionalProperties": False})
        assert len(said) < 1_000


def test_choices_inside_choices_end_with_a_sentence() -> None:
    node = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}}] * 3}
    schema = {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}
    deep: object = "x"
    for _ in range(50):
        deep = [deep]

    assert refusal({"a": deep}, schema) == (
        "The arguments cannot be taken: they are too large or too deeply nested to be checked."
    )


@pytest.mark.parametrize("part", [{"enum": [1]}, {"const": 0}, {"anyOf": [{"enum": [0, 1]}]}])
def test_true_is_not_one(part: object) -> None:
    schema = {"properties": {"a": part}}

    assert refusal({"a": True}, schema).startswith("a: expected")
    assert refusal({"a": False}, schema).startswith("a: expected")


def test_a_long_list_is_no_reason_to_refuse_it() -> None:
    numbers = list(range(60_000))
    schema = {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}

    assert read({"a": numbers}, schema) == {"a": numbers}


def test_a_common_schema_is_read_without_loading_the_package_for_the_others() -> None:
    code = (
        "import sys, holdfast.tools.arguments as a;"
        f'a.reader({json.dumps(SEARCH)!r})(\'{{"query": "q"}}\');'
        "print([n for n in ('jsonschema', 'pydantic', 'referencing') if n in sys.modules])"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(
    ["", "a", "A", "3", "1.5", "true", "null", "[1]", '{"a": 1}', "a,b"]
) | st.text(max_size=3)  # fmt: skip
names = st.sampled_from(["a", "b", "A", "file_path", "filePath", "reason", "x"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
small = st.integers(0, 3)
leaves = st.one_of(
    st.just({}),
    st.booleans(),
    st.builds(lambda kind: {"type": kind}, kinds | st.lists(kinds, min_size=1, unique=True)),
    st.builds(lambda choices: {"enum": choices}, st.lists(scalars, min_size=1, max_size=3)),
    st.builds(lambda value: {"const": value}, scalars),
    st.builds(lambda low, high: {"type": "integer", "minimum": low, "exclusiveMaximum": high}, small, small),
    st.builds(lambda low, high: {"type": "string", "minLength": low, "maxLength": high}, small, small),
    st.just({"$ref": "#/$defs/d"}),
)  # fmt: skip


def nest(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(
        st.builds(
            lambda properties, required, others: {
                "type": "object", "properties": properties, "required": required, **others,
            },
            st.dictionaries(names, inner, max_size=3),
            st.lists(names, max_size=2, unique=True),
            st.just({}) | st.builds(lambda part: {"additionalProperties": part}, inner),
        ),
        st.builds(lambda part, most: {"type": "array", "items": part, "maxItems": most}, inner, small),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"prefixItems": parts}, st.lists(inner, min_size=1, max_size=2)),
    )  # fmt: skip


schemas = st.recursive(leaves, nest, max_leaves=6)
strange = schemas | st.sampled_from(
    [
        {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "a"}]},
        {"allOf": [{"$ref": "#/$defs/d"}, {"type": "array", "uniqueItems": True}]},
        {"type": "number", "multipleOf": 2},
    ]
)


def roots(parts: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.builds(
        lambda properties, required, defined: {
            "type": "object", "properties": properties, "required": required,
            "$defs": {"d": defined},
        },
        st.dictionaries(names, parts, max_size=4),
        st.lists(names, max_size=2, unique=True),
        leaves,
    )  # fmt: skip


def outcome(read: Callable[[str], object], text: str) -> object:
    try:
        return read(text)
    except BadArguments as wrong:
        return wrong


def is_bottomless(schema: Mapping[str, object]) -> bool:
    return schema["$defs"] == {"d": {"$ref": "#/$defs/d"}}


@given(roots(schemas), st.dictionaries(names, values, max_size=4))
def test_our_checks_agree_with_the_packages(schema: dict[str, object], value: object) -> None:
    assume(not is_bottomless(schema))
    book = Book(schema)

    assert book.rest is None
    assert (book.problems(value) == []) == jsonschema.Draft202012Validator(schema).is_valid(value)


@given(roots(strange), st.dictionaries(names, values, max_size=4), st.booleans())
def test_arguments_are_valid_or_refused(
    schema: dict[str, object], value: dict[str, object], closed: bool
) -> None:
    assume(not is_bottomless(schema))
    read = reader(json.dumps(schema), closed=closed)
    valid = jsonschema.Draft202012Validator(schema).is_valid

    result = outcome(read, json.dumps(value))

    assert isinstance(result, BadArguments) or valid(result)


@given(roots(strange), st.dictionaries(names, scalars, max_size=4))
def test_what_is_valid_and_known_is_never_changed(
    schema: dict[str, object], value: dict[str, object]
) -> None:
    assume(not is_bottomless(schema))
    assume(jsonschema.Draft202012Validator(schema).is_valid(value))
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assume(value.keys() <= properties.keys())

    assert outcome(reader(json.dumps(schema)), json.dumps(value)) == value


@given(st.text() | values.map(json.dumps), roots(strange))
def test_any_text_is_read_or_refused_and_nothing_else(text: str, schema: dict[str, object]) -> None:
    assume(not is_bottomless(schema))
    result = outcome(reader(json.dumps(schema)), text)

    assert isinstance(result, dict | BadArguments)
