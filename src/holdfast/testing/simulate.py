"""Whole sessions in a world where everything goes wrong, with all laws watched.

    python -m holdfast.testing.simulate --runs 20000 --seed 1

Every session has a seed of its own. A broken law prints that seed and the shortest transcript
found that still breaks it; `--only SEED` plays that one session again.
"""

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from holdfast.testing.printing import INTERRUPTED, printing
from holdfast.testing.told import told
from holdfast.testing.world import World

CHUNK = 500
"""Runs that a process plays before it reports."""
TRIES = 400
"""Other seeds tried for a shorter transcript of the same broken law."""


@dataclass
class Tally:
    runs: int = 0
    sessions: int = 0
    events: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    """Events of each kind."""
    broken: list[str] = field(default_factory=list)
    """Seeds of the sessions that broke a law."""

    def add(self, other: "Tally") -> None:
        self.runs += other.runs
        self.sessions += other.sessions
        self.events += other.events
        self.faults += other.faults
        self.stops += other.stops
        self.kinds += other.kinds
        self.broken += other.broken


def play(seed: str) -> tuple[World, Exception | None]:
    world = World(Random(seed))
    try:
        world.play()
    except Exception as broken:  # any exception out of the heart is a broken law
        return world, broken
    return world, None


def chunk(seed: str, runs: int) -> Tally:
    """Sessions until there were so many runs, or one broke a law."""
    tally = Tally()
    while tally.runs < runs and not tally.broken:
        name = f"{seed}/{tally.sessions}"
        world, broken = play(name)
        tally.sessions += 1
        tally.runs += max(1, world.stops.total())
        tally.events += len(world.log)
        tally.faults += world.faults
        tally.stops += world.stops
        tally.kinds.update(type(event).__name__ for event in world.log)
        if broken is not None:
            tally.broken.append(name)
    return tally


def simulate(tally: Tally, runs: int, seed: str, jobs: int) -> None:
    """Play so many runs and count them in `tally`, up to the first broken law."""
    chunks = [(f"{seed}/{start}", min(CHUNK, runs - start)) for start in range(0, runs, CHUNK)]
    if jobs == 1:
        for each in chunks:
            tally.add(chunk(*each))
            if tally.broken:
                return
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for part in pool.map(chunk, *zip(*chunks, strict=True)):
                tally.add(part)
                if tally.broken:
                    return
        finally:
            pool.shutdown(cancel_futures=True)


def shortest(seed: str) -> tuple[str, World, Exception]:
    """The session that breaks a law in the same way with the fewest events."""
    world, broken = play(seed)
    assert broken is not None
    for number in range(TRIES):
        name = f"{seed}+{number}"
        other, same = play(name)
        if type(same) is type(broken) and str(same)[:24] == str(broken)[:24]:
            if len(other.log) < len(world.log):
                seed, world, broken = name, other, same
    return seed, world, broken


def show(seed: str) -> None:
    name, world, broken = shortest(seed)
    print(f"\nBROKEN: {broken or type(broken).__name__}\nseed: {name}\n")
    for line in told(world.log[-60:]):
        print("  " + line)
    print(f"\nPlay it again: make simulate ONLY='{name}'")
    if not isinstance(broken, AssertionError):
        traceback.print_exception(broken)


def main(arguments: Sequence[str] | None = None) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.testing.simulate", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--runs", type=at_least_one, default=10_000, help="how many, at least")
    parser.add_argument("--seed", default="1", help="any text; the same seed plays the same runs")
    parser.add_argument("--jobs", type=at_least_one, default=1, help="processes to share the work")
    parser.add_argument(
        "--only", metavar="SEED", help="play the one session of this seed, copied exactly"
    )
    asked = parser.parse_args(arguments)
    if asked.only is not None:
        return printing(lambda: only(asked.only))
    return printing(lambda: many(asked.runs, asked.seed, asked.jobs))


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text}")
    return int(text)


def only(seed: str) -> int:
    world, broken = play(seed)
    for line in told(world.log, width=160):
        print("  " + line)
    if broken is not None:
        print(f"\nBROKEN: {broken or type(broken).__name__}")
        if not isinstance(broken, AssertionError):
            traceback.print_exception(broken)
    return 1 if broken else 0


def many(runs: int, seed: str, jobs: int) -> int:
    began, tally, stopped = perf_counter(), Tally(), ""
    try:
        simulate(tally, runs, seed, jobs)
    except KeyboardInterrupt:
        stopped = ", stopped early"
    seconds = perf_counter() - began
    shown = (("events", tally.kinds), ("faults", tally.faults), ("stop reasons", tally.stops))
    for title, counts in shown:
        print(f"{title}:")
        for name, count in counts.most_common():
            print(f"  {count:>9,}  {name}")
    print(
        f"{tally.runs:,} runs in {tally.sessions:,} sessions, {tally.events:,} events, "
        f"{tally.runs / seconds:,.0f} runs/s, {len(tally.broken)} broken{stopped}"
    )
    for name in tally.broken[:1]:
        show(name)
    return 1 if tally.broken else INTERRUPTED if stopped else 0


if __name__ == "__main__":
    sys.exit(main())
