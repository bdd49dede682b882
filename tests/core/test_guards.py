"""Each guard by itself: what it remembers, when it speaks, and what it takes for an answer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.answers import not_an_answer
from holdfast.core.events import Outcome, ToolFinished, Why
from holdfast.core.guards import (
    REMEMBERED,
    Deed,
    Drop,
    Evidence,
    Nudge,
    Seen,
    Stop,
    Tell,
    cycles_before,
    last_result,
    remember,
    repeats,
    times_before,
    verdict,
)
from holdfast.core.limits import Patience, Settings
from holdfast.core.messages import ToolCall, ToolMessage
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import calls, play, says, several, wants

READ = ToolSpec(name="read", mutates=False)
WRITE = ToolSpec(name="write")


def seen(story: str) -> Evidence:
    """`A1 B2!`: call A brought 1, then B brought 2 and changed something."""
    return Evidence(recent=tuple(Seen(w[0], w[1], w.endswith("!")) for w in story.split()))


def did(
    story: str,
    *,
    tool: str = "read",
    failed: bool = False,
    polls: bool = False,
    exists: bool = True,
) -> tuple[Deed, ...]:
    """The calls of one round, written as above."""
    return tuple(
        Deed(
            tool=tool,
            call=word[0],
            result=word[1],
            failed=failed,
            ran=exists,
            mutates=word.endswith("!"),
            polls=polls,
            exists=exists,
            times=1,
        )
        for word in story.split()
    )


# --- repeats --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("story", "times"),
    [
        ("", 0),
        ("B1", 0),
        ("A1 A1", 2),
        ("A1 B1 A1", 2),
        ("A1 A2", 1),
        ("A1 A2 A1", 1),
        ("A1 A1 B1!", 0),
        ("A1 B1! A1", 1),
        ("A1! A1! A1!", 3),
        ("A1! B1! A1!", 1),
    ],
)
def test_a_repeat_has_the_same_result_and_nothing_was_changed_since(story: str, times: int) -> None:
    assert times_before(seen(story), "A") == times


@pytest.mark.parametrize(
    ("story", "rounds"),
    [
        ("", 0),
        ("A1", 0),
        ("A1! B1! A1! B1!", 2),
        ("A1! B1! A1! B1! A1! B1!", 3),
        ("C1 A1! B1! A1! B1!", 2),
        ("A1 B1! C1 A1 B1! C1", 2),
        ("A1 B1! C1 D1 A1 B1! C1 D1 A1 B1! C1 D1", 3),
        ("A1 B1! C1 D1 E1 A1 B1! C1 D1 E1", 0),
    ],
)
def test_a_cycle_of_up_to_four_calls_is_counted_by_its_rounds(story: str, rounds: int) -> None:
    assert cycles_before(seen(story), "A") == rounds


def test_a_cycle_that_brings_something_else_begins_anew() -> None:
    assert cycles_before(seen("A1! B1! A2! B1!"), "A") < 2


def test_a_read_after_a_write_is_a_first_time() -> None:
    assert repeats(seen("A1 B1!"), "A", READ) == 1


def test_asking_again_is_what_a_polling_tool_is_for() -> None:
    assert repeats(seen("A1 A1 A1"), "A", ToolSpec(name="wait", polls=True)) == 1
    assert repeats(seen("A1 A1 A1"), "A", READ) == 4


def test_the_last_result_of_a_call_is_the_newest() -> None:
    assert [last_result(seen("A1 B2 A3 C4"), call) for call in "ABX"] == ["3", "2", None]


def test_a_file_is_read_again_after_it_was_written_also_where_second_times_are_blocked() -> None:
    box = ["old"]

    def write(_: ToolCall) -> str:
        box[0] = "new"
        return "ok"

    played = play(
        "change a",
        [calls("read", path="a"), calls("write", path="a"), calls("read", path="a"), says("done")],
        {"read": lambda _: box[0], "write": write},
        Settings(tools=(READ, WRITE), patience=Patience(repeat_blocked=2)),
    )

    assert [event.text for event in played.events if isinstance(event, ToolFinished)] == [
        "old",
        "ok",
        "new",
    ]


def test_calls_that_were_not_run_yet_are_not_said_to_have_brought_the_same() -> None:
    dice = iter("123456")
    played = play(
        "roll", [several(*[wants("read")] * 6), says("done")], {"read": lambda _: next(dice)}
    )

    told = [event.text for event in played.events if isinstance(event, ToolFinished)]
    assert [text for text in told if "the same" in text and "result" in text.split(".")[0]] == []


def test_what_is_said_to_stand_in_the_conversation_stands_there() -> None:
    story = [calls("read", path="plan.txt"), *(calls("read", path=f"{n}.txt") for n in range(12))]
    played = play(
        "work",
        [*story, calls("read", path="plan.txt"), says("done")],
        {"read": lambda call: f"{call.arguments} and so on, word for word. " * 60},
        replace(Settings.for_window(8_192, tools=(READ,)), patience=Patience(repeat_blocked=2)),
    )

    shown = [m for m in played.requests[-1].messages if isinstance(m, ToolMessage)]
    promised = any("is in the conversation above" in message.text for message in shown)
    assert not promised or any(message.text.startswith('{"path":"plan.txt"}') for message in shown)


# --- remembering ----------------------------------------------------------------------------


def test_a_round_is_remembered_call_by_call() -> None:
    before = Evidence(reasks=2, failed_rounds=1, stale_rounds=3, failing=(("write", 2),))

    after = remember(before, (*did("A1"), *did("B2!", tool="write")))

    assert replace(after, known=()) == Evidence(
        recent=(Seen("A", "1", False), Seen("B", "2", True)),
    )


def test_a_failed_change_changed_nothing() -> None:
    after = remember(Evidence(), did("A1!", tool="write", failed=True))

    assert (after.recent, after.failing, after.failed_rounds) == (
        (Seen("A", "1", False),),
        (("write", 1),),
        1,
    )


def test_a_tool_fails_by_rounds_and_one_success_forgives_them() -> None:
    once = remember(Evidence(), did("A1 B2", failed=True))
    twice = remember(once, did("C2", failed=True))
    mixed = remember(twice, (*did("A1", failed=True), *did("B1")))

    assert [each.failing for each in (once, twice, mixed)] == [(("read", 1),), (("read", 2),), ()]
    assert [each.failed_rounds for each in (once, twice, mixed)] == [1, 2, 0]


def test_files_that_cannot_be_read_each_for_its_own_reason_do_not_make_the_tool_a_failing_one() -> (
    None
):
    evidence = Evidence()
    for number in range(2, 9):
        evidence = remember(evidence, did(f"A{number}", failed=True))

    assert evidence.failing == (("read", 1),)


def test_a_tool_that_does_not_exist_is_missing_and_not_failing() -> None:
    after = remember(Evidence(), did("A1", tool="serach", failed=True, exists=False))

    assert (after.missing, after.failing) == (("serach",), ())


def test_a_round_without_anything_new_is_stale_and_a_poll_is_always_new() -> None:
    first = remember(Evidence(), did("A1 B1"))
    again = remember(first, did("B1 A1"))
    polled = remember(again, did("A1", polls=True))

    assert [each.stale_rounds for each in (first, again, polled)] == [0, 1, 0]
    assert polled.recent == again.recent


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 999)), max_size=200))
def test_what_the_guards_remember_is_bounded_and_the_newest(
    story: list[tuple[str, int]],
) -> None:
    evidence = Evidence()
    for call, number in story:
        (deed,) = did(f"{call}0", tool=f"tool{number}", failed=True)
        evidence = remember(evidence, (replace(deed, result=str(number)),))

    assert evidence.recent == tuple(Seen(c, str(n), False) for c, n in story)[-REMEMBERED:]
    assert max(len(evidence.known), len(evidence.failing)) <= REMEMBERED


# --- verdicts -------------------------------------------------------------------------------

PATIENCE = Patience()
CIRCLES = Evidence(most_repeated=5, barren=5)
FAILING = Evidence(failing=(("read", 5),))
FAILED = Evidence(failed_rounds=2)
STALE = Evidence(stale_rounds=6)
STUCK = Evidence(stale_rounds=12)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (Evidence(), None),
        (CIRCLES, Stop("The model made the same call 5 times and got the same result.")),
        (replace(CIRCLES, most_repeated=4), None),
        (replace(CIRCLES, barren=0), None),
        (FAILING, Drop("read")),
        (Evidence(failing=(("read", 4),)), None),
        (Evidence(failing=(("gone", 9),)), None),
        (
            FAILED,
            Nudge(
                Why.ALL_FAILED,
                "TOOL ERROR: All tool calls in the last rounds failed. Read the errors above, "
                "then change the tool, the arguments or the approach.",
            ),
        ),
        (
            replace(FAILED, missing=("raed",)),
            Nudge(
                Why.ALL_FAILED,
                "TOOL ERROR: There is no tool named 'raed'. Did you mean: read? "
                "Use ONLY tools listed in your available tools.",
            ),
        ),
        (
            STALE,
            Tell(
                "The last 6 rounds brought nothing new. The run goes on until 12; you can cancel "
                "it or tell the model something."
            ),
        ),
        (replace(STALE, told_stale=True), None),
        (STUCK, Stop("The last 12 rounds brought nothing new.")),
    ],
)
def test_each_rule_speaks_when_its_patience_is_over(evidence: Evidence, said: object) -> None:
    assert verdict(evidence, PATIENCE, (READ,)) == said


def test_of_several_rules_the_first_one_speaks() -> None:
    all_at_once = Evidence(
        most_repeated=5, barren=5, failing=(("read", 5),), failed_rounds=2, stale_rounds=12
    )
    fewer = [
        all_at_once,
        replace(all_at_once, most_repeated=1),
        replace(all_at_once, most_repeated=1, failing=()),
        replace(all_at_once, most_repeated=1, failing=(), failed_rounds=0),
    ]

    said = [verdict(evidence, PATIENCE, (READ,)) for evidence in fewer]

    assert [type(each) for each in said] == [Stop, Drop, Nudge, Stop]


# --- what is not an answer ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>',
        '\n <|tool_call|>[{"name": "read", "arguments": {}}]',
        '<|tool_call_start|>[read(path="a")]<|tool_call_end|>',
        '[TOOL_CALLS][{"name": "read", "arguments": {}}]',
        '[TOOL_CALLS]read{"path": "a"}',
        '<function=read>{"path": "a"}</function>',
        '<function_calls>\n<invoke name="read">',
        '<invoke name="read"><parameter name="path">a</parameter></invoke>',
        '<|python_tag|>read.call(path="a")',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read",
        '<|channel|>commentary to=functions.read <|message|>{"path": "a"}',
        '```json\n{"name": "read", "arguments": {"path": "a"}}\n```',
        '```\n{"tool": "read", "input": {"path": "a"}}\n```',
        '```tool_code\nread(path="a")\n```',
        'TOOL_CALL {"tool": "read", "input": {}}',
        'TOOL_CALL: {"tool": "read"}',
        '{"name": "read", "arguments": {"path": "a"}}',
        '{"tool": "read", "input": {"path": "a"}}',
        '{"type": "function", "function": {"name": "read", "arguments": "{}"}}',
        '{"tool_calls": [{"name": "read", "arguments": {}}]}',
    ],
)
def test_a_call_written_as_text_is_no_answer(text: str) -> None:
    assert not_an_answer(text).startswith("Your reply looks like a tool call written as text")


@pytest.mark.parametrize(
    "text",
    [
        '{"error": {"message": "Internal server error", "type": "server_error"}}',
        '{"error":"model runner has unexpectedly stopped"}',
        "Error code: 500",
        "Error code: 500 - {'error': {'message': 'overloaded'}}",
        "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>nginx</body></html>",
        "<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head></html>",
    ],
)
def test_an_error_of_the_server_is_no_answer(text: str) -> None:
    assert not_an_answer(text) == (
        "Your reply was an error message of the server, which is no answer."
    )


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_nothing_is_no_answer(text: str) -> None:
    assert not_an_answer(text) == "You returned an empty response."


@pytest.mark.parametrize(
    "text",
    [
        "It is noon.",
        "# Report\n\n```python\nprint('hello')\n```\n\n- done",
        "```json\n[1, 2, 3]\n```",
        '{"name": "Ana", "age": 3}',
        '```json\n{"name": "Ana", "age": 3}\n```',
        '{"items": [{"name": "read", "price": 3}]}',
        '{"error": null, "items": []}',
        '[{"name": "Ana"}, {"name": "Bo"}]',
        "Qwen writes <tool_call> before a call and </tool_call> behind it.",
        "The token [TOOL_CALLS] is Mistral's.",
        "Error code 500 means that the server failed.",
        "The log says: Error code: 500",
        "There was no error: all 3 files were read.",
        "[1] The lease ends in May.",
        "<b>Done</b>",
        "<!DOCTYPE html>\n<html><head><title>Ana's bakery</title></head><body>Bread</body></html>",
    ],
)
def test_an_honest_answer_is_one(text: str) -> None:
    assert not_an_answer(text) == ""


def test_a_blocked_call_is_not_run_and_says_so() -> None:
    played = play("x", [*[calls("read")] * 5, says("ok")], {"read": "same"})

    last = [event for event in played.events if isinstance(event, ToolFinished)][-1]
    assert (last.outcome, last.text.split(":")[0]) == (Outcome.NOT_RUN, "Not run")
