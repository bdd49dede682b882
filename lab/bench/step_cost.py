"""What one round costs the heart, and what it keeps, after 10, 100, 1,000 and 10,000 rounds.

    python lab/bench/step_cost.py

Only the ratios mean something: they are measured in one run, and must stay flat (<= 1.5).
Two windows: one that holds everything, and one that evicts all the time.
"""

import gc
import tracemalloc
from statistics import median
from time import process_time

from holdfast.core.effects import CallModel, RunTools
from holdfast.core.events import (
    ModelReplied,
    Outcome,
    Reply,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    WantedCall,
)
from holdfast.core.limits import Budget, Limits, Settings, Usage
from holdfast.core.machine import Step, step
from holdfast.core.state import NEW, State
from holdfast.core.tools import ToolSpec

MARKS = (10, 100, 1_000, 10_000)
AROUND = 60
"""Rounds on either side of a mark whose mean is taken: evictions come in bursts."""
RESULT = '{"id": "INV-20417", "path": "/home/ana/receipts/scan 14.txt", "total": 1284.50}\n' * 6
ENDLESS = Limits(rounds=10**9, calls=10**9, tokens=10**12, seconds=1e12)
TOOLS = (ToolSpec(name="read", description="Read a file.", mutates=False),)


def settings(window: int) -> Settings:
    return Settings(
        system="You are an agent.", tools=TOOLS, budget=Budget(window=window), limits=ENDLESS
    )


def round_of(state: State, number: int) -> State:
    """One round: a reply with one call, its start, its result."""
    at = float(number)
    call = WantedCall("read", f'{{"path": "scan {number}.txt"}}')
    done = step(state, ModelReplied(state.asks, Reply(calls=(call,)), at, used(state)))
    (wanted,) = next(effect.calls for effect in done.effects if isinstance(effect, RunTools))
    done = step(done.state, ToolStarted(wanted.id, at))
    done = step(done.state, ToolFinished(wanted.id, Outcome.DONE, f"{number} {RESULT}", at))
    assert any(isinstance(effect, CallModel) for effect in done.effects), done.events
    return done.state


def used(state: State) -> Usage:
    assert state.run is not None
    assert state.run.waiting is not None
    return Usage(prompt=state.gauge.expect(state.run.waiting.size).tokens, completion=20)


def measure(window: int) -> tuple[list[float], list[float]]:
    """Seconds of a round, and bytes that the state grows by in it, at each mark."""
    started: Step = step(NEW, UserSpoke("Read everything.", 0.0, settings(window)))
    state, seconds, kept = started.state, [], []
    for number in range(MARKS[-1] + AROUND):
        began = process_time()
        state = round_of(state, number)
        seconds.append(process_time() - began)
    costs = [typical(seconds, mark) for mark in MARKS]
    state = started.state
    tracemalloc.start()
    for number in range(MARKS[-1] + 1):
        state = round_of(state, number)
        if number in MARKS:
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0] / number)
    tracemalloc.stop()
    return costs, kept


def typical(seconds: list[float], mark: int) -> float:
    near = seconds[max(0, mark - AROUND) : mark + AROUND]
    return sum(near) / len(near) if mark > AROUND else median(near)


def main() -> None:
    for title, window in (("everything in the window", 10**9), ("evicting", 32_768)):
        costs, kept = measure(window)
        print(f"{title}:")
        for mark, cost, size in zip(MARKS, costs, kept, strict=True):
            print(
                f"  after {mark:>6,} rounds  {cost * 1e6:7.0f} µs a round ({cost / costs[0]:.2f}x)"
                f"  {size:8.0f} bytes kept a round ({size / kept[0]:.2f}x)"
            )


if __name__ == "__main__":
    main()
