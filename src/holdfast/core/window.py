"""Which part of the history is sent: what fits, what leaves, and what never may.

Eviction happens in stages, only as far as needed, from the high mark down to the low mark, so
that between two evictions each request begins with the one before. The first stages cost detail:
results of older rounds become digests, then older rounds become lines, of finished runs and of
the current run alike. What must never happen is decided by shape: rounds go whole, and the task,
the user's latest word and what is pinned are written into the head as they leave the body.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

from holdfast.core.copies import replace
from holdfast.core.events import Evicted, Fading
from holdfast.core.eviction import FADED, SMALLEST, pinned_entry, reheaded
from holdfast.core.history import Entry, History
from holdfast.core.limits import Budget, Caps
from holdfast.core.messages import AssistantMessage, ToolMessage
from holdfast.core.tokens import Gauge, Size, size_of_system, size_of_tools
from holdfast.core.tools import ToolSpec
from holdfast.core.trail import Trail

FIND_TOOLS = "find_tools"
"""The tool that brings shelved tools back. Where it is missing, nothing is shelved."""
SMALLEST_TASK = 400
"""Characters of the user's message that are shown in any case."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a window is measured against."""

    gauge: Gauge
    budget: Budget
    window: int
    """Of the budget, or less where the server said so."""
    fixed: Size
    """System prompt and tool definitions, measured."""

    def expected(self, size: Size) -> int:
        return self.gauge.expect(self.fixed + size).safe

    def room(self, size: Size) -> int:
        """Tokens left for a round beside a history of this size; negative if it does not fit."""
        return self.left(self.expected(size))

    def left(self, used: int) -> int:
        return self.window - self.budget.output - self.budget.safety - used


# --- deciding what leaves -------------------------------------------------------------------


def fade_beyond_keep_last(history: History, tools: tuple[ToolSpec, ...]) -> Evicted | None:
    """Results beyond the newest few of tools that keep only those."""
    if not history.whole:
        return None
    unseen = newest(history.body, 1)  # results that no request has held yet stay whole
    fading: list[Fading] = []
    for tool in tools:
        if tool.keep_last is not None:
            whole = [position for name, position in history.whole if name == tool.name]
            too_many = whole[: max(0, len(whole) - tool.keep_last)]
            fading += [Fading(position) for position in too_many if position < unseen]
    return Evicted(tuple(sorted(fading, key=lambda each: each.position))) if fading else None


def relief(history: History, frame: Frame, caps: Caps) -> Evicted | None:
    """Make room up to the low mark, and leave the newest rounds whole."""
    budget = frame.budget
    return fade_then_drop(history, frame, caps, budget.evict_to, rounds=budget.keep_rounds)


def squeeze(history: History, frame: Frame, caps: Caps, wanted: int) -> Evicted | None:
    """Make this much room at the cost of things that `relief` spares: all but the newest round
    leaves, then what is left is cut."""
    return fade_then_drop(history, frame, caps, wanted, rounds=1) or recut_largest(
        history, frame, wanted
    )


def fade_then_drop(
    history: History, frame: Frame, caps: Caps, wanted: int, rounds: int
) -> Evicted | None:
    """Digest old results, then drop old rounds, until about `wanted` tokens are free."""
    missing = characters_missing(history, frame, wanted)
    recent = newest(history.body, rounds)
    spared = newest_failures(history.body, frame.budget.keep_failures)
    left = [entry.size.characters for entry in history.body]
    fading: list[Fading] = []
    for position, entry in enumerate(history.body):
        if position >= recent or missing <= 0:
            break
        if position not in spared and can_fade(entry, caps):
            fading.append(Fading(position))
            missing -= left[position] - caps.line
            left[position] = caps.line
    dropped = 0
    pinned = {each.position for each in history.spoken}
    more_lines = max(0, caps.digest - sum(len(line.text) for line in history.lines))
    for start, stop in units(history.body, recent):
        if missing <= 0:
            break
        dropped = stop
        for place in range(start, stop):
            if place not in pinned:  # words of the user only move into the head
                line = min(more_lines, caps.line, left[place])
                more_lines -= line
                missing -= left[place] - line
    kept = tuple(each for each in fading if each.position >= dropped)
    return Evicted(kept, dropped) if kept or dropped > leading_pinned(history) else None


def characters_missing(history: History, frame: Frame, wanted: int) -> float:
    """About how many characters must leave until `wanted` tokens are free.

    Characters are counted at the rate of the whole history: exact enough, since the machine looks
    again afterwards, and cheap enough for thousands of entries.
    """
    rate = max(frame.gauge.weigh(history.size), 1) / max(history.size.characters, 1)
    return (wanted - frame.room(history.size)) / rate


def leading_pinned(history: History) -> int:
    """How many leading entries are words of the user that would only move into the head."""
    pinned = {each.position for each in history.spoken}
    return next((place for place in range(len(history.body)) if place not in pinned), 0)


def can_fade(entry: Entry, caps: Caps) -> bool:
    whole = isinstance(entry.message, ToolMessage) and not entry.faded
    return whole and entry.size.characters > caps.line + FADED


def recut_largest(history: History, frame: Frame, wanted: int) -> Evicted | None:
    """Cut what is left, the largest first: each to a quarter, and a small one to a digest."""
    missing = characters_missing(history, frame, wanted)
    largest = sorted(
        ((entry.size.characters, position) for position, entry in enumerate(history.body)),
        reverse=True,
    )
    fading: list[Fading] = []
    for length, position in largest:
        if missing <= 0 or length <= SMALLEST:
            break
        entry = history.body[position]
        if entry.faded or not isinstance(entry.message, ToolMessage | AssistantMessage):
            continue
        to = length // 4
        fading.append(Fading(position, to if to >= SMALLEST else 0))
        missing -= length - to
    return Evicted(tuple(sorted(fading, key=lambda each: each.position))) if fading else None


def shelved(tools: tuple[ToolSpec, ...], used: Set[str]) -> Evicted | None:
    """Tools that this run has not used, if they can be found again."""
    if not any(tool.name == FIND_TOOLS for tool in tools):
        return None
    idle = [tool for tool in tools if tool.name not in used and tool.name != FIND_TOOLS]
    return Evicted(shelved=tuple(tool.name for tool in idle)) if idle else None


def newest(body: Trail[Entry], rounds: int) -> int:
    """Where the newest so many rounds begin."""
    for position in range(len(body) - 1, -1, -1):
        if isinstance(body[position].message, AssistantMessage):
            rounds -= 1
            if rounds == 0:
                return position
    return 0


def newest_failures(body: Trail[Entry], count: int) -> set[int]:
    positions: set[int] = set()
    for position in range(len(body) - 1, -1, -1):
        if len(positions) == count:
            break
        message = body[position].message
        if isinstance(message, ToolMessage) and message.failed:
            positions.add(position)
    return positions


def units(body: Trail[Entry], before: int) -> Iterator[tuple[int, int]]:
    """The stretches of the body that may only leave together: a reply and its results."""
    start = 0
    for position in range(1, before + 1):
        if position == before or not isinstance(body[position].message, ToolMessage):
            yield start, position
            start = position


# --- the user's words, when they alone are too long -----------------------------------------


def task_cut(history: History, frame: Frame, wanted: int) -> int | None:
    """To how many characters the longest of the user's pinned messages must shrink; None if it
    is as short as it may be."""
    longest = max(history.spoken, key=lambda each: each.shown, default=None)
    alone = Size()
    for each in history.spoken:
        alone = alone + pinned_entry(each).size
    if not frame.budget.evicts and frame.room(alone) >= wanted:
        return None  # it is the rest that is too much, and may not be touched
    missing = wanted - frame.room(history.size)
    if longest is None or missing <= 0 or longest.shown <= SMALLEST_TASK:
        return None
    tokens = max(1, frame.gauge.weigh(pinned_entry(longest).size))
    share = max(0.2, 1 - 1.2 * missing / tokens)
    return max(SMALLEST_TASK, int(min(longest.shown * share, longest.shown - 1)))


def shorten_task(history: History, to: int) -> History:
    longest = max(history.spoken, key=lambda each: each.shown)
    shorter = replace(longest, shown=to)
    spoken = tuple(shorter if each is longest else each for each in history.spoken)
    history = replace(history, spoken=spoken)
    if longest.position is not None:
        return history.replacing({longest.position: pinned_entry(shorter)})
    old, new = pinned_entry(longest).message, pinned_entry(shorter)
    head = tuple(new if entry.message == old else entry for entry in history.head)
    return reheaded(history, head)


# --- saying why it does not fit -------------------------------------------------------------


def too_small(history: History, frame: Frame, system: str, tools: tuple[ToolSpec, ...]) -> str:
    """By how much the window is too small, and what can be removed."""
    weigh = frame.gauge.weigh
    missing = frame.budget.min_round - frame.room(history.size)
    if missing <= 0:
        return (
            f"The server refused requests as too long that should have fitted into {frame.window} "
            "tokens. It may have been started with a smaller window: check that, and the settings."
        )
    spoken = sum(weigh(pinned_entry(each).size) for each in history.spoken)
    parts = {
        "the system prompt": weigh(size_of_system(system)),
        f"the definitions of {len(tools)} tools": weigh(size_of_tools(tools)),
        "your message": spoken,
        "the rest of the conversation": max(0, weigh(history.size) - spoken),
        "what is reserved for the reply": frame.budget.output + frame.budget.safety,
    }
    largest = max(parts, key=lambda part: parts[part])
    shares = ", ".join(f"{part} about {tokens}" for part, tokens in parts.items() if tokens)
    return (
        f"The window of {frame.window} tokens is about {missing} tokens too small for another "
        f"round: {shares}. The largest part is {largest}: make it smaller, or give the model a "
        "larger window."
    )
