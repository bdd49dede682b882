"""The veil: nothing of a call is shown, everything else is, and soon."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models.dialects import read
from holdfast.models.veil import Veil
from tests.models.growth import UNITS, grows_no_faster_than
from tests.models.styles import CALL, EXAMPLES, FRAGMENTS, TOOLS

SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=20)
EXAMPLE_TEXTS = st.sampled_from([text for _, text, _ in EXAMPLES])
ANY = st.lists(FRAGMENTS | st.text(max_size=5), max_size=14).map("".join) | EXAMPLE_TEXTS


def pieces(text: str, sizes: list[int]) -> list[str]:
    """The text in pieces of these sizes, again and again."""
    places = [0]
    while places[-1] < len(text):
        places += accumulate(sizes, initial=places[-1])
    return [text[a:b] for a, b in pairwise(places) if text[a:b]]


def shown(text: str, sizes: list[int]) -> str:
    veil = Veil()
    return "".join(map(veil.feed, pieces(text, sizes)))


@given(ANY, SIZES)
def test_what_was_shown_and_the_rest_are_the_text(text: str, sizes: list[int]) -> None:
    veil = Veil()

    assert "".join(map(veil.feed, pieces(text, sizes))) + veil.end() == text
    assert veil.end() == ""


@pytest.mark.parametrize(("style", "text"), [(style, text) for style, text, _ in EXAMPLES])
def test_of_a_reply_that_is_a_call_nothing_is_shown(style: str, text: str) -> None:
    for sizes in ([1], [2], [3], [5], [8], [13, 1, 4], [1_000]):
        assert shown(text, sizes) == "", style
        assert shown(f"Let me look.\n\n{text}", sizes) == "Let me look."


PARTS = st.sampled_from(
    ["Well.", "It is\n- one\n- two", "| a | b |", "[x](y)", "a < b", "`<tool_call>`", '{"a": 1}', "Action: none",
     "```python\nx = {}\n```", '```json\n{"a": 1}\n```', "```\n$ ls\n```", "~~~xml\n<tool_call>\n~~~", "{x}", "",
     *(text for style, text, _ in EXAMPLES if style != "fence not closed")]
)  # fmt: skip


@given(st.lists(PARTS, max_size=6).map("\n".join), SIZES)
def test_what_is_shown_beside_a_call_is_what_is_left_without_it(
    text: str, sizes: list[int]
) -> None:
    spoken = read(text, TOOLS)

    if spoken.calls:
        assert spoken.text.startswith(shown(text, sizes).rstrip())


WORD = st.text(st.characters(categories=["L", "N", "S", "P"], exclude_characters="`~<[{◁✿>:"))
LINES = st.lists(st.lists(WORD, max_size=6).map(" ".join), max_size=6).map("\n".join)


@given(LINES, SIZES)
def test_prose_waits_for_no_more_than_the_word_that_is_being_written(
    text: str, sizes: list[int]
) -> None:
    veil, fed, seen = Veil(), "", ""
    for piece in pieces(text, sizes):
        fed += piece
        seen += veil.feed(piece)
        waiting = fed[len(seen) :].strip()
        line = fed.rstrip().rsplit("\n", 1)[-1]

        assert len(waiting.split()) <= 1
        is_first = line.strip() == waiting
        assert is_first or "tool_call".startswith(waiting.lower()) or waiting in BEGINNINGS


BEGINNINGS = [word[:end] for word in ("functools", "final", "FINAL") for end in range(1, 10)]


@pytest.mark.parametrize(
    ("fed", "seen"),
    [
        (["```py"], ""),
        (["```python"], ""),
        (["```python\n"], "```python\n"),
        (["```python\n", "{"], "```python\n{"),
        (["```py", "thon", "\n", "print(", "{})\n", "```", "\n", "So it is"], "```python\nprint({})\n```\nSo it is"),
        (["```\n", "$ ls"], "```\n$ ls"),
        (["~~~", "xml\n", "<tool_call>"], "~~~xml\n<tool_call>"),
        (["```sh ls```", " {"], "```sh ls``` {"),
        (["```sh ls```\n", CALL], "```sh ls```"),
        (["See:\n```json\n", '{"a": ', "1}\n"], "See:"),
        (["See:\n```json\n", '{"a": ', "1}\n", "```\n", "So it is"], 'See:\n```json\n{"a": 1}\n```\nSo it is'),
        (["```json\n[1, 2]\n", "``", "`", " and"], "```json\n[1, 2]\n``` and"),
        (["```json\n", '{"input": 1}\n```\nSo.'], ""),
        (['{"a": {\n', '"b": 1}\n', "}\n", "So it is"], '{"a": {\n"b": 1}\n}\nSo it is'),
        (['{"a": 1', "}", " is it"], ""),
        (['{"a": 1}```\n', f"{CALL}\n```"], ""),
        (["A {x} and [y](z), a < b, <b>c</b>."], "A {x} and [y](z), a < b, <b>c</b>."),
        (["{x}"], "{x}"),
        (["Write `<tool_call>` or ", "`TOOL_CALL {\"`."], "Write `<tool_call>` or `TOOL_CALL {\"`."),
        (["too", "l box, ", "fina", "lly"], "tool box, finally"),
        (["<", "div>"], "<div>"),
        (["Action", ": ", "no, none.\n"], "Action: no, none."),
        (["read\n", "and write"], "read\nand write"),
        (["<think>", "a mention"], "<think>a mention"),
        (["a ", "b", " ", "\n", "\n"], "a b"),
        (["a b", " " * 150], "a b" + " " * 51),
        (["one", "\n", "two"], "one"),
    ],
)  # fmt: skip
def test_what_is_no_call_is_shown_as_soon_as_that_is_clear(fed: list[str], seen: str) -> None:
    veil = Veil()

    assert "".join(map(veil.feed, fed)) == seen


def test_what_comes_behind_a_call_waits_for_the_end() -> None:
    veil = Veil()

    assert veil.feed(f"Well.\n<tool_call>{CALL}</tool_call>\nAnd more.") == "Well."
    assert veil.end() == f"\n<tool_call>{CALL}</tool_call>\nAnd more."


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("size", "short"), [(20, 5_000), (10**6, 15_000)])
def test_the_work_grows_with_the_text_and_not_faster(unit: str, size: int, short: int) -> None:
    assert grows_no_faster_than(
        lambda length: "a\n" + unit * (length // len(unit)),
        lambda text: shown(text, [size]),
        short,
    )
