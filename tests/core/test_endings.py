"""How a run is made to end: limits, conclusions, reports, and the guards that call for them.

Whatever the reason, the model is asked at most once more, gets no tools for it, and what it then
says is held against what really ran.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, cycle

import pytest
from inline_snapshot import snapshot

from holdfast.core.claims import UNVERIFIED
from holdfast.core.effects import CallModel, RunTools, StopWork
from holdfast.core.events import (
    Failure,
    Finish,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Nudged,
    Outcome,
    Reply,
    TimeRanOut,
    ToolDropped,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    WantedCall,
    Warned,
)
from holdfast.core.instructions import CONCLUDE
from holdfast.core.limits import Limits, OnLimit, Patience, Settings, StopReason, Usage
from holdfast.core.messages import Note, ToolCall
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import Answer, Fails, Played, Says, calls, play, says, several, wants

READ = ToolSpec(name="read", mutates=False)
WRITE = ToolSpec(name="write")
WAIT = ToolSpec(name="wait", mutates=False, polls=True)


def text_of(call: ToolCall) -> str:
    return f"text of {json.loads(call.arguments)['path']}"


TOOLS: dict[str, Answer] = {"read": text_of, "write": "ok", "wait": "still busy"}
USAGE = Usage(prompt=700, completion=50, cost=40_000)


def settings(**limits: int) -> Settings:
    return Settings(tools=(READ, WRITE, WAIT), limits=replace(Limits(), **limits))


def reads(start: int = 1) -> Iterator[Says]:
    """A model that reads one file after another and never comes to an end."""
    replies = (calls("read", path=f"{number}.txt") for number in count(start))
    return (replace(reply, usage=USAGE) for reply in replies)


def first(many: int, script: Iterator[Says]) -> list[Says]:
    return [next(script) for _ in range(many)]


def concluded_once(played: Played, work: int) -> bool:
    """After so many requests for work there was one more, without tools, under the rule."""
    last = played.requests[-1]
    return (
        len(played.requests) == work + 1
        and last.tools == ()
        and list(last.messages)[-1] == Note(CONCLUDE)
        and all(request.tools for request in played.requests[:-1])
    )


# limits

LIMITS = [
    ("rounds", 2, StopReason.OUT_OF_ROUNDS, "The limit of 2 rounds is reached."),
    ("calls", 2, StopReason.OUT_OF_CALLS, "The limit of 2 tool calls is reached."),
    ("tokens", 1500, StopReason.OUT_OF_TOKENS, "The limit of 1500 tokens is reached."),
    ("cost", 80_000, StopReason.OUT_OF_MONEY, "The limit of $0.08 is reached."),
    ("seconds", 5, StopReason.OUT_OF_TIME, "The limit of 5 seconds is reached."),
]


@pytest.mark.parametrize(("limit", "most", "reason", "sentence"), LIMITS)
def test_a_crossed_limit_leaves_one_request_for_an_honest_summary(
    limit: str, most: int, reason: StopReason, sentence: str
) -> None:
    script = [*first(2, reads()), says("I read 1.txt and 2.txt.")]

    played = play("read", script, TOOLS, settings(**{limit: most}))

    assert concluded_once(played, work=2)
    assert played.told[-4:] == [
        f"ending: {reason.value}: {sentence}",
        "asked: conclude",
        "model: I read 1.txt and 2.txt.",
        f"stopped, {reason.value}: I read 1.txt and 2.txt.",
    ]


@pytest.mark.parametrize(("limit", "most", "reason", "sentence"), LIMITS)
def test_where_a_limit_is_an_error_the_report_is_the_text_and_the_reason_the_same(
    limit: str, most: int, reason: StopReason, sentence: str
) -> None:
    strict = replace(settings(**{limit: most}), on_limit=OnLimit.ERROR)

    played = play("read", first(3, reads()), TOOLS, strict)

    assert len(played.requests) == 2
    assert played.stopped.reason is reason
    assert played.stopped.text.splitlines() == [
        f"The run stopped ({reason.value}) without an answer from the model. {sentence}",
        "What was really done: 2 of 2 tool calls succeeded, 0 failed, 0 were not run.",
        "Processed:",
        "- read(path=1.txt)",
        "- read(path=2.txt)",
        "No other tool was called in this run.",
    ]


def test_a_small_limit_of_money_is_named_as_what_it_is() -> None:
    played = play("read", first(1, reads()), TOOLS, settings(cost=900))

    assert played.told[-2] == "ending: out of money: The limit of $0.0009 is reached."


def test_of_more_calls_than_are_left_the_first_are_run() -> None:
    reply = several(*(wants("read", path=f"{name}.txt") for name in "abc"))

    played = play("read", [reply, says("Only a.txt and b.txt.")], TOOLS, settings(calls=2))

    assert played.told == snapshot(
        [
            "user: read",
            'model: read({"path": "a.txt"}), read({"path": "b.txt"}), read({"path": "c.txt"})',
            "c00000003: Not run: the limit of 2 tool calls is reached.",
            "c00000001: text of a.txt",
            "c00000002: text of b.txt",
            "ending: out of calls: The limit of 2 tool calls is reached.",
            "asked: conclude",
            "model: Only a.txt and b.txt.",
            "stopped, out of calls: Only a.txt and b.txt.",
        ]
    )


def test_an_answer_in_the_last_round_is_an_answer() -> None:
    played = play("hello", [says("Hello.", usage=USAGE)], TOOLS, settings(rounds=1, tokens=10))

    assert played.told == snapshot(["user: hello", "model: Hello.", "stopped, answered: Hello."])


def test_the_alarm_while_a_model_is_asked_gives_the_request_up() -> None:
    played = play("read", first(1, reads()), TOOLS, settings(seconds=60))

    stop_work, _ = played.only(TimeRanOut(1, 61.0))

    assert stop_work == StopWork()
    played.happens(ModelReplied(2, Reply(text="Too late."), 62.0))
    played.happens(ModelReplied(3, Reply(text="I read 1.txt."), 63.0))
    assert played.told == snapshot(
        [
            "user: read",
            'model: read({"path": "1.txt"})',
            "c00000001: text of 1.txt",
            "time ran out",
            "ending: out of time: The limit of 60 seconds is reached.",
            "asked: conclude",
            "model: Too late.",
            "model: I read 1.txt.",
            "stopped, out of time: I read 1.txt.",
        ]
    )


def test_the_alarm_while_tools_run_gives_them_up() -> None:
    played = Played([says("I could not finish.")], TOOLS)
    played.only(UserSpoke("go", 1.0, settings(seconds=60)))
    played.only(ModelReplied(1, Reply(calls=(wants("read", path="a"), wants("write"))), 2.0))
    played.only(ToolStarted("c00000001", 3.0))
    played.only(ToolFinished("c00000001", Outcome.DONE, "text", 4.0))
    played.only(ToolStarted("c00000002", 5.0))

    played.happens(TimeRanOut(1, 61.0))

    assert played.told == snapshot(
        [
            "user: go",
            'model: read({"path": "a"}), write({})',
            "c00000001: text",
            "time ran out",
            "c00000002: unknown: Given up when the time of the run was up, while this tool was running. It may o…",
            "ending: out of time: The limit of 60 seconds is reached.",
            "asked: conclude",
            "model: I could not finish.",
            "stopped, out of time: I could not finish.",
        ]
    )
    assert played.requests[-1].tools == ()


def test_the_first_seconds_count_on_a_clock_that_starts_at_zero() -> None:
    played = Played([], TOOLS)
    played.only(UserSpoke("go", 0.0, settings(seconds=50)))
    played.only(ModelReplied(1, Reply(calls=(wants("read", path="a"),)), 100.0))
    played.only(ToolFinished("c00000001", Outcome.DONE, "text", 100.0))

    assert "ending: out of time: The limit of 50 seconds is reached." in played.told


def test_an_alarm_that_rings_for_the_run_before_does_not_end_the_next() -> None:
    played = play("hello", [says("Hello.")], TOOLS, settings(seconds=60))
    played.user("And again?", settings(seconds=60))

    played.happens(TimeRanOut(1, played.tick()))

    assert "ending: out of time: The limit of 60 seconds is reached." not in played.told


# conclusions and reports


def test_a_silent_conclusion_leaves_the_report_from_the_ledger() -> None:
    script = [
        calls("read", path="a.txt"),
        calls("broken", path="b.txt"),
        several(wants("read", path="c.txt"), wants("read", path="d.txt")),
        says("  "),
    ]
    tools = {**TOOLS, "broken": OSError("disk error")}
    some = replace(settings(calls=3), tools=(READ, ToolSpec(name="broken")))

    played = play("read all", script, tools, some)

    assert concluded_once(played, work=3)
    assert played.stopped.reason is StopReason.OUT_OF_CALLS
    assert played.stopped.text.splitlines() == snapshot(
        [
            "The run stopped (out of calls) without an answer from the model. The limit of 3 tool calls is reached.",
            "What was really done: 2 of 4 tool calls succeeded, 1 failed, 1 were not run.",
            "Processed:",
            "- read(path=a.txt)",
            "- read(path=c.txt)",
            "Failed:",
            "- broken(path=b.txt): disk error",
            "Not processed:",
            "- read(path=d.txt): Not run: the limit of 3 tool calls is reached.",
            "No other tool was called in this run.",
        ]
    )


def test_a_conclusion_that_lies_is_marked_line_by_line() -> None:
    lies = """\
- 1.txt: read
- 2.txt: not processed
- 3.txt: processed
I moved 1.txt to archive/1.txt.
The total is 4711.50."""

    played = play("read 1.txt 2.txt", [*first(1, reads()), says(lies)], TOOLS, settings(rounds=1))

    assert played.stopped.text.splitlines() == snapshot(
        [
            "- 1.txt: read",
            "- 2.txt: not processed",
            "- 3.txt: processed [not verified: no tool result shows this]",
            "I moved 1.txt to archive/1.txt. [not verified: no tool result shows this]",
            "The total is 4711.50. [not verified: no tool result shows this]",
        ]
    )


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param("All 8 receipts were processed.", id="more files than calls"),
        pytest.param("The total is 28.", id="a piece of another number"),
        pytest.param("Deleted 1.txt.", id="a deed where only a reading tool ran"),
        pytest.param("2.txt was processed without errors.", id="praise that sounds like a failure"),
        pytest.param("The total is 99.95.", id="what the model itself said before"),
    ],
)
def test_a_lie_that_only_looks_like_what_was_seen_is_marked(lie: str) -> None:
    look = several(wants("read", path="1.txt"), text="I expect a total of 99.95.")
    amounts = {"read": "amount: 1284.5"}

    played = play("sum up 1.txt and 2.txt", [look, says(lie)], amounts, settings(rounds=1))

    assert played.stopped.text == lie + UNVERIFIED


@pytest.mark.parametrize(
    "truth",
    [
        "1.txt: the amount is 1284.5.",
        "1.txt: the amount is $1,284.50.",
        "I processed 1 of 2 files; 2.txt was not processed.",
        "I was unable to complete the task.",
    ],
)
def test_what_is_true_is_not_marked(truth: str) -> None:
    script = [calls("read", path="1.txt"), says(truth)]
    amounts = {"read": "amount: 1284.5"}

    played = play("sum up 1.txt and 2.txt", script, amounts, settings(rounds=1))

    assert played.stopped.text == truth


def test_calls_in_a_conclusion_are_not_run() -> None:
    more = several(wants("write"), text="I read 1.txt.")

    played = play("read", [*first(1, reads()), more], TOOLS, settings(rounds=1))

    assert played.told == snapshot(
        [
            "user: read",
            'model: read({"path": "1.txt"})',
            "c00000001: text of 1.txt",
            "ending: out of rounds: The limit of 1 round is reached.",
            "asked: conclude",
            "model: I read 1.txt. write({})",
            "stopped, out of rounds: The run stopped (out of rounds) without an answer from the model. The limit…",
        ]
    )


@pytest.mark.parametrize(
    "does",
    [
        pytest.param(ModelReplied(2, Reply(), 9.0), id="silent"),
        pytest.param(ModelReplied(2, Reply(calls=(wants("write"),)), 9.0), id="calls alone"),
        pytest.param(ModelReplied(2, Reply(text="<tool_call>read"), 9.0), id="markup"),
        pytest.param(ModelReplied(2, Reply(text="No.", finish=Finish.REFUSED), 9.0), id="refused"),
        pytest.param(ModelFailed(2, Failure.GONE, "connection reset", 9.0), id="failed"),
        pytest.param(ModelFailed(2, Failure.OVERFLOW, "too long", 9.0), id="does not fit"),
        pytest.param(TimeRanOut(1, 9.0), id="time ran out"),
    ],
)
def test_where_no_conclusion_comes_the_report_gives_the_first_reason(does: FromTheWorld) -> None:
    played = play("read", first(1, reads()), TOOLS, settings(rounds=1))

    assert not any(isinstance(effect, CallModel | RunTools) for effect in played.only(does))

    assert played.stopped.reason is StopReason.OUT_OF_ROUNDS
    first_line, *facts = played.stopped.text.splitlines()
    assert first_line.startswith(
        "The run stopped (out of rounds) without an answer from the model. "
        "The limit of 1 round is reached."
    )
    assert facts == [
        "What was really done: 1 of 1 tool calls succeeded, 0 failed, 0 were not run.",
        "Processed:",
        "- read(path=1.txt)",
        "No other tool was called in this run.",
    ]


def test_a_conclusion_that_the_output_limit_cut_says_so() -> None:
    script = [*first(1, reads()), says("I read 1.txt, and then", Finish.LENGTH)]

    played = play("read", script, TOOLS, settings(rounds=1))

    assert played.stopped.text == (
        "I read 1.txt, and then\n[... the reply reached the output limit]"
    )


def test_a_report_that_lists_only_some_calls_does_not_deny_the_others() -> None:
    script = [several(*(wants("read", path=f"{n}.txt") for n in range(60))), says("")]

    played = play("read", script, TOOLS, settings(rounds=1))

    report = played.stopped.text
    assert "read(path=3.txt)" in report or "not listed here was not touched" not in report


@pytest.mark.parametrize(
    ("failure", "detail"),
    [
        (Failure.GONE, "connection reset"),
        (Failure.BUSY, "429 after 5 attempts"),
        (Failure.REJECTED, "401 invalid key"),
        (Failure.GARBLED, ""),
    ],
)
def test_a_model_that_fails_for_good_leaves_a_report_that_claims_nothing(
    failure: Failure, detail: str
) -> None:
    played = play("read", [*first(1, reads()), Fails(failure, detail)], TOOLS, settings())

    assert played.stopped.reason is StopReason.MODEL_FAILED
    assert len(played.requests) == 2
    text = played.stopped.text.splitlines()
    assert detail in text[0]
    if failure is not Failure.GONE:
        assert "could not be reached" not in text[0]
    assert text[1:] == snapshot(
        [
            "What was really done: 1 of 1 tool calls succeeded, 0 failed, 0 were not run.",
            "Processed:",
            "- read(path=1.txt)",
            "No other tool was called in this run.",
        ]
    )


# guards


def test_the_same_call_with_the_same_result_is_told_at_three_and_stopped_at_five() -> None:
    script = [*[calls("read", path="a")] * 5, says("It says: text of a.")]

    played = play("read a", script, TOOLS, settings())

    assert played.told == snapshot(
        [
            "user: read a",
            'model: read({"path": "a"})',
            "c00000001: text of a",
            'model: read({"path": "a"})',
            "c00000002: text of a",
            'model: read({"path": "a"})',
            "c00000003: text of a",
            'model: read({"path": "a"})',
            "c00000004: text of a",
            'model: read({"path": "a"})',
            "c00000005: Not run: you already called read with these exact arguments 4 times, and the result was …",
            "ending: no progress: The model made the same call 5 times and got the same result.",
            "asked: conclude",
            "model: It says: text of a.",
            "stopped, no progress: It says: text of a.",
        ]
    )
    shown = [message.text for message in played.requests[-1].messages]
    assert [text for text in shown if "call number" in text] == snapshot(
        [
            """\
text of a
[This is call number 3 with the same arguments and the same result. At number 5 the run is stopped: use the result, or do something else.]\
""",
            """\
text of a
[This is call number 4 with the same arguments and the same result. At number 5 the run is stopped: use the result, or do something else.]\
""",
        ]
    )


def test_a_model_is_told_before_it_is_stopped_also_where_it_repeats_within_a_reply() -> None:
    four = several(*[wants("read", path="a")] * 4)

    played = play("read a", [four, calls("read", path="a"), says("Done.")], TOOLS, settings())

    told = any("call number" in message.text for message in played.requests[1].messages)
    assert told or played.stopped.reason is StopReason.ANSWERED


def test_of_twins_in_one_reply_nothing_is_said_that_is_not_known_yet() -> None:
    """None of them has run when the fifth is refused, so nobody knows what they bring."""
    played = play("next", [several(*[wants("write")] * 5), says("Done.")], TOOLS, settings())

    shown = [message.text for message in played.requests[-1].messages]
    assert not any("the result was the same" in text for text in shown)


def test_a_model_that_looks_again_after_each_new_thing_is_only_blocked() -> None:
    script = [several(wants("list"), wants("read", path=str(n))) for n in range(8)]
    tools = Settings(tools=(READ, replace(READ, name="list")))

    played = play("go", [*script, says("Done.")], {**TOOLS, "list": "a, b"}, tools)

    assert played.stopped.reason is StopReason.ANSWERED
    assert played.state.run is not None
    assert (played.state.run.ledger.done, played.state.run.ledger.not_run) == (12, 4)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([calls("count")] * 60, id="changing results"),
        pytest.param([calls("wait")] * 60, id="polling"),
        pytest.param(first(200, reads()), id="200 files in 200 rounds"),
        pytest.param(
            [several(*(wants("read", path=f"{m}{n}") for n in range(50))) for m in "abcd"],
            id="200 files in 4 rounds",
        ),
        pytest.param(
            [calls("write", path=f"{n}.txt") for n in range(200)],
            id="200 files written, each with the result ok",
        ),
        pytest.param(
            [calls("check", path=f"{n}.txt") for n in range(200)],
            id="200 files checked, each with the result ok",
        ),
        pytest.param(
            [s for n in range(20) for s in (*[calls("read", path="a")] * 4, calls("write", n=n))],
            id="a change between the same reads",
        ),
    ],
)
def test_work_that_goes_on_trips_no_guard(script: list[Says]) -> None:
    ticks = count()
    tools = {**TOOLS, "count": lambda call: str(next(ticks)), "check": "ok"}
    specs = (
        READ,
        WRITE,
        WAIT,
        *(ToolSpec(name=name, mutates=False) for name in ("count", "check")),
    )

    played = play("go", [*script, says("Done.")], tools, Settings(tools=specs))

    assert played.told[-1] == "stopped, answered: Done."
    assert not [event for event in played.events if isinstance(event, Nudged | Warned)]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([calls("read", path="a"), calls("read", path="b")], id="reads"),
        pytest.param([calls("write", path="a"), calls("write", path="b")], id="writes"),
        pytest.param([calls("read", path="a"), calls("files.read", path="a")], id="two names"),
        pytest.param([calls("write", n=n) for n in range(4)], id="four writes"),
    ],
)
def test_going_in_circles_is_stopped(steps: list[Says]) -> None:
    script = cycle(steps)
    tools = (replace(READ, name="files.read"), WRITE)
    patient = Settings(tools=tools, patience=Patience(stale_told=99, stale_stopped=99))

    played = play("go", first(30, script), {**TOOLS, "files.read": text_of}, patient)

    assert played.stopped.reason is StopReason.NO_PROGRESS
    assert played.state.run is not None
    assert played.state.run.ledger.done <= 4 * len(steps)


def test_a_tool_that_only_fails_leaves_the_definitions_and_the_run_goes_on() -> None:
    tools = {**TOOLS, "flaky": OSError("no route to host")}
    some = Settings(tools=(READ, ToolSpec(name="flaky")))
    script = [*(calls("flaky", n=n) for n in range(5)), calls("read", path="a"), says("Done.")]

    played = play("go", script, tools, some)

    assert played.told == snapshot(
        [
            "user: go",
            'model: flaky({"n": 0})',
            "c00000001: failed: no route to host",
            'model: flaky({"n": 1})',
            "c00000002: failed: no route to host",
            "nudged, all failed: TOOL ERROR: All tool calls in the last rounds failed. Read the errors above, th…",
            'model: flaky({"n": 2})',
            "c00000003: failed: no route to host",
            'model: flaky({"n": 3})',
            "c00000004: failed: no route to host",
            "nudged, all failed: TOOL ERROR: All tool calls in the last rounds failed. Read the errors above, th…",
            'model: flaky({"n": 4})',
            "c00000005: failed: no route to host",
            "tool dropped: flaky",
            'model: read({"path": "a"})',
            "c00000006: text of a",
            "model: Done.",
            "stopped, answered: Done.",
        ]
    )
    assert [tool.name for tool in played.requests[4].tools] == ["read", "flaky"]
    assert [tool.name for tool in played.requests[-1].tools] == ["read"]
    assert any("flaky has failed" in message.text for message in played.requests[-1].messages)


BROKEN = [several(WantedCall("write", f"{{'n': {n}")) for n in range(5)]
HALVES = [several(wants("write", n=n), finish=Finish.LENGTH) for n in range(5)]
BLOCKED = [several(wants("write"), wants("read", path=str(n))) for n in range(10)]


@pytest.mark.parametrize("script", [BROKEN, HALVES, BLOCKED])
def test_a_tool_that_was_not_run_is_not_said_to_have_failed(script: list[Says]) -> None:
    played = play("go", [*script, says("Done.")], TOOLS, settings())

    assert not [event for event in played.events if isinstance(event, ToolDropped)]


def test_two_rounds_in_which_everything_failed_give_the_model_a_hint() -> None:
    script = [calls("raed"), calls("redd"), calls("flaky"), calls("flaky", n=2), says("Sorry.")]
    tools: dict[str, Answer] = {"read": "text", "flaky": OSError("no route to host")}

    played = play("go", script, tools)

    assert [e.text for e in played.events if isinstance(e, Nudged)] == snapshot(
        [
            "TOOL ERROR: There is no tool named 'redd'. Did you mean: read? Use ONLY tools listed in your available tools.",
            "TOOL ERROR: All tool calls in the last rounds failed. Read the errors above, then change the tool, the arguments or the approach.",
        ]
    )


PATIENT = Patience(repeat_told=50, repeat_stopped=50, stale_told=2, stale_stopped=4)


def test_a_run_that_brings_nothing_new_warns_the_user_and_then_stops() -> None:
    script = [*(calls("read", path=path) for path in "aaaaa"), says("Nothing.")]

    played = play("go", script, TOOLS, replace(settings(), patience=PATIENT))

    assert played.told[5:] == snapshot(
        [
            'model: read({"path": "a"})',
            "c00000003: text of a",
            "warned, stale: The last 2 rounds brought nothing new. The run goes on until 4; you can cancel it or…",
            'model: read({"path": "a"})',
            "c00000004: text of a",
            'model: read({"path": "a"})',
            "c00000005: text of a",
            "ending: no progress: The last 4 rounds brought nothing new.",
            "asked: conclude",
            "model: Nothing.",
            "stopped, no progress: Nothing.",
        ]
    )


def test_the_user_is_warned_again_when_news_came_in_between() -> None:
    script = [*(calls("read", path=path) for path in "aaabbbbb"), says("Nothing.")]

    played = play("go", script, TOOLS, replace(settings(), patience=PATIENT))

    assert played.stopped.reason is StopReason.NO_PROGRESS
    assert len([event for event in played.events if isinstance(event, Warned)]) == 2


def test_a_repeat_can_be_answered_without_running_it() -> None:
    local = replace(settings(), patience=Patience(repeat_told=2, repeat_blocked=2))
    script = [calls("read", path="a"), calls("read", path="a"), says("It says: text of a.")]

    played = play("read a", script, TOOLS, local)

    assert played.state.run is not None
    assert (played.state.run.ledger.done, played.state.run.ledger.not_run) == (1, 1)
    refusal = list(played.requests[-1].messages)[-1].text
    assert refusal.startswith("Not run: you already called read with these exact arguments")
    assert "1 times" not in refusal
    assert played.stopped.reason is StopReason.ANSWERED


def test_an_answer_that_was_being_continued_is_not_lost_when_the_continuation_does_not_come() -> (
    None
):
    script = [says("The first half", Finish.LENGTH), says(""), says(""), says("")]

    played = play("tell me", script, {}, Settings(limits=Limits(reasks=2)))

    assert played.stopped.reason is StopReason.ANSWERED
    assert played.stopped.text == "The first half\n[... the reply reached the output limit]"
    said = [entry.message.text for entry in played.state.history.body]
    assert said.count("The first half") == 1
    assert "" not in said


def test_two_halves_of_a_call_written_as_text_are_no_answer() -> None:
    halves = [says('{"name": "put", ', Finish.LENGTH), says('"arguments": {"a": 1}}')]

    played = play("go", [*halves, says("Now in words.")], {}, Settings(limits=Limits(reasks=2)))

    assert "arguments" not in played.stopped.text


def test_words_that_a_run_at_its_limit_did_not_get_to_begin_a_run_of_their_own() -> None:
    played = play("read", [], TOOLS, settings(rounds=1))
    played.only(UserSpoke("And tell me the time.", played.tick()))
    played.script += [says("Half of it."), says("Noon.")]

    played.happens(ModelReplied(1, Reply(calls=(wants("read", path="1.txt"),)), played.tick()))

    assert "followed up" in played.told
    assert played.stopped.text == "Noon."
