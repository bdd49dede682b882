"""What a person decides, changes or takes back is a fact of the session like any other."""

from dataclasses import replace

from holdfast.core.effects import CallModel, Effect, Request
from holdfast.core.events import (
    USER,
    Charged,
    Decided,
    FilesRestored,
    ModelReplied,
    Outcome,
    Reply,
    ToolFinished,
    ToolsFound,
    ToolStarted,
    UserSpoke,
    Verdict,
    WantedCall,
)
from holdfast.core.instructions import LEFT_OPEN
from holdfast.core.limits import Limits, Settings, StopReason, Usage
from holdfast.core.machine import recover
from holdfast.core.messages import AssistantMessage, Note
from holdfast.core.tools import SideEffect, ToolSpec, resolve
from holdfast.testing.script import Played
from holdfast.testing.told import told

SEND = ToolSpec(name="send")
READ = ToolSpec(name="read_file", effect=SideEffect.READ, mutates=False, aliases=("cat",))
SETTINGS = Settings(tools=(SEND, READ))
CALL = "c00000001"


def request(effects: tuple[Effect, ...]) -> Request:
    """The one request among these."""
    (call,) = effects
    assert isinstance(call, CallModel)
    return call.request


def waiting(settings: Settings = SETTINGS) -> Played:
    """A run whose call waits for permission."""
    played = Played([], {})
    played.only(UserSpoke("go", played.tick(), settings))
    wanted = WantedCall("send", '{"to": "all", "text": "hi"}')
    played.only(ModelReplied(1, Reply(calls=(wanted,)), played.tick()))
    return played


def test_the_model_is_shown_the_arguments_that_a_person_put_in_place_of_its_own() -> None:
    played = waiting()
    decided = Decided(CALL, Verdict.ALLOWED, played.tick(), USER, arguments='{"to": "ana"}')
    played.only(decided)
    played.only(ToolStarted(CALL, played.tick()))
    asked = played.only(ToolFinished(CALL, Outcome.DONE, "sent", played.tick()))

    said = [m for m in request(asked).messages if isinstance(m, AssistantMessage)]

    assert [call.arguments for call in said[-1].calls] == ['{"to":"ana"}']


def test_a_decision_is_known_to_the_process_that_goes_on_after_a_crash() -> None:
    played = waiting()
    played.only(Decided(CALL, Verdict.ALLOWED, played.tick(), USER, grants="send(to=ana)"))
    run = played.state.run

    assert run is not None
    assert [each.verdict for each in run.open] == [Verdict.ALLOWED]
    assert played.state.granted == ("send(to=ana)",)


def test_the_time_a_person_takes_to_answer_is_not_the_runs() -> None:
    played = waiting(replace(SETTINGS, limits=Limits(seconds=60.0)))
    before = played.state.elapsed
    played.only(Decided(CALL, Verdict.ALLOWED, played.tick() + 86_400.0, USER))

    assert played.state.elapsed == before


def test_what_a_rule_decides_takes_no_time_off_the_clock() -> None:
    played = waiting()
    before, later = played.state.elapsed, played.tick() + 5.0
    now = played.state.now
    played.only(Decided(CALL, Verdict.ALLOWED, later, "mode auto"))

    assert now is not None
    assert played.state.elapsed == before + later - now


def test_what_a_tool_spends_on_models_counts_against_the_limits_of_the_run() -> None:
    played = waiting(replace(SETTINGS, limits=Limits(tokens=10_000)))
    played.only(ToolStarted(CALL, played.tick()))
    played.only(Charged(CALL, Usage(prompt=9_000, completion=2_000), played.tick()))
    played.only(ToolFinished(CALL, Outcome.DONE, "sent", played.tick()))
    run = played.state.run

    assert run is not None
    assert run.ending is not None
    assert run.ending.reason is StopReason.OUT_OF_TOKENS


def test_a_call_that_tells_its_spending_again_is_charged_once() -> None:
    played = waiting()
    played.only(ToolStarted(CALL, played.tick()))
    for spent in (100, 100, 250):
        played.only(Charged(CALL, Usage(prompt=spent), played.tick()))
    run = played.state.run

    assert run is not None
    before = waiting().state.run
    assert before is not None
    assert run.spent.prompt - before.spent.prompt == 250


def test_words_after_a_crash_are_heard_before_an_open_call_runs() -> None:
    done = recover(waiting().state, 99.0, heard="Never mind.")

    assert told(done.events) == [
        "reopened",
        f"{CALL}: {LEFT_OPEN}"[:99] + "…",
        "user: Never mind.",
        "steered",
    ]
    assert [type(effect) for effect in done.effects] == [CallModel]


def test_the_model_is_told_when_its_changes_were_taken_back() -> None:
    played = waiting()
    played.only(ToolStarted(CALL, played.tick()))
    played.only(FilesRestored(("a.txt", "b.txt"), played.tick()))
    asked = played.only(ToolFinished(CALL, Outcome.DONE, "sent", played.tick()))

    notes = [m.text for m in request(asked).messages if isinstance(m, Note)]

    assert notes == ["[The user took back the changes to a.txt, b.txt]"]


def test_a_shelved_tool_is_left_out_of_the_definitions_until_it_is_looked_for() -> None:
    played = Played([], {})
    settings = replace(SETTINGS, shelved=("read_file",))
    first = request(played.only(UserSpoke("go", played.tick(), settings)))
    played.only(ModelReplied(1, Reply(calls=(WantedCall("send"),)), played.tick()))
    played.only(ToolStarted(CALL, played.tick()))
    played.only(ToolsFound(("read_file",), played.tick()))
    second = request(played.only(ToolFinished(CALL, Outcome.DONE, "sent", played.tick())))

    assert [tool.name for tool in first.tools] == ["send"]
    assert [tool.name for tool in second.tools] == ["send", "read_file"]


def test_a_tool_is_found_by_an_alias_and_through_a_slip_of_the_pen() -> None:
    tools = (READ, SEND)

    assert resolve("cat", tools) is READ
    assert resolve("ReadFile", tools) is READ
    assert resolve("read_fille", tools) is READ


def test_a_slip_of_the_pen_never_runs_a_tool_that_changes_something() -> None:
    assert resolve("sned", (SEND,)) is None
    assert resolve("Send", (SEND,)) is None


def test_a_name_that_could_be_two_tools_is_neither() -> None:
    one, other = (replace(READ, name=f"read_notes_{each}", aliases=()) for each in "ab")

    assert resolve("read_notes_c", (one, other)) is None
    assert resolve("read_notes_c", (one,)) is one
