"""Thoughts in the text of a reply: parted from the answer however the text is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models.base import Said, Thought
from holdfast.models.thinking import BLOCKS, Apart, unopened
from tests.models.growth import UNITS, grows_no_faster_than

SIZES = st.lists(st.integers(1, 20), min_size=1, max_size=8)
ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"
CALL = '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"a": 1}<|call|>'


def told(text: str, sizes: list[int]) -> tuple[str, str, Apart]:
    """What is told as a thought, and what as a part of the answer, while the text comes."""
    apart, at, turn = Apart(), 0, 0
    pieces: list[Said | Thought] = []
    while at < len(text):
        size = sizes[turn % len(sizes)]
        pieces += apart.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    pieces += apart.end()
    assert all(piece.text for piece in pieces)
    thought = "".join(piece.text for piece in pieces if isinstance(piece, Thought))
    answer = "".join(piece.text for piece in pieces if isinstance(piece, Said))
    return thought, answer, apart


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        *((f"{opens}hm{closes}yes", "hm", "yes") for opens, closes in BLOCKS.items()),
        *((f"\n{opens}\nhm\n{closes}\n\nyes\n", "\nhm\n", "yes\n") for opens, closes in BLOCKS.items()),
        *((f"{opens}{closes}yes", "", "yes") for opens, closes in BLOCKS.items()),
        *((f"{opens}a < b {closes[:-1]} ", f"a < b {closes[:-1]} ", "") for opens, closes in BLOCKS.items()),
        *((f"{closes}\n\nyes", "", "yes") for closes in BLOCKS.values()),
        *((f"I write {opens}x{closes}.", "", f"I write {opens}x{closes}.") for opens, closes in BLOCKS.items()),
        ("<think>a</think> <thinking>b</thinking> yes", "ab", "yes"),
        ("<think>a</think>say <think>b</think>", "a", "say <think>b</think>"),
        ("<think>a</think></think>yes", "a", "</think>yes"),
        ("<thinker>x</thinker>", "", "<thinker>x</thinker>"),
        (" " * 70 + "<think>a</think>", "", " " * 70 + "<think>a</think>"),
        ("<think>hm</think>" + " " * 70 + "yes", "hm", "yes"),
        ("<", "", "<"),
        (" <thin", "", " <thin"),
        # gpt-oss
        (f"{ANALYSIS}hm<|end|>{FINAL}yes<|return|>", "hm", "yes"),
        (f"<|start|>assistant{ANALYSIS}hm<|end|>\n{FINAL}yes", "hm", "yes"),
        (f"{ANALYSIS}a<|end|><|start|>assistant{ANALYSIS}b<|end|>{FINAL}yes", "ab", "yes"),
        (f"{ANALYSIS}hm{FINAL}yes", "hm", "yes"),
        ("<|channel|>final<|message|>yes", "", "yes"),
        ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", "", "{}"),
        (f"<|channel|>commentary<|message|>I look.<|end|><|start|>assistant{CALL}", "", f"I look.<|start|>assistant{CALL}"),
        (f"{ANALYSIS}hm<|end|>{CALL}{CALL}", "hm", f"{CALL}{CALL}"),
        (f"{ANALYSIS}hm", "hm", ""),
        ("<|start|>user says", "", "<|start|>user says"),
        (f"<|start|>{'x' * 300}<|message|>", "", f"<|start|>{'x' * 300}<|message|>"),
        (f"<|start|>assistant{'x' * 300}<|message|>", "", f"<|start|>assistant{'x' * 300}<|message|>"),
        ("<|message|>a", "", "<|message|>a"),
    ],
)  # fmt: skip
def test_a_thought_at_the_beginning_is_no_answer(text: str, thought: str, answer: str) -> None:
    for size in (1, 2, 3, 5, 8, 13, 1_000):
        assert told(text, [size])[:2] == (thought, answer)


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        *((f"hm\n{closes}\n\nyes\n", "hm\n", "yes\n") for closes in BLOCKS.values()),
        *((f"hm.{closes}Yes", "hm.", "Yes") for closes in BLOCKS.values()),
        ("I think so.</think>yes", "I think so.", "yes"),
        ("So it is. </think> The answer.", "So it is. ", "The answer."),
        ("so it is </think> The answer.", "so it is ", "The answer."),
        ("hm\n</think> yes", "hm\n", "yes"),
        ("hm</think>", "hm", ""),
        ("```\ncode\n```\nhm</think>yes", "```\ncode\n```\nhm", "yes"),
        ("They write `</think>` so.\n</think>\nyes", "They write `</think>` so.\n", "yes"),
        ("hm</think>a `</think>` b</think>", "hm", "a `</think>` b</think>"),
        ("hm</think>![a](b)", "hm", "![a](b)"),
        ("hm</think><think>more</think>yes", "hmmore", "yes"),
        (f"We need.<|end|>{FINAL}yes<|return|>", "We need.", "yes"),
        (f"We need.<|end|><|start|>assistant{CALL}", "We need.", f"<|start|>assistant{CALL}"),
        ("analysisWe need a word.assistantfinalyes", "We need a word.", "yes"),
    ],
)  # fmt: skip
def test_a_thought_without_its_beginning_is_found_when_the_text_is_whole(
    text: str, thought: str, answer: str
) -> None:
    assert told(text, [3])[1] == text
    assert unopened(text) == (thought, answer)


@pytest.mark.parametrize(
    "text",
    [
        "Write <think> first, then </think>.",
        "First\n<think>\nthen\n</think>\nand so on",
        "A block ends with `</think>` in most models.",
        'A block ends with "</think>" in most models.',
        "A block ends with </think>, mostly.",
        "The tag </think> ends a block.",
        "```xml\n<b>\n</think>\n</b>\n```\n",
        "```\nopen\n</think>",
        "~~~\n```\n</think>\n~~~",
        "analysis of the assistantfinal",
        "analysisWe need",
        "one <|end|> of a line",
        "",
    ],
)
def test_a_tag_in_code_or_in_a_sentence_is_text(text: str) -> None:
    assert unopened(text) == ("", text)


TAGS = st.sampled_from(
    [*BLOCKS, *BLOCKS.values(), ANALYSIS, FINAL, CALL, "<|end|>", "<|start|>", "<|channel|>", "<|call|>", "<", "`",
     "```", "\n", " ", "a", "to=", "<|message|>", "analysisA", "assistantfinal", "think>", "<|chan", "[/TH"]
)  # fmt: skip


@given(st.lists(TAGS | st.text(max_size=4), max_size=12).map("".join), SIZES)
def test_no_text_breaks_it_and_how_it_is_cut_changes_nothing(text: str, sizes: list[int]) -> None:
    thought, answer, apart = told(text, sizes)
    whole = told(text, [len(text) + 1])

    assert (thought, answer, apart.found, apart.thinking) == (
        *whole[:2],
        whole[2].found,
        whole[2].thinking,
    )
    if not apart.found:
        assert (thought, answer) == ("", text)
    assert sum(map(len, unopened(text))) <= len(text)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("before", ["", "a", "<think>"])
def test_the_work_grows_with_the_text_and_not_faster(unit: str, before: str) -> None:
    def parted(text: str) -> None:
        told(text, [25])
        told(text, [len(text)])
        unopened(text)

    assert grows_no_faster_than(lambda length: before + unit * (length // len(unit)), parted)
