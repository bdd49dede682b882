"""What one round costs the heart, and what it keeps, after 10, 100, 1,000 and 10,000 rounds.

    python lab/bench/step_cost.py

Only the ratios mean something: they are measured in one run, and must stay flat (<= 1.5).
Two windows: one that holds everything, and one that evicts all the time. In that one the first
rounds are cheaper, since there is nothing to evict yet: its ratios are to the second mark.
"""

import gc
import tracemalloc
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
from holdfast.core.machine import step
from holdfast.core.state import NEW, State
from holdfast.core.tools import ToolSpec

MARKS = (10, 100, 1_000, 10_000)
AROUND = 120
"""Rounds at a mark whose mean is taken: evictions come in bursts."""
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
    """At each mark: seconds that a round costs, and bytes that it leaves behind."""
    state = step(NEW, UserSpoke("Read everything.", 0.0, settings(window))).state
    costs, kept, number = [], [], 0
    for mark in MARKS:
        while number < mark - AROUND // 2:
            state, number = round_of(state, number), number + 1
        seconds = []
        for _ in range(AROUND if mark > AROUND else mark):
            began = process_time()
            state, number = round_of(state, number), number + 1
            seconds.append(process_time() - began)
        costs.append(sum(seconds) / len(seconds))
        gc.collect()
        tracemalloc.start()
        for _ in range(AROUND):
            state, number = round_of(state, number), number + 1
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0] / AROUND)
        tracemalloc.stop()
    return costs, kept


def main() -> None:
    for title, window in (("everything in the window", 10**9), ("evicting", 32_768)):
        costs, kept = measure(window)
        base = 1 if window < 10**9 else 0
        print(f"{title}:")
        for mark, cost, size in zip(MARKS, costs, kept, strict=True):
            print(
                f"  after {mark:>6,} rounds  {cost * 1e6:7.0f} µs a round"
                f" ({cost / costs[base]:.2f}x)  {size:8.0f} bytes left behind by a round"
                f" ({size / kept[base]:.2f}x)"
            )


if __name__ == "__main__":
    main()
