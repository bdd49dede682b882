"""A run that is interrupted, by the user or by the death of its process, holds.

Whatever was open gets a true result, the history stays valid, and the session goes on.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from inline_snapshot import snapshot

from holdfast.core.effects import CallModel, Request, RunTools, StopWork
from holdfast.core.events import (
    CancelAsked,
    Event,
    Failure,
    FromTheWorld,
    ModelReplied,
    Outcome,
    Reopened,
    Reply,
    TimeRanOut,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    WantedCall,
)
from holdfast.core.instructions import CRASHED
from holdfast.core.limits import Limits, Settings, StopReason
from holdfast.core.machine import Step, recover, replay
from holdfast.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.testing.script import Fails, Played, calls, says, several, wants

READ = ToolSpec(name="read", effect=SideEffect.READ, mutates=False)
PUT = ToolSpec(name="put", effect=SideEffect.IDEMPOTENT)
SEND = ToolSpec(name="send", effect=SideEffect.UNSAFE)
SETTINGS = Settings(tools=(READ, PUT, SEND))
TOOLS = {"read": "text", "put": "stored", "send": "sent"}


def at_work(*wanted: WantedCall, settings: Settings = SETTINGS) -> Played:
    """A run whose model made these calls; none of them has begun."""
    played = Played([], TOOLS)
    played.only(UserSpoke("go", played.tick(), settings))
    played.only(ModelReplied(1, Reply(calls=wanted), played.tick()))
    return played


def begins(played: Played, number: int) -> None:
    played.only(ToolStarted(f"c{number:08d}", played.tick()))


def ends(played: Played, number: int, text: str = "sent") -> None:
    played.only(ToolFinished(f"c{number:08d}", Outcome.DONE, text, played.tick()))


def results(request: Request) -> dict[str, str]:
    """What the model is shown for each call; fails where a call and its result do not pair."""
    shown: dict[str, str] = {}
    owed: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolMessage):
            assert message.call_id == owed.pop(0)
            shown[message.call_id] = message.text
        else:
            assert not owed
            owed = [call.id for call in getattr(message, "calls", ())]
    assert not owed
    return shown


# cancel


def new() -> Played:
    return Played([], TOOLS)


def asked() -> Played:
    played = new()
    played.only(UserSpoke("go", played.tick(), SETTINGS))
    return played


def between_results() -> Played:
    played = at_work(wants("read"), wants("send"), wants("put"))
    begins(played, 1)
    ends(played, 1, "text")
    return played


def concluding() -> Played:
    played = at_work(wants("read"), settings=Settings(tools=(READ,), limits=Limits(rounds=1)))
    ends(played, 1, "text")
    return played


def answered() -> Played:
    played = asked()
    played.only(ModelReplied(1, Reply(text="Done."), played.tick()))
    return played


@pytest.mark.parametrize(
    ("moment", "stops", "told"),
    [
        (new, (), ["cancel"]),
        (asked, (StopWork(),), ["user: go", "cancel", "stopped"]),
        (between_results, (StopWork(),), ["cancel", "c00000002", "c00000003", "stopped"]),
        (concluding, (StopWork(),), ["ending", "asked", "cancel", "stopped"]),
        (answered, (), ["user: go", "model: Done.", "stopped, answered: Done.", "cancel"]),
    ],
)
def test_a_cancel_takes_effect_at_once_and_the_next_message_works(
    moment: Callable[[], Played], stops: tuple[StopWork, ...], told: list[str]
) -> None:
    played = moment()

    assert played.only(CancelAsked(played.tick())) == stops

    for line, beginning in zip(played.told[-len(told) :], told, strict=True):
        assert line.startswith(beginning)
    played.script = [calls("read"), says("Here I am.")]
    played.user("Are you there?", SETTINGS)
    results(played.requests[-1])
    assert UserMessage("Are you there?") in list(played.requests[-1].messages)
    assert played.stopped.text == "Here I am."


def test_a_cancelled_run_says_what_was_done_and_what_was_not() -> None:
    played = between_results().cancel()

    assert played.stopped.reason is StopReason.CANCELLED
    assert played.stopped.text.splitlines() == snapshot(
        [
            "The run stopped (cancelled) without an answer from the model.",
            "What was really done: 1 of 3 tool calls succeeded, 0 failed, 2 were not run.",
            "Processed:",
            "- read()",
            "Not processed:",
            "- send(): operation cancelled by user",
            "- put(): operation cancelled by user",
            "No other tool was called in this run.",
        ]
    )
    played.user("What happened?")
    assert results(played.requests[-1]) == snapshot(
        {
            "c00000001": "text",
            "c00000002": "operation cancelled by user",
            "c00000003": "operation cancelled by user",
        }
    )


@pytest.mark.parametrize("interrupted", [CancelAsked(9.0), TimeRanOut(1, 9.0)])
def test_only_a_call_that_had_begun_may_have_taken_effect(interrupted: FromTheWorld) -> None:
    """The harness knows which is which, so neither the model nor the user is left to guess."""
    played = at_work(wants("send", to="ana"), wants("send", to="bo"))
    begins(played, 1)

    played.only(interrupted)
    played.only(ModelReplied(2, Reply(), played.tick()))

    _, not_processed = played.stopped.text.split("Not processed:")
    assert "to=bo" in not_processed
    assert "to=ana" not in not_processed
    begun, never = results(played.user("What happened?").requests[-1]).values()
    assert "may or may not have taken effect" in begun
    assert "may or may not have taken effect" not in never


def test_a_result_after_the_cancel_changes_the_ledger_but_not_the_history() -> None:
    played = at_work(wants("send", to="ana"))
    begins(played, 1)
    played.cancel()

    ends(played, 1)
    ends(played, 1, "sent again?")

    assert played.state.run is not None
    (record,) = played.state.run.ledger.records
    assert (record.outcome, record.detail, record.late) == (Outcome.DONE, "sent", True)
    assert played.state.run.ledger.done == 1
    played.user("What happened?")
    assert "sent" not in results(played.requests[-1])["c00000001"]


def test_a_reply_that_comes_after_the_cancel_is_not_used() -> None:
    played = asked().cancel()

    assert played.only(ModelReplied(1, Reply(calls=(wants("send"),)), played.tick())) == ()

    played.user("What happened?")
    assert results(played.requests[-1]) == {}


def test_what_the_user_said_before_the_cancel_was_heard() -> None:
    played = between_results()
    played.only(UserSpoke("Only the red ones.", played.tick()))
    played.cancel()

    played.user("Go on.")

    said = [m.text for m in played.requests[-1].messages if isinstance(m, UserMessage)]
    assert said == ["go", "Only the red ones.", "Go on."]


def test_what_the_user_says_while_a_run_concludes_begins_a_run_of_its_own() -> None:
    played = concluding()
    played.only(UserSpoke("And the blue ones?", played.tick()))
    played.script = [says("Blue ones, too.")]

    played.happens(ModelReplied(2, Reply(text="I read one."), played.tick()))

    assert played.told[-6:] == snapshot(
        [
            "user: And the blue ones?",
            "model: I read one.",
            "stopped, out of rounds: I read one.",
            "followed up",
            "model: Blue ones, too.",
            "stopped, answered: Blue ones, too.",
        ]
    )
    assert played.state.runs == 2


# recover

REPLIES = [
    several(wants("read"), wants("send", to="ana"), text="First Ana."),
    says(""),
    several(wants("raed"), wants("send", to="bo"), WantedCall("send", "{'to': ")),
    says("<tool_call>send</tool_call>"),
    several(wants("put", key="list"), wants("read", path="list")),
    calls("send", to="cy"),
    says("Everybody knows."),
]
EVENTS = 36


def lives(log: list[Event], script_from: int) -> tuple[Played, Counter[str]]:
    """A process that takes over this log, and how often it ran each call."""
    ran: Counter[str] = Counter()

    def runs(call: ToolCall) -> str:
        ran[call.id] += 1
        return TOOLS[call.name]

    script = REPLIES[script_from:]
    return Played(list(script), dict.fromkeys(TOOLS, runs), events=list(log), now=100.0), ran


def whole_log() -> list[Event]:
    played, _ = lives([], 0)
    return played.user("Tell them.", SETTINGS).events


@pytest.mark.parametrize("kept", range(1, EVENTS + 1))
def test_a_process_that_dies_after_any_event_loses_nothing_and_repeats_nothing_unsafe(
    kept: int,
) -> None:
    every = whole_log()
    assert len(every) == EVENTS
    log = every[:kept]
    begun = {event.call_id for event in log if isinstance(event, ToolStarted)}
    open_ = begun - {event.call_id for event in log if isinstance(event, ToolFinished)}
    played, ran = lives(log, sum(isinstance(event, ModelReplied) for event in log))

    played.killed()

    assert played.events[:kept] == log
    assert played.stopped.text == "Everybody knows."
    assert replay(played.events) == played.state
    assert max(ran.values(), default=1) == 1
    tools = {call.id: call.name for call in every_call(played)}
    assert {call_id for call_id in ran if call_id in begun} == {
        call_id for call_id in open_ if tools[call_id] != "send"
    }
    shown = results(played.user("What happened?").requests[-1])
    assert {call_id for call_id, text in shown.items() if text == CRASHED} == {
        call_id for call_id in open_ if tools[call_id] == "send"
    }


def every_call(played: Played) -> list[ToolCall]:
    return [
        call
        for entry in played.state.history.body
        if isinstance(entry.message, AssistantMessage)
        for call in entry.message.calls
    ]


@pytest.mark.parametrize("tool", [READ, PUT])
def test_a_call_that_is_safe_to_repeat_is_run_again_after_a_crash(tool: ToolSpec) -> None:
    played = at_work(wants(tool.name), wants("send"))
    begins(played, 1)

    done = recover(replay(played.events))

    assert done.events == (Reopened(3.0),)
    (effect,) = done.effects
    assert isinstance(effect, RunTools)
    assert [call.name for call in effect.calls] == [tool.name, "send"]


def test_of_an_unsafe_call_that_had_begun_the_model_is_told_that_nobody_knows() -> None:
    played = at_work(wants("send", to="ana"), wants("send", to="bo"))
    begins(played, 1)
    played.script = [says("I will check with Ana.")]

    played.killed()

    assert played.told == snapshot(
        [
            "user: go",
            'model: send({"to": "ana"}), send({"to": "bo"})',
            "reopened",
            "c00000001: unknown: The process stopped while this tool was running. It may or may not have taken e…",
            "c00000002: sent",
            "model: I will check with Ana.",
            "stopped, answered: I will check with Ana.",
        ]
    )


def test_a_report_does_not_call_an_unknown_outcome_a_failure() -> None:
    played = at_work(wants("send", to="ana"))
    begins(played, 1)
    played.script = [Fails(Failure.GONE, "connection reset")]

    played.killed()

    assert "Outcome unknown, check before you repeat it:\n- send(to=ana)" in played.stopped.text
    assert "1 failed" not in played.stopped.text


def test_a_request_that_was_on_its_way_is_made_again_as_it_was() -> None:
    played = asked()

    done = recover(replay(played.events))

    (effect,) = done.effects
    assert isinstance(effect, CallModel)
    assert (effect.ask, list(effect.request.messages)) == (2, [UserMessage("go")])


def test_a_conclusion_that_a_crash_interrupted_is_still_one() -> None:
    played = concluding()
    played.script = [says("I read one.")]

    played.killed()

    assert played.requests[-1].tools == ()
    assert played.stopped.reason is StopReason.OUT_OF_ROUNDS


def test_a_cancel_that_was_written_down_holds_after_a_crash() -> None:
    played = between_results()
    log = [*played.events, CancelAsked(played.tick())]
    played = Played([says("never asked")], TOOLS, events=log)

    played.killed()

    assert played.requests == []
    assert played.stopped.reason is StopReason.CANCELLED


def test_a_late_result_of_a_process_that_died_puts_the_ledger_right() -> None:
    played = at_work(wants("send", to="ana"))
    begins(played, 1)
    played.killed()

    ends(played, 1)

    assert played.state.run is not None
    assert [record.outcome for record in played.state.run.ledger.records] == [Outcome.DONE]


@pytest.mark.parametrize("moment", [new, answered])
def test_a_session_in_which_nothing_is_open_owes_nothing(moment: Callable[[], Played]) -> None:
    state = moment().state

    assert recover(state) == Step(state, (), ())
