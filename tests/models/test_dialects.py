"""Calls written as text: found in every form that models have, and nowhere else."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.events import WantedCall
from holdfast.core.tools import ToolSpec
from holdfast.models.asked import Final
from holdfast.models.dialects import CUT, Spoken, read
from holdfast.models.spoken import Dialect, history_result, history_text, instructions
from tests.models.growth import UNITS, grows_no_faster_than
from tests.models.styles import BEGIN, CALL, END, EXAMPLES, FRAGMENTS, OTHER, READ, SEP, TOOLS


@pytest.mark.parametrize(("style", "text", "calls"), EXAMPLES)
def test_calls_are_found_in_every_form_and_nothing_is_left(
    style: str, text: str, calls: list[WantedCall]
) -> None:
    spoken = read(text, TOOLS)

    assert (spoken.text, list(spoken.calls), spoken.problem) == ("", calls, ""), style


@pytest.mark.parametrize(
    ("style", "text", "calls"), [each for each in EXAMPLES if each[0] != "fence not closed"]
)
def test_what_stands_around_a_call_stays_as_it_is(
    style: str, text: str, calls: list[WantedCall]
) -> None:
    before, after = "# Well, \n\n- a {b} <i>c</i>\n", "\n\nSo it *is*. \n```py\n[x(y)]\n```\n"

    spoken = read(before + text + after, TOOLS)

    assert (list(spoken.calls), spoken.problem) == (calls, ""), style
    breaks = "\n" * (len(calls) - 1)  # those that stood between the calls
    assert spoken.text in (before + after, before + breaks + after)


@pytest.mark.parametrize(("style", "text", "calls"), EXAMPLES)
def test_no_beginning_of_a_call_is_another_one(
    style: str, text: str, calls: list[WantedCall]
) -> None:
    for end in range(len(text)):
        spoken = read(text[:end], TOOLS)

        assert list(spoken.calls) == calls[: len(spoken.calls)], (style, text[:end])
        assert spoken.calls or spoken.text == text[:end]


@pytest.mark.parametrize(
    "text",
    [
        "The final {answer} is in [this note](http://x/y) and in list[0].",
        "FINAL\n\n| a | b |\n|---|---|\n",
        '{"name": "Ada", "born": 1815}',
        '{"name": "read", "description": "Reads a file.", "parameters": {"path": {}}}',
        '{"name": "read"}',
        '[{"name": "Ada", "input": {}}]',
        '```json\n{"name": "Ada", "arguments": {}}\n```',
        "```json\n{ broken\n```\nand more",
        f"```python\nTOOL_CALL {CALL}\n```",
        f"~~~xml\n<tool_call>{CALL}</tool_call>\n~~~",
        f"````md\n```json\n{CALL}\n```\n````",
        'Write `TOOL_CALL {"tool": "read", "input": {}}` to read, or `<tool_call>` tags.',
        f'The string "{CALL}" is a call.',
        "In prose, [read(the file)] and [unknown(a=1)] and read(path='x') are no calls.",
        '[read(path="x")](http://docs)',
        f"<think>I could say <tool_call>{CALL}</tool_call></think>No.",
        f"<think>I could say <tool_call>{CALL}</tool_call>",
        "Use <tool_call> and </tool_call> around it, or <function=name> with a name.",
        "tool_call {something}",
        f"{CALL} is how it is called.",
        'read\n{"path": "a.md"} is how it is called.',
        'unknown\n{"path": "a.md"}',
        '{"read": {"path": "a.md"}}',
        f'```python\nx = "```"\n<tool_call>{CALL}</tool_call>\n```',
        "Action: wait\nAction Input: none",
        '{"say": "<tool_call>{\\"name\\": \\"read\\", \\"arguments\\": {}}</tool_call>"}',
    ],
)
def test_what_is_no_call_stays_byte_for_byte(text: str) -> None:
    assert read(text, TOOLS) == Spoken(text)


PIECES = st.sampled_from(
    ["# Title", "- item", "| a | b |", '{"name": "Ada", "born": 1815}', "[x](http://y)", "the final {x}",
     f"```python\nTOOL_CALL {CALL}\n```", '```json\n{"a": [1, {"b": "}"}]}\n```', "`<tool_call>`", "  ",
     "f(x) = {x}", '"quoted"', "it's", "é😀", "```\nplain\n```", "[1] [2]", "{", "}", "\\"]
)  # fmt: skip
WORDS = st.text(st.characters(exclude_characters="`~<[{", codec="utf-8")).filter(
    lambda text: not any(name in text.lower() for name in (*TOOLS, "list", "final", "tool_call"))
)


@given(st.lists(PIECES | WORDS, max_size=8).map("\n".join))
def test_text_without_calls_is_never_changed(text: str) -> None:
    assert read(text, TOOLS) == Spoken(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('TOOL_CALL {"tool": "read", "input": {"path": "a.m', "cut off"),
        ('TOOL_CALL {"tool": "read", "input": {"path": "a.md"}', "cut off"),
        ('<tool_call>{"name": "read", "arguments": {"lines": 7', "cut off"),
        ("<tool_call>\n", "cut off"),
        ("<function=read>\n<parameter=path>\na.m", "cut off"),
        ("<function=read>\n<parameter=path>\na.md\n</parameter>\n", "cut off"),
        ("<function=read>\n<parameter=path>\na.md\n</parameter>\n<parameter=li", "cut off"),
        (f"<function=read>\n<parameter=path>\n<tool_call>{CALL}</tool_call>", "cut off"),
        ('{"name": "read", "arguments": {"path": "a.md"', "cut off"),
        ('{"type": "tool_call", "tool": "re', "cut off"),
        ('```json\n{"name": "read", "arguments": {"path": ', "cut off"),
        ('[TOOL_CALLS] [{"name": "read", "arguments": {}}', "cut off"),
        ('<|tool_call_start|>[read(path="a', "cut off"),
        ('[files.list(path="a", n=3', "cut off"),
        ('FINAL {"answer": "It is', "cut off"),
        ('<tool_call>{"name": "read", "arguments": {"a": "b"c"}}</tool_call>', "not valid JSON"),
        ("<tool_call>read the file a.md</tool_call>", "not valid JSON"),
        (r'<tool_call>{"name": "read", "arguments": {"path": "\d"}}</tool_call>', "not valid JSON"),
        ("<|tool_call_start|>[read(a.md)]<|tool_call_end|>", "not valid JSON"),
        ('```json\n{"name": "read", "arguments": {"a": b}}\n```', "not valid JSON"),
        ('<tool_call>{"arguments": {"path": "a.md"}}</tool_call>', "does not name"),
        ('<tool_call>{"name": "read", "tool": "write", "input": {}}</tool_call>', "does not name"),
        ('TOOL_CALL {"tool": "read", "input": "a.md"}', "one JSON object"),
        ('TOOL_CALL {"tool": "read", "input": {}, "arguments": {}}', "one JSON object"),
        ('<|channel|>commentary to=read<|message|>["a.md"]<|call|>', "one JSON object"),
        ('FINAL {"citations": [1]}', '"answer"'),
    ],
)
def test_a_call_that_cannot_be_read_is_no_call_and_the_model_is_told_why(
    text: str, problem: str
) -> None:
    spoken = read(text, TOOLS)

    assert (spoken.text, spoken.calls, spoken.final) == (text, (), None)
    assert problem in spoken.problem


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            '<tool_call>{"name": "read", "arguments": {"path": "a.md"}</tool_call>',
            "missing closing",
        ),
        ('```json\n{"name": "read", "arguments": {"path": "a.md"}\n```', "missing closing"),
        ('<tool_call>{"name": "read", "arguments": {"path": "a.md"}}}</tool_call>', "too many"),
        ("<tool_call>{'name': 'read', 'arguments': {'path': 'a.md'}}</tool_call>", "single quotes"),
        ('TOOL_CALL {"tool": "read", "input": {"path":""a.md"}}', "doubled quote"),
        ('{"name": "read", "arguments": "{\\"path\\":\\"a.md\\",}"}', "trailing comma"),
    ],
)
def test_a_call_that_was_mended_says_so(text: str, fix: str) -> None:
    spoken = read(text, TOOLS)

    assert (spoken.text, spoken.calls, spoken.problem) == ("", (READ,), "")
    assert any(fix in said for said in spoken.fixes)


def test_a_good_call_beside_a_bad_one_is_kept_and_the_bad_one_stays_in_the_text() -> None:
    bad = '<tool_call>{"name": "read", "arguments": {bad}}</tool_call>'

    spoken = read(f"One.\n{bad}\n<tool_call>{CALL}</tool_call>\nTwo.", TOOLS)

    assert (spoken.text, spoken.calls) == (f"One.\n{bad}\n\nTwo.", (READ,))
    assert "not valid JSON" in spoken.problem


def test_a_call_after_the_thinking_is_taken_and_the_one_in_it_is_not() -> None:
    thought = f"<think>Perhaps <tool_call>{OTHER}</tool_call>?</think>\n"

    assert read(f"{thought}<tool_call>{CALL}</tool_call>", TOOLS) == Spoken(thought, (READ,))


def test_a_final_answer_keeps_its_markdown_and_its_citations() -> None:
    answer = '# Title\n\n- a } b\n- "quoted" [2]\n\n```js\nif (x) { y() }\n```\n'
    final = json.dumps({"answer": answer, "citations": [1, "2", "none", 3.5, [4]]})

    spoken = read(f"Done.\nFINAL {final}", TOOLS)

    assert spoken.final is not None
    assert (spoken.text, spoken.calls) == ("Done.\n", ())
    assert (spoken.final.answer, spoken.final.citations) == (answer, (1, 2))
    assert read(f'{{"type": "final", {final[1:]}', TOOLS).final == Final(
        answer, (1, 2), f'{{"type":"final",{spoken.final.json[1:]}'
    )


def test_values_without_quotes_get_the_type_their_schema_gives_them() -> None:
    def call(path: str, lines: str) -> str:
        return (
            f"<function=read>\n<parameter=path>\n{path}\n</parameter>\n"
            f"<parameter=lines>\n{lines}\n</parameter>\n</function>"
        )

    assert json.loads(read(call('{"a": 1}\n', "5"), TOOLS).calls[0].arguments) == {
        "path": '{"a": 1}\n',
        "lines": 5,
    }
    assert json.loads(read(call("123", "null"), TOOLS).calls[0].arguments) == {
        "path": "123",
        "lines": None,
    }
    assert json.loads(read(call('{"a": 1}', "True"), ["read"]).calls[0].arguments) == {
        "path": '{"a": 1}',
        "lines": True,
    }


# --- writing and reading back ---------------------------------------------------------------

Write = Callable[[str, str], str]
"""A call of the tool with the arguments, as a family writes it."""
JSON_FORMS: dict[str, Write] = {
    "actions": lambda name, given: history_text(name, given, Dialect.ACTIONS),
    "json": lambda name, given: history_text(name, given, Dialect.JSON),
    "hermes": lambda n, g: f'<tool_call>\n{{"name": "{n}", "arguments": {g}}}\n</tool_call>',
    "not closed": lambda n, g: f'<tool_call>{{"name": "{n}", "arguments": {g}}}',
    "fenced": lambda n, g: f'```json\n{{"name": "{n}", "arguments": {g}}}\n```',
    "marked fence": lambda n, g: f'```tool_call\n{{"name": "{n}", "parameters": {g}}}\n```',
    "bare": lambda n, g: f'{{"name": "{n}", "arguments": {g}}}',
    "doubled": lambda n, g: f'{{{{"name": "{n}", "arguments": {g}}}}}',
    "list": lambda n, g: f'[{{"name": "{n}", "arguments": {g}}}]',
    "as text": lambda n, g: f'{{"name": "{n}", "arguments": {json.dumps(g)}}}',
    "llama": lambda n, g: f"<function={n}>{g}</function>",
    "mistral": lambda n, g: f'[TOOL_CALLS] [{{"name": "{n}", "arguments": {g}}}]',
    "mistral v11": lambda n, g: f"[TOOL_CALLS]{n}{g}",
    "deepseek": lambda n, g: f"{BEGIN}function{SEP}{n}\n```json\n{g}\n```{END}",
    "kimi": lambda n, g: (
        f"<|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>{g}<|tool_call_end|>"
    ),
    "react": lambda n, g: f"Action: {n}\nAction Input: {g}",
}
TEXTS = st.text() | st.sampled_from(
    ["}", '"', "</tool_call>", "<tool_call>", "```", "\n```\n", "\\", '\\"', "TOOL_CALL {", "]", ")",
     "'", "</function>", "<|tool_call_end|>", END, "</think>", "{{", "“", "//", '"}}', "<think>"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize("form", JSON_FORMS)
@given(
    arguments=st.dictionaries(TEXTS, VALUES, max_size=4),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
)
def test_any_arguments_come_back_from_any_form(
    form: str, arguments: dict[str, object], indent: int | None, ascii_only: bool
) -> None:
    written = json.dumps(arguments, indent=indent, ensure_ascii=ascii_only)

    spoken = read(f"Well.\n{JSON_FORMS[form]('search_docs', written)}\nSo.", TOOLS)

    assert (spoken.text, spoken.problem) == ("Well.\n\nSo.", "")
    [call] = spoken.calls
    assert (call.name, json.loads(call.arguments)) == ("search_docs", arguments)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4))
def test_any_arguments_come_back_from_python(arguments: dict[str, object]) -> None:
    given_ = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())

    for text in (f"[search_docs({given_})]", f"<|tool_call_start|>[search_docs({given_})]"):
        [call] = read(text, TOOLS).calls
        assert json.loads(call.arguments) == arguments


@given(st.data(), st.sampled_from(sorted(JSON_FORMS)), st.dictionaries(TEXTS, VALUES, max_size=3))
def test_a_cut_call_is_whole_or_none(
    data: st.DataObject, form: str, arguments: dict[str, object]
) -> None:
    whole = JSON_FORMS[form]("search_docs", json.dumps(arguments))
    spoken = read(whole[: data.draw(st.integers(0, len(whole) - 1))], TOOLS)

    for call in spoken.calls:
        assert json.loads(call.arguments) == arguments


@given(st.lists(FRAGMENTS, max_size=14).map("".join) | st.text(), st.booleans())
def test_no_text_breaks_it_and_every_call_has_an_object(text: str, typed: bool) -> None:
    spoken = read(text, TOOLS if typed else list(TOOLS))

    for call in spoken.calls:
        assert call.name
        assert isinstance(json.loads(call.arguments), dict)
    if not (spoken.calls or spoken.final):
        assert spoken.text == text


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("after", ["", "</tool_call>"])
def test_the_work_grows_with_the_text_and_not_faster(unit: str, after: str) -> None:
    assert grows_no_faster_than(
        lambda length: unit * (length // len(unit)) + after, lambda text: read(text, TOOLS)
    )


# --- teaching it ----------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", Dialect)
def test_a_model_that_does_as_it_is_told_is_understood(dialect: Dialect) -> None:
    tool = ToolSpec(name="read", description="Reads\na file.", parameters='{"type":"object"}')
    told = instructions([tool], dialect)
    call, final = (line for line in told.splitlines() if '"..."' in line or "{...}" in line)

    assert '- read: Reads a file. Input: {"type":"object"}' in told
    assert read(call.replace("{...}", '{"a": 1}'), TOOLS).calls == (WantedCall("name", '{"a":1}'),)
    assert (read(final, TOOLS).final or Final("")).answer == "..."


def test_a_result_is_shown_as_it_is_under_the_name_of_its_tool() -> None:
    assert history_result("read", "a\nb") == "RESULT of read:\na\nb"


def test_the_words_for_a_cut_call_say_that_it_was_not_run() -> None:
    assert "not run" in CUT
