"""How many values that a later call needs does a digest hide?

    python lab/bench/digests.py DATA_FOLDER

Reads 200 real runs and looks at every value in the arguments of a tool call that the model could
know only from earlier results: neither the user, nor the prompt, nor the model itself had said it
before. All results but the newest k are then replaced by what a window would leave of them.
Hidden is a value that is in none of them any more.
"""

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.core.digest import digest

RUNS = "transcripts/tau-bench-gpt-4o-airline.json.gz"
NEWEST = (3, 1, 0)
ROOMS = (100, 200, 300, 500)
SHORTEST = 3
"""Characters of a value that is looked for: shorter ones occur everywhere."""

Shorten: TypeAlias = Callable[[str, int], str]
"""A result and the room for what is left of it."""
WAYS: dict[str, Shorten] = {
    "nothing left": lambda text, room: "",
    "first N chars": lambda text, room: text[:room],
    "digest": digest,
}


@dataclass(frozen=True, slots=True)
class Need:
    """A value in a call's arguments, and the results it must have come from."""

    run: int
    value: str
    results: tuple[str, ...]
    """All results before the call, oldest first."""


@dataclass(frozen=True, slots=True)
class Hidden:
    runs: float
    values: float


def needs(runs: list[dict[str, Any]]) -> Iterator[Need]:
    for number, run in enumerate(runs):
        said: list[str] = []
        results: list[str] = []
        for message in run["traj"]:
            calls = message.get("tool_calls") or ()
            arguments = [call["function"]["arguments"] for call in calls]
            for value in dict.fromkeys(
                leaf for text in arguments for leaf in leaves(json.loads(text))
            ):
                known = any(holds(text, value) for text in said)
                if not known and any(holds(text, value) for text in results):
                    yield Need(number, value, tuple(results))
            (results if message["role"] == "tool" else said).append(message.get("content") or "")
            said.extend(arguments)


def leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            for item in value.values():
                yield from leaves(item)
        case list():
            for item in value:
                yield from leaves(item)
        case str() | int() | float() if not isinstance(value, bool) and len(str(value)) >= SHORTEST:
            yield str(value)


def holds(text: str, value: str) -> bool:
    """`value` stands in `text` as a whole, not as part of a longer word or number."""
    return value in text and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def hidden(wanted: list[Need], runs: int, newest: int, room: int, shorten: Shorten) -> Hidden:
    left_of = cache(lambda text: shorten(text, room))
    lost = [need for need in wanted if not visible(need, newest, left_of)]
    return Hidden(len({need.run for need in lost}) / runs, len(lost) / len(wanted))


def visible(need: Need, newest: int, left_of: Callable[[str], str]) -> bool:
    border = max(len(need.results) - newest, 0)
    return any(holds(text, need.value) for text in need.results[border:]) or any(
        holds(text, need.value) and holds(left_of(text), need.value)
        for text in need.results[:border]
    )


def main() -> None:
    source = Path(sys.argv[1], RUNS) if len(sys.argv) > 1 else None
    if source is None or not source.exists():
        print(f"Nothing measured: give the folder that holds {RUNS}.")
        return
    runs = json.loads(gzip.decompress(source.read_bytes()))
    wanted = list(needs(runs))
    print(f"{len(wanted)} values in {len({need.run for need in wanted})} of {len(runs)} runs")
    print("come only from results. Hidden, as % of all runs / of these values:\n")
    print(f"{'whole':>5} {'room':>5}" + "".join(f"{way:>17}" for way in WAYS))
    for newest in NEWEST:
        for room in ROOMS:
            shares = [hidden(wanted, len(runs), newest, room, way) for way in WAYS.values()]
            cells = (f"{100 * share.runs:9.1f} /{100 * share.values:6.1f}" for share in shares)
            print(f"{newest:>5} {room:>5}" + "".join(cells))


if __name__ == "__main__":
    main()
