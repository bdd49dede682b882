"""The ten laws, each as a property over generated sessions. A failing law is always a bug."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.answers import not_an_answer
from holdfast.core.claims import UNVERIFIED
from holdfast.core.effects import CallModel, StopWork
from holdfast.core.events import (
    CancelAsked,
    EndDecided,
    Event,
    Evicted,
    Failure,
    FollowedUp,
    ModelFailed,
    Outcome,
    Purpose,
    RunStopped,
    Steered,
    TaskCut,
    ToolDropped,
    ToolFinished,
    ToolsChanged,
    UserSpoke,
)
from holdfast.core.history import call_id
from holdfast.core.instructions import CONCLUDE
from holdfast.core.limits import (
    Budget,
    Caps,
    Contradiction,
    Limits,
    Settings,
    StopReason,
    result_tokens,
)
from holdfast.core.machine import recover, replay, step
from holdfast.core.messages import Message, Note, ToolMessage, UserMessage, clean
from holdfast.core.tokens import CLASSES
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import calls, play, says
from holdfast.testing.world import World
from tests.core.sessions import Trace, sessions, stops


@given(sessions())
def test_law_1_every_call_gets_exactly_one_result_in_order(trace: Trace) -> None:
    for asked in trace.asked:
        owed: list[str] = []
        for message in asked.request.messages:
            if isinstance(message, ToolMessage):
                assert message.call_id == owed.pop(0)
            else:
                assert owed == []
                owed = [call.id for call in getattr(message, "calls", ())]
        assert owed == []
    answered = {event.call_id for event in trace.log if isinstance(event, ToolFinished)}
    assert answered == {call_id(number) for number in range(1, trace.state.calls + 1)}


@given(sessions())
def test_law_2_every_request_holds_the_system_prompt_and_the_users_words(trace: Trace) -> None:
    for asked in trace.asked:
        assert asked.request.system == asked.run.settings.system
        shown = [m.text for m in asked.request.messages if isinstance(m, UserMessage)]
        for words in task_and_latest_word(asked.log):
            cut = f"of {len(words)} chars"
            assert words in shown or any(cut in text for text in shown)


def task_and_latest_word(log: tuple[Event, ...]) -> set[str]:
    task = latest = ""
    waiting: list[str] = []
    running = False
    for event in log:
        match event:
            case UserSpoke(text) if not running:
                task = latest = clean(text)
                running = True
            case UserSpoke(text):
                waiting.append(clean(text))
            case Steered():
                latest = "\n\n".join(waiting)
                waiting = []
            case RunStopped(reason):
                running = False
                waiting = [] if reason is StopReason.CANCELLED else waiting
            case FollowedUp():
                task = latest = "\n\n".join(waiting)
                running, waiting = True, []
    return {task, latest}


@given(sessions())
def test_law_3_every_request_fits_and_a_refused_one_is_never_sent_again(trace: Trace) -> None:
    refused: list[tuple[int, list[Message]]] = []
    for asked in trace.asked:
        budget = asked.run.settings.budget
        assert asked.run.waiting is not None
        assert asked.run.waiting.expected + budget.output <= budget.window
        messages = [Note(asked.request.system), *asked.request.messages]
        if asked.request.tools:
            messages.append(Note(str(asked.request.tools)))
        assert (asked.process, messages) not in refused
        number = asked.run.waiting.ask
        if any(is_overflow(event, number) for event in trace.log):
            refused.append((asked.process, messages))


def is_overflow(event: Event, ask: int) -> bool:
    match event:
        case ModelFailed(number, Failure.OVERFLOW):
            return number == ask
    return False


@given(sessions())
def test_law_4_every_item_has_a_cap_and_a_cut_one_says_so(trace: Trace) -> None:
    for asked in trace.asked:
        results: dict[str, str] = {}
        for event in asked.log:
            if isinstance(event, ToolFinished):
                results.setdefault(event.call_id, clean(event.text))
        for message in asked.request.messages:
            if isinstance(message, ToolMessage):
                whole = results[message.call_id]
                says_length = f"{len(whole)}" in message.text or f"{len(whole):,}" in message.text
                assert len(message.text) <= 6_000 + 640
                assert len(message.text) >= len(whole) or says_length


@given(sessions())
def test_law_5_every_run_ends_once_within_its_limits_and_with_a_text(trace: Trace) -> None:
    for asked in trace.asked:
        limits = asked.run.settings.limits
        assert asked.run.spent.rounds <= limits.rounds
        if any(isinstance(event, EndDecided) for event in since_the_user_spoke(asked.log)):
            assert asked.purpose is Purpose.CONCLUDE
            assert asked.request.tools == ()
            assert list(asked.request.messages)[-1] == Note(CONCLUDE)
    running = 0
    for event in trace.log:
        if isinstance(event, UserSpoke | FollowedUp) and not running:
            running = 1
        if isinstance(event, RunStopped):
            running -= 1
            assert running == 0
            assert event.text.strip()
            assert not_an_answer(event.text) == ""
    assert running == 0
    assert trace.state.run is not None
    most = max(asked.run.settings.limits.calls for asked in trace.asked)
    assert all(len(tools_run(trace, number)) <= most for number in range(len(stops(trace.log))))


def since_the_user_spoke(log: tuple[Event, ...]) -> list[Event]:
    """The events of the current run."""
    events: list[Event] = []
    for event in log:
        events = [] if isinstance(event, RunStopped) else [*events, event]
    return events


def tools_run(trace: Trace, number: int) -> set[str]:
    """Calls that were really run in the run of this number."""
    runs: list[set[str]] = [set()]
    for event in trace.log:
        if isinstance(event, ToolFinished) and event.outcome in (Outcome.DONE, Outcome.FAILED):
            runs[-1].add(event.call_id)
        if isinstance(event, RunStopped):
            runs.append(set())
    return runs[number]


@settings(max_examples=300)
@given(sessions())
def test_law_6_the_log_makes_the_state_and_nothing_unsafe_happens_twice(trace: Trace) -> None:
    assert replay(trace.log) == trace.state
    for before, done in trace.steps:
        assert replay(done.events, before) == done.state
    assert {call_id for call_id in trace.unsafe if trace.ran[call_id] > 1} == set()


@given(sessions(), st.data())
def test_law_6_a_crash_after_any_event_can_be_recovered_from(
    trace: Trace, data: st.DataObject
) -> None:
    state = replay(trace.log[: data.draw(st.integers(0, len(trace.log)))])

    done = recover(state)

    assert replay(done.events, state) == done.state
    run = done.state.run
    finished = run is None or run.stopped
    assert len(done.effects) == (0 if finished else 1)  # who is not finished is owed one thing


@given(sessions())
def test_law_7_between_evictions_each_request_begins_with_the_one_before(trace: Trace) -> None:
    work = [asked for asked in trace.asked if asked.purpose is Purpose.WORK]
    for one, two in zip(work, work[1:], strict=False):
        if one.process != two.process or any(map(rewrites, two.log[len(one.log) :])):
            continue
        before, after = list(one.request.messages), list(two.request.messages)
        assert after[: len(before)] == before
        same_run = one.run.number == two.run.number
        assert (
            not same_run
            or one.request.tools == two.request.tools
            or two.run.shelved != one.run.shelved
        )


def rewrites(event: Event) -> bool:
    return isinstance(event, Evicted | TaskCut | ToolDropped | ToolsChanged)


@given(
    st.lists(st.sampled_from(("receipt.txt", "photo.png", "notes.md")), max_size=4, unique=True),
    st.lists(st.sampled_from(("invented.pdf", "ghost.csv", "/tmp/made-up.txt")), min_size=1),
    st.sampled_from(("Renamed {} to done.", "- {}: total 8,412.77 processed", "I read {} twice.")),
)
def test_law_8_a_forced_answer_claims_only_what_the_ledger_holds(
    read: list[str], lies: list[str], claim: str
) -> None:
    lines = [claim.format(lie) for lie in lies] + [f"I read {name}." for name in read]
    script = [*(calls("read_file", path=name) for name in read), says(""), says("\n".join(lines))]
    settings = Settings(tools=(ToolSpec(name="read_file", mutates=False),), limits=Limits(reasks=0))

    played = play("Sort my files", script, {"read_file": "some text"}, settings)

    for line in played.stopped.text.splitlines():
        told_the_truth = any(name in line for name in read)
        assert line.endswith(UNVERIFIED) != told_the_truth


@given(sessions(), st.data())
def test_law_9_a_cancel_at_any_moment_takes_effect_at_once_and_the_session_goes_on(
    trace: Trace, data: st.DataObject
) -> None:
    state = recover(replay(trace.log[: data.draw(st.integers(1, len(trace.log)))])).state
    assert state.run is not None
    was_running = not state.run.stopped

    now = state.now or 0.0
    done = step(state, CancelAsked(now + 1))

    assert done.state.run is not None
    assert done.state.run.stopped is not None
    assert done.effects == ((StopWork(),) if was_running else ())
    after = step(done.state, UserSpoke("And now?", now + 2))
    assert after.state.run is not None
    assert after.state.run.number == state.run.number + 1
    assert after.state.run.stopped or isinstance(after.effects[0], CallModel)


@given(
    window=st.integers(1, 50_000),
    output=st.integers(0, 10_000),
    safety=st.integers(0, 5_000),
    gate=st.integers(0, 5_000),
    below=st.integers(0, 20_000),
    to=st.integers(0, 20_000),
    cap=st.integers(0, 30_000),
)
def test_law_10_numbers_either_make_sense_or_are_refused_with_a_sentence(
    window: int, output: int, safety: int, gate: int, below: int, to: int, cap: int
) -> None:
    def build() -> Settings:
        budget = Budget(
            window=window,
            output=output,
            safety=safety,
            min_round=gate,
            evict_below=below,
            evict_to=to,
        )
        return Settings(budget=budget, caps=Caps(result=cap))

    makes_sense = (
        min(output, gate) >= 1
        and output + safety + gate < window
        and to > below > gate + result_tokens(cap, CLASSES)
        and to < window - output - safety
        and cap >= 80
    )
    if makes_sense:
        build()
    else:
        with pytest.raises(Contradiction, match=r"\d.*\.$"):
            build()


def test_law_10_the_trap_of_eviction_below_the_gate_is_refused() -> None:
    with pytest.raises(Contradiction, match="gate ends the run before eviction makes room"):
        Settings(budget=Budget(evict_below=1_000, min_round=1_500))


@given(st.integers(0, 2**64))
def test_no_law_is_broken_in_the_simulated_world(seed: int) -> None:
    World(Random(seed)).play()
