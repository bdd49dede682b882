"""Numbers that contradict each other are refused at once, in a sentence that names them."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.effects import Request
from holdfast.core.events import EndDecided, Evicted, Failure, ModelAsked, TaskCut
from holdfast.core.limits import (
    Budget,
    Caps,
    Contradiction,
    Limits,
    Patience,
    Settings,
    Spent,
    StopReason,
    Usage,
    result_tokens,
)
from holdfast.core.messages import ToolCall, UserMessage
from holdfast.core.tokens import (
    CLASSES,
    LOCALCOWORK,
    Gauge,
    size_of,
    size_of_system,
    size_of_tools,
)
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import Fails, Played, Says, calls, play, says

RESULT = result_tokens(6_000, LOCALCOWORK)
"""About 2,143 by ADR-007, and what a message costs by itself."""

CONTRADICTIONS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "no rounds": (lambda: Limits(rounds=0), ("limits.rounds", "0")),
    "no calls": (lambda: Limits(calls=-1), ("limits.calls", "-1")),
    "no tokens": (lambda: Limits(tokens=0), ("limits.tokens", "0")),
    "no money": (lambda: Limits(cost=-3), ("limits.cost", "-3")),
    "no time": (lambda: Limits(seconds=-0.5), ("limits.seconds", "-0.5")),
    "time that is no number": (lambda: Limits(seconds=float("nan")), ("limits.seconds", "nan")),
    "no call of a reply": (lambda: Limits(calls_per_reply=0), ("limits.calls_per_reply", "0")),
    "reasks below zero": (lambda: Limits(reasks=-1), ("limits.reasks", "-1")),
    "overflows below zero": (lambda: Limits(overflows=-2), ("limits.overflows", "-2")),
    "told after stopped": (
        lambda: Patience(repeat_told=6, repeat_stopped=5),
        ("repeat_told (6)", "repeat_stopped (5)"),
    ),
    "told never": (lambda: Patience(repeat_told=0), ("repeat_told (0)",)),
    "a first call stopped": (
        lambda: Patience(repeat_told=1, repeat_stopped=1),
        ("repeat_stopped", "1", "at least 2"),
    ),
    "a first call blocked": (
        lambda: Patience(repeat_blocked=1),
        ("repeat_blocked", "1", "at least 2"),
    ),
    "stale told after stopped": (
        lambda: Patience(stale_told=13, stale_stopped=12),
        ("stale_told (13)", "stale_stopped (12)"),
    ),
    "a tool that may not fail": (lambda: Patience(tool_failures=0), ("tool_failures", "0")),
    "a round that may not fail": (lambda: Patience(failed_rounds=-4), ("failed_rounds", "-4")),
    "a cap without room": (lambda: Caps(result=79), ("caps.result", "79", "80")),
    "a line longer than the digest": (
        lambda: Caps(line=500, digest=400),
        ("caps.digest (400)", "caps.line (500)"),
    ),
    "reservations above the window": (
        lambda: Budget(window=4_000, evict_below=100, evict_to=100),
        ("output (2000)", "safety (768)", "min_round (1500)", "4268", "window of 4000"),
    ),
    "no output": (lambda: Budget(output=0), ("budget.output", "0")),
    "negative safety": (lambda: Budget(safety=-7), ("safety", "-7")),
    "no newest round": (lambda: Budget(keep_rounds=0), ("keep_rounds", "0")),
    "negative failures": (lambda: Budget(keep_failures=-9), ("keep_failures", "-9")),
    "low mark under the high mark": (
        lambda: Budget(evict_below=5_000, evict_to=4_999),
        ("evict_to (4999)", "evict_below (5000)"),
    ),
    "low mark out of reach": (
        lambda: Budget(window=14_000, evict_to=12_000),
        ("evict_to (12000)", "window of 14000", "2000", "768"),
    ),
    "two tools of a name": (
        lambda: Settings(tools=(ToolSpec(name="read"), ToolSpec(name="read"))),
        ("'read'",),
    ),
    "the trap of ADR-006: eviction below the gate": (
        lambda: Settings(budget=Budget(evict_below=1_000, min_round=1_500)),
        ("evict_below (1000)", "min_round (1500)", str(result_tokens(6_000, CLASSES))),
    ),
    "eviction that leaves no place for one result": (
        lambda: Settings(budget=Budget(evict_below=1_500 + RESULT), rates=LOCALCOWORK),
        (f"evict_below ({1_500 + RESULT})", "min_round (1500)", str(RESULT)),
    ),
    "a tool with a cap that outgrows the high mark": (
        lambda: Settings(tools=(ToolSpec(name="ocr", cap=32_613),)),
        ("evict_below (5000)", str(result_tokens(32_613, CLASSES))),
    ),
    "a tool with a cap below its own notice": (
        lambda: Settings(tools=(ToolSpec(name="ocr", cap=10),)),
        ("ocr", "10", "80"),
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_refused_with_its_numbers(name: str) -> None:
    build, numbers = CONTRADICTIONS[name]

    with pytest.raises(Contradiction) as refused:
        build()

    assert [each for each in numbers if each not in str(refused.value)] == []


def test_the_numbers_of_localcowork_hold_where_its_own_threshold_would_not() -> None:
    budget = Budget(evict_below=1_500 + RESULT + 1)

    assert Settings(budget=budget, rates=LOCALCOWORK).budget == budget
    with pytest.raises(Contradiction):
        Settings(budget=Budget(evict_below=1_000), rates=LOCALCOWORK)


def test_a_window_that_never_evicts_needs_no_marks_of_eviction() -> None:
    budget = Budget(window=8_192, evict_below=1_000, evict_to=12_000, evicts=False)

    assert Settings(budget=budget).budget == budget


def test_two_equal_marks_leave_no_hysteresis_and_are_refused() -> None:
    with pytest.raises(Contradiction, match="would end where it begins"):
        Budget(evict_below=6_000, evict_to=6_000)


@given(st.integers(1_024, 2_000_000))
@example(1_024)
@example(2_000_000)
def test_every_window_gets_settings_that_agree_with_each_other(window: int) -> None:
    tools = (ToolSpec(name="ocr", cap=100_000), ToolSpec(name="put", cap=80))
    settings = Settings.for_window(window, system="You are an agent.", tools=tools)
    budget, caps = settings.budget, settings.caps

    assert budget.window == window
    assert [tool.cap for tool in settings.tools] == [caps.result, 80]
    assert budget.output + budget.safety + budget.min_round < window
    assert budget.min_round + result_tokens(caps.result, CLASSES) < budget.evict_below
    assert budget.evict_below < budget.evict_to < window - budget.output - budget.safety


LIMITS = Limits(rounds=10, calls=20, tokens=1_000, cost=50, seconds=60.0)
CROSSED = Spent(rounds=10, calls=20, prompt=600, completion=400, cost=50)


@pytest.mark.parametrize(
    ("spent", "seconds", "reason"),
    [
        (CROSSED, 60.0, StopReason.OUT_OF_TIME),
        (CROSSED, 59.9, StopReason.OUT_OF_MONEY),
        (Spent(rounds=10, calls=20, prompt=999, completion=1), 0.0, StopReason.OUT_OF_TOKENS),
        (Spent(rounds=10, calls=20, prompt=999), 0.0, StopReason.OUT_OF_CALLS),
        (Spent(rounds=10, calls=19, prompt=999), 0.0, StopReason.OUT_OF_ROUNDS),
        (Spent(rounds=9, calls=19, prompt=999, cost=49), 59.9, None),
    ],
)
def test_of_several_crossed_limits_the_one_that_costs_most_is_the_reason(
    spent: Spent, seconds: float, reason: StopReason | None
) -> None:
    assert spent.crossed(LIMITS, seconds) is reason


def test_what_a_server_takes_back_is_not_believed() -> None:
    odd = Usage(prompt=-5, completion=7, cached=-1, cost=-100)

    assert CROSSED.adding(odd) == Spent(rounds=10, calls=20, prompt=600, completion=407, cost=50)


@given(
    st.lists(st.builds(Usage, prompt=st.integers(), completion=st.integers(), cost=st.integers()))
)
def test_what_was_spent_never_shrinks(usages: list[Usage]) -> None:
    spent = Spent()
    for usage in usages:
        more = spent.adding(usage)
        assert (more.prompt, more.completion, more.cost) >= (0, 0, 0)
        assert more.prompt + more.completion >= spent.prompt + spent.completion
        assert more.cost >= spent.cost
        spent = more


# --- when a window is not enough ------------------------------------------------------------

READ = ToolSpec(name="read", mutates=False)
IDLE = tuple(
    ToolSpec(name=f"idle{n}", parameters=f'{{"title":"{"word " * 900}"}}') for n in range(6)
)


def long(call: ToolCall) -> str:
    return f"{call.arguments} and so on, word for word. " * 300


def said_by_user(request: Request) -> list[str]:
    return [m.text for m in request.messages if isinstance(m, UserMessage)]


def ending(played: Played) -> EndDecided:
    return next(event for event in played.events if isinstance(event, EndDecided))


@pytest.mark.parametrize(
    ("system", "tools", "largest"),
    [
        ("Rule. " * 9_000, (READ,), "The largest part is the system prompt: "),
        ("Rule.", IDLE, "The largest part is the definitions of 6 tools: "),
    ],
)
def test_a_window_that_cannot_fit_ends_and_says_by_how_much_and_why(
    system: str, tools: tuple[ToolSpec, ...], largest: str
) -> None:
    settings = Settings.for_window(8_192, system=system, tools=tools)
    settings = replace(settings, rates=LOCALCOWORK)
    played = play("hello", [says("")], {}, settings)

    size = size_of_system(system) + size_of_tools(tools) + size_of(UserMessage("hello"))
    budget, tokens = settings.budget, Gauge(LOCALCOWORK).expect(size).tokens
    missing = tokens + budget.output + budget.safety + budget.min_round - 8_192
    assert played.stopped.reason is StopReason.CONTEXT_EXHAUSTED
    assert f"The window of 8192 tokens is about {missing} tokens too small" in played.stopped.text
    assert largest in played.stopped.text


def test_a_window_that_may_not_evict_ends_with_everything_still_in_it() -> None:
    settings = Settings(tools=(READ,), budget=Budget(window=16_000, evicts=False))
    task = "Read them one by one. " * 150
    script = [*(calls("read", n=n) for n in range(9)), says("")]
    played = play(task, script, {"read": long}, settings)

    assert [event for event in played.events if isinstance(event, Evicted | TaskCut)] == []
    assert all(said_by_user(request) == [task] for request in played.requests)
    assert ending(played).reason is StopReason.CONTEXT_EXHAUSTED


TOO_LONG: dict[str, Fails] = {
    "window and tokens": Fails(Failure.OVERFLOW, "too long", window=16_384, tokens=20_000),
    "only the window": Fails(Failure.OVERFLOW, "too long", window=16_384),
    "only the tokens": Fails(Failure.OVERFLOW, "too long", tokens=40_000),
    "nothing": Fails(Failure.OVERFLOW, "too long"),
    "a window of nothing": Fails(Failure.OVERFLOW, "too long", window=-1, tokens=0),
}


@pytest.mark.parametrize("told", TOO_LONG)
def test_after_an_overflow_the_next_request_is_smaller_and_the_run_ends_in_time(told: str) -> None:
    settings = Settings(tools=(READ,), limits=Limits(overflows=3))
    script: list[Says | Fails] = [*(calls("read", n=n) for n in range(4)), *[TOO_LONG[told]] * 12]
    played = play("read " * 800, script, {"read": long}, settings)

    sizes = [sum(len(message.text) for message in r.messages) for r in played.requests[4:]]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(sizes) <= 1 + 3 + 1  # the first, one for each that is forgiven, the conclusion
    assert played.stopped.reason is StopReason.CONTEXT_EXHAUSTED


def test_after_one_overflow_a_run_goes_on_and_the_next_request_is_expected_to_fit() -> None:
    for told in TOO_LONG.values():
        script: list[Says | Fails] = [*(calls("read", n=n) for n in range(4)), told, says("done")]
        played = play("read", script, {"read": long})

        window = min(32_768, played.state.window or 32_768)
        last = [event for event in played.events if isinstance(event, ModelAsked)][-1]
        assert played.stopped.text == "done"
        assert last.expected + 2_000 <= window


@pytest.mark.parametrize("overflows", [0, 3])
def test_a_run_that_overflows_too_often_says_something_true_about_the_window(
    overflows: int,
) -> None:
    settings = Settings(tools=(READ,), limits=Limits(overflows=overflows))
    script: list[Says | Fails] = [calls("read", n=1), *[TOO_LONG["nothing"]] * 12]
    text = ending(play("read " * 800, script, {"read": long}, settings)).detail

    missing = re.search(r"about (-?\d+) tokens too small", text)
    assert missing is None or int(missing[1]) > 0


def test_the_parts_that_are_named_add_up_to_what_the_window_holds() -> None:
    text = ending(play("hello", [TOO_LONG["nothing"]], {})).detail

    parts = dict(re.findall(r"(?:: |, )([\w ]+?) about (\d+)", text))
    assert int(parts["the system prompt"]) < 100  # it is not there: the server's refusal is not it
