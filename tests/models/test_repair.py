"""Arguments that are almost JSON: mended where they have one reading, refused where they have two."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.jsontext import DEEPEST, json_object
from holdfast.models.repair import Repaired, found, repaired
from tests.models.growth import UNITS, grows_no_faster_than

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.sampled_from(["}", '"', "'", "\\", "\n", "//", "```", "“", '", "a": "']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=5)
FRAGMENTS = st.sampled_from(
    ["{", "}", "[", "]", '"', "'", ":", ",", " ", "\n", "\\", "a", "7", "true", "None", "//", "/*",
     "*/", "#", "```", "“", "”", '""', '{"a": ', "{{", "\x00", "-", ".", "e", "\ud800"]
)  # fmt: skip
BROKEN = st.lists(FRAGMENTS, max_size=30).map("".join) | st.text()


@pytest.mark.parametrize(
    ("broken", "meant", "fix"),
    [
        ('{"to":""/Users/me", "b": ""}', {"to": "/Users/me", "b": ""}, "doubled quote"),
        ('{"to":""//srv/x"}', {"to": "//srv/x"}, "doubled quote"),
        ('{"a": [1, 2,], "b": 3,}', {"a": [1, 2], "b": 3}, "trailing comma"),
        ('{"a": "x" "b": 2\n"c": [] "d": 1}', {"a": "x", "b": 2, "c": [], "d": 1}, "missing comma"),
        ('{"a": [{"b": 1} {"b": 2}]}', {"a": [{"b": 1}, {"b": 2}]}, "missing comma"),
        ('{"a": {"b": "x"}', {"a": {"b": "x"}}, "missing closing"),
        ('{"a": {"b": [7}', {"a": {"b": [7]}}, "missing closing"),
        ('{"a": true', {"a": True}, "missing closing"),
        ('{"a": {"b": 1}}}', {"a": {"b": 1}}, "too many"),
        ('{"a": "x\ty\nz\x00"}', {"a": "x\ty\nz\x00"}, "control"),
        ("{'a': 'say \"hi\"'}", {"a": 'say "hi"'}, "single quotes"),
        ("{'a': 'it\\'s'}", {"a": "it's"}, "apostrophe"),
        ('{path: "/x", max-size: 3}', {"path": "/x", "max-size": 3}, "without quotes"),
        ('{"a": [True, False, None]}', {"a": [True, False, None]}, "Python"),
        ('{"a": 1, // one\n"b": /* two */ 2 # b\n}', {"a": 1, "b": 2}, "comments"),
        ("{“a”: “b”, ‘c’: „d“}", {"a": "b", "c": "d"}, "typographic"),
        ('```json\n{"a": 1}\n```', {"a": 1}, "code fence"),
        ('```json\n{"a": {"b": "x"}\n```', {"a": {"b": "x"}}, "missing closing"),
        ('{{"a": {"b": 2}}}', {"a": {"b": 2}}, "doubled braces"),
        ('{{"a": {{"b": 2}}}}', {"a": {"b": 2}}, "doubled braces"),
        (json.dumps('{"a": "\\"x\\""}'), {"a": '"x"'}, "as a string"),
        ('{\\"a\\": \\"b\\"}', {"a": "b"}, "as a string"),
        ('Here is the call: {"a": 1} Good luck!', {"a": 1}, "text around"),
        ('\ufeff{"a": 1}', {"a": 1}, "text around"),
        ('{"a":\u00a01}', {"a": 1}, "spaces"),
        ('{a:<|"|>b "c"\n\\d}<|"|>,<|"|>e f<|"|>:<escape><escape>}', {"a": 'b "c"\n\\d}', "e f": ""}, "Gemma's"),
    ],
)  # fmt: skip
def test_what_has_one_reading_is_mended_and_says_what_was_mended(
    broken: str, meant: dict[str, object], fix: str
) -> None:
    mended = repaired(broken)

    assert mended is not None
    assert json_object(mended.arguments) == meant
    assert any(fix in said for said in mended.fixes), mended.fixes


@pytest.mark.parametrize(
    "cut",
    [
        '{"index": 7', '{"index": 7 ', '{"index": -', '{"x": 1.', '{"x": [1, 2', '{"x": tru', '{"x"',
        '{"x":', '{"x": "y",', '{"x": ""', '{"path": "/ho', '{"path": "/home\\', "{", "", '{"a": {',
        '{"files": ["a.txt"', '{"files": ["a.txt", ', '{"a": [{"b": "x"}', '{"a": "x" // end',
        '```json\n{"index": 7\n```', '{a:<|"|>x', '{a:<|"|>x<|"', "{a:<escape>x",
    ],
)  # fmt: skip
def test_a_value_that_may_go_on_is_never_completed(cut: str) -> None:
    assert repaired(cut) is None


@pytest.mark.parametrize(
    "unclear",
    [
        '{"a": "v"alue"}', '{"a": "say "hi", then"}', "{'a': 'it's'}", '{"a": ""5""}',
        '{"a": ["x" "y"]}', '{"a": [1 2]}', '{"a": foo}', '{"a": NaN}', '{"a": 01}', '{"a": .5}',
        '{"a": 1_000}', '{"a": 1, "a": 2,}', '{"a": "\\d+"}', '{"a": "\\u12"}', '{"a" "b"}',
        '{"a": 1} {"b": 2}', '{"a": 1}, "b": 2}', '[{"a": 1}]', 'limit: {"a": 1}', 'f(x={"a": 1})',
        'a: 1, b: {"a": 1}', '"x": {"a": 1}', '{"a": 1}, b: 2', '{,"a": 1}', '{"a": 1,, "b": 2}',
        '{"a": "x" b: 2}', '{"a": "x""b": 2}', '{1: 2}', '{true: 2}', '{"a": "x, "b": "y"}', "null",
        '{"a": [1, "b": 2}', '{"a": {{"b": 1}, "c": 2}', '"text"', "7", '{"a": (1, 2)}', '{`a`: 1}',
        "{“a”: “he said “no” again”}", '{"a": /* open }', '{"a": "x"]\n"b": 1}', "just words",
        '{"a": [1,}', '{{"a": 1}, {"b": 2}}', '{a:<|"|>x<|"|>y<|"|>}', '{a:<|"|>x<escape>}', "{a:London}",
    ],
)  # fmt: skip
def test_what_has_two_readings_or_none_is_refused(unclear: str) -> None:
    assert repaired(unclear) is None


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', ' {"x": 1e400} ', '{"a": "\\ud800"}', "{}"])
def test_strict_json_stays_as_it_was_written(text: str) -> None:
    assert repaired(text) == Repaired(text)


def test_numbers_and_escapes_of_a_mended_object_stay_as_written() -> None:
    assert repaired('{"a": 1.0, "b": 1E5, "c": 12345678901234567890, "d": "\\u00e9\\/",}') == Repaired(
        '{"a":1.0,"b":1E5,"c":12345678901234567890,"d":"\\u00e9\\/"}', ("a trailing comma",)
    )  # fmt: skip


@given(OBJECTS)
def test_any_object_is_read_whole_by_the_reader_of_broken_ones(
    arguments: dict[str, object],
) -> None:
    text = json.dumps(arguments, ensure_ascii=False, indent=1)

    value = found(text, 0)

    assert (json.loads(value.json), value.end, value.fixes) == (arguments, len(text), ())
    assert {key: json.loads(part) for key, part in value.members} == arguments


@given(OBJECTS, st.sampled_from(["{%s}", "```\n%s\n```", "Here is the call: %s\nDone.", "%s}"]))
def test_any_object_survives_what_is_put_around_it(
    arguments: dict[str, object], around: str
) -> None:
    mended = repaired(around % json.dumps(arguments))

    assert mended is not None
    assert mended.fixes
    assert json_object(mended.arguments) == arguments


@given(OBJECTS, st.data())
def test_a_cut_object_loses_no_part_of_a_value(
    arguments: dict[str, object], data: st.DataObject
) -> None:
    """What is mended has only values that were there; whole members may be missing behind them."""
    text = json.dumps(arguments)
    mended = repaired(text[: data.draw(st.integers(1, len(text) - 1))])

    if mended is not None:
        assert is_part(json_object(mended.arguments), arguments)


def is_part(part: object, whole: object) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    return part == whole


@given(BROKEN)
def test_whatever_comes_the_result_is_strict_json_or_nothing(text: str) -> None:
    mended = repaired(text)

    if mended is not None:
        assert isinstance(json_object(mended.arguments), dict)
        assert bool(mended.fixes) == (mended.arguments != text)


def test_nesting_beyond_the_limit_is_refused_and_not_followed() -> None:
    deep = '{"a":' * (DEEPEST + 2) + "1" + "}" * (DEEPEST + 2)

    assert repaired(deep[:-1] + ",}") is None
    assert repaired("{" * 100_000) is None
    assert repaired('{"a":' + "[" * 100_000) is None


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("before", ["", '{"a": [', '{"a": "'])
def test_the_work_grows_with_the_text_and_not_faster(unit: str, before: str) -> None:
    assert grows_no_faster_than(lambda length: before + unit * (length // len(unit)), repaired)
