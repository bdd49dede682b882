"""Generated sessions: whole conversations in which Hypothesis decides what goes wrong.

A session is driven like the real thing, one event at a time, and leaves a trace on which each law
can be stated in a few lines. It shares nothing with the oracle of the simulation, on purpose.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from holdfast.core.effects import CallModel, Effect, Request, RunTools, StopWork
from holdfast.core.events import (
    CancelAsked,
    Event,
    Failure,
    Finish,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Outcome,
    Pinned,
    Purpose,
    Reply,
    RunStopped,
    TimeRanOut,
    ToolFinished,
    ToolsChanged,
    ToolStarted,
    UserSpoke,
    WantedCall,
)
from holdfast.core.history import OpenCall
from holdfast.core.limits import Limits, OnLimit, Settings, Usage
from holdfast.core.machine import Step, recover, replay, step
from holdfast.core.state import NEW, Run, State
from holdfast.core.tools import Keep, SideEffect, ToolSpec
from holdfast.testing.told import told

TOOLS = (
    ToolSpec(name="files.read", effect=SideEffect.READ, mutates=False),
    ToolSpec(name="mail.send", description="Send a mail.", keep=Keep.ENDS),
    ToolSpec(name="cite", mutates=False, keep_last=2, cap=200),
    ToolSpec(name="find_tools", effect=SideEffect.READ, mutates=False),
)
NAMES = (*(tool.name for tool in TOOLS), "read", "no.such.tool", "")

any_text = st.text(st.characters() | st.sampled_from("\ud83d\udc00\0\n{}[]\"'🙂中"), max_size=30)
long_text = st.builds(lambda text, times: text * times, any_text, st.sampled_from((1, 1, 7, 400)))
good_arguments = st.builds(lambda path: f'{{"path": "{path}.txt"}}', st.integers(0, 30))
bad_arguments = (
    any_text
    | st.just('{"index": 7')
    | long_text.map(lambda text: '{"a": "' + text.replace("\\", "").replace('"', "") + '"}')
)
good_call = st.builds(WantedCall, st.sampled_from([t.name for t in TOOLS]), good_arguments)
bad_call = st.builds(WantedCall, st.sampled_from(NAMES), bad_arguments, st.sampled_from(("", "x")))
any_call = good_call | good_call | good_call | bad_call
any_reply = st.builds(
    Reply,
    text=st.just("") | long_text,
    calls=st.lists(any_call, max_size=4).map(tuple),
    finish=st.sampled_from((Finish.STOP,) * 8 + (Finish.LENGTH, Finish.REFUSED)),
    problem=st.sampled_from(("",) * 8 + ("That was no JSON.",)),
)
any_usage = st.none() | st.builds(Usage, prompt=st.integers(-5, 60_000), cost=st.integers(0, 500))
any_settings = st.builds(
    lambda window, rounds, calls, on_limit, reasks: Settings(
        system="You are an agent.",
        tools=Settings.for_window(window, tools=TOOLS).tools,
        budget=Settings.for_window(window).budget,
        caps=Settings.for_window(window).caps,
        limits=Limits(rounds=rounds, calls=calls, reasks=reasks, cost=2_000, calls_per_reply=3),
        on_limit=on_limit,
    ),
    window=st.sampled_from((2_048, 4_096, 16_384)),
    rounds=st.integers(1, 8),
    calls=st.integers(1, 12),
    on_limit=st.sampled_from(OnLimit),
    reasks=st.integers(0, 2),
)
moves = st.sampled_from(
    ("arrive",) * 12
    + ("shuffle", "die", "die") * 2
    + ("cancel", "steer", "die in mid-write", "alarm", "pin", "tools")
)


@dataclass
class Asked:
    purpose: Purpose
    request: Request
    run: Run
    log: tuple[Event, ...]
    """Everything that had happened."""
    process: int
    """Which process asked: the first, or one after a crash."""


@dataclass(repr=False)
class Trace:
    steps: list[tuple[State, Step]] = field(default_factory=list)
    """Of the process that is alive."""
    log: list[Event] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    process: int = 1
    ran: Counter[str] = field(default_factory=Counter)
    """How often the world ran each call."""
    unsafe: set[str] = field(default_factory=set)
    """Calls of tools that must not run twice."""
    state: State = NEW

    def __repr__(self) -> str:
        return "\n  ".join(("a session:", *told(self.log[-80:])))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@st.composite
def sessions(draw: Any, runs: int = 2) -> Trace:
    """One to two runs, to their ends."""
    trace, clock = Trace(), iter(range(1, 100_000))
    pending: list[FromTheWorld] = []

    def perform(event: Event | None, effects: tuple[Effect, ...]) -> None:
        state, run = trace.state, trace.state.run
        if isinstance(event, ToolStarted) and run and event.call_id in unanswered(state):
            trace.ran[event.call_id] += 1
            trace.unsafe |= {each.call.id for each in run.open if is_unsafe(each)}
            outcome = draw(st.sampled_from((Outcome.DONE, Outcome.DONE, Outcome.FAILED)))
            pending.append(ToolFinished(event.call_id, outcome, draw(long_text), next(clock)))
        for effect in effects:
            if isinstance(effect, CallModel):
                assert run is not None
                log = tuple(trace.log)
                trace.asked.append(Asked(effect.purpose, effect.request, run, log, trace.process))
                pending.append(answer(effect))
            elif isinstance(effect, RunTools):
                pending.extend(ToolStarted(call.id, next(clock)) for call in effect.calls)
            elif isinstance(effect, StopWork) and draw(st.booleans()):
                pending.clear()

    def answer(effect: CallModel) -> FromTheWorld:
        if draw(st.integers(0, 9)) == 0:
            kind = draw(st.sampled_from((Failure.OVERFLOW, Failure.OVERFLOW, Failure.GONE)))
            told = draw(st.none() | st.integers(1_000, 20_000))
            return ModelFailed(effect.ask, kind, draw(any_text), next(clock), told)
        return ModelReplied(effect.ask, draw(any_reply), next(clock), draw(any_usage))

    def advance(done: Step, before: State) -> None:
        trace.state = done.state
        trace.steps.append((before, done))
        trace.log.extend(done.events)

    def dies(lost: int) -> None:
        del trace.log[len(trace.log) - lost :]
        trace.steps.clear()
        pending.clear()
        trace.process += 1
        trace.state = replay(trace.log)
        done = recover(trace.state, float(next(clock)))
        advance(done, trace.state)
        perform(None, done.effects)

    def happens(event: FromTheWorld) -> None:
        before = trace.state
        done = step(before, event)
        advance(done, before)
        perform(event, done.effects)

    for number in range(draw(st.integers(1, runs))):
        happens(UserSpoke(f"task {number}: {draw(any_text)}", next(clock), draw(any_settings)))
        for _ in range(400):
            run = trace.state.run
            if run is None or run.stopped:
                break
            match draw(moves) if pending else "alarm":
                case "arrive":
                    happens(pending.pop(0))
                case "shuffle":
                    happens(pending.pop(draw(st.integers(0, len(pending) - 1))))
                case "cancel":
                    happens(CancelAsked(next(clock)))
                case "steer":
                    happens(UserSpoke(f"steer: {draw(any_text)}", next(clock)))
                case "alarm":
                    happens(TimeRanOut(run.number, next(clock)))
                case "pin":
                    happens(Pinned("plan", draw(any_text), next(clock)))
                case "tools":
                    happens(ToolsChanged(TOOLS[: draw(st.integers(0, 4))], next(clock)))
                case "die":
                    dies(lost=0)
                case "die in mid-write" if trace.steps:
                    written = trace.steps[-1][1].events
                    if len(trace.log) > len(written) and not any(map(acted_on, written)):
                        dies(lost=draw(st.integers(0, len(written))))
    return trace


def acted_on(event: Event) -> bool:
    """The world has done something because of it, so it must have been on disk."""
    return isinstance(event, ToolStarted)


def is_unsafe(each: OpenCall) -> bool:
    return each.tool is None or each.tool.effect is SideEffect.UNSAFE


def unanswered(state: State) -> set[str]:
    return {each.call.id for each in state.run.unanswered} if state.run else set()


def stops(log: list[Event]) -> list[RunStopped]:
    return [event for event in log if isinstance(event, RunStopped)]
