"""Which part of the history is sent: what fits, what leaves, and what never may.

Eviction happens in stages, only as far as needed, from the high mark down to the low mark, so
that between two evictions each request begins with the one before. The first stages cost detail:
results of older rounds become digests, then older rounds become lines, of finished runs and of
the current run alike. What must never happen is decided by shape: rounds go whole, and the user's
words and what is pinned are written into the head as they leave the body.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from holdfast.core.cut import cut, digest_arguments, middle_cut, shorten_arguments
from holdfast.core.digest import digest
from holdfast.core.events import Evicted, Fading
from holdfast.core.history import Entry, History, Line, Spoken, noted
from holdfast.core.limits import Budget, Caps
from holdfast.core.messages import AssistantMessage, Message, Note, ToolMessage, UserMessage
from holdfast.core.tokens import Gauge, Size, size_of, size_of_system, size_of_tools
from holdfast.core.tools import Keep, ToolSpec
from holdfast.core.trail import Trail

FIND_TOOLS = "find_tools"
"""The tool that brings shelved tools back. Where it is missing, nothing is shelved."""
FADED = 48
FADED_BEGINS = "[earlier result of "
"""How a result begins of which only the digest is left, and about what stands around that."""
SMALLEST_ARGUMENTS = 60
SMALLEST = 240
"""Characters below which a result of the newest round is digested instead of cut again."""
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
        return self.window - self.budget.output - self.budget.safety - self.expected(size)


# --- deciding what leaves -------------------------------------------------------------------


def rolled(history: History, tools: tuple[ToolSpec, ...]) -> Evicted | None:
    """Results beyond the newest few of tools that keep only those."""
    fading: list[Fading] = []
    for tool in tools:
        if tool.keep_last is not None:
            whole = [position for name, position in history.whole if name == tool.name]
            fading += [Fading(position) for position in whole[: len(whole) - tool.keep_last]]
    return Evicted(tuple(sorted(fading, key=lambda each: each.position))) if fading else None


def relief(history: History, frame: Frame, caps: Caps) -> Evicted | None:
    """Make room up to the low mark, and leave the newest rounds whole."""
    return lighter(history, frame, caps, frame.budget.evict_to, frame.budget.keep_rounds)


def squeeze(
    history: History, frame: Frame, caps: Caps, tools: tuple[ToolSpec, ...], used: tuple[str, ...]
) -> Evicted | None:
    """Make room for one more round, at the cost of things that `relief` spares."""
    return (
        shelved(tools, used)
        or lighter(history, frame, caps, frame.budget.min_round, 1)
        or harder(history, frame)
    )


def lighter(history: History, frame: Frame, caps: Caps, wanted: int, rounds: int) -> Evicted | None:
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
    return Evicted(kept, dropped) if kept or dropped > useless(history) else None


def characters_missing(history: History, frame: Frame, wanted: int) -> float:
    """About how many characters must leave until `wanted` tokens are free.

    Characters are counted at the rate of the whole history: exact enough, since the machine looks
    again afterwards, and cheap enough for thousands of entries.
    """
    rate = max(frame.gauge.weigh(history.size), 1) / max(history.size.characters, 1)
    return (wanted - frame.room(history.size)) / rate


def useless(history: History) -> int:
    """How many leading entries are words of the user that would only move into the head."""
    pinned = {each.position for each in history.spoken}
    return next((place for place in range(len(history.body)) if place not in pinned), 0)


def can_fade(entry: Entry, caps: Caps) -> bool:
    whole = isinstance(entry.message, ToolMessage) and not entry.faded
    return whole and entry.size.characters > caps.line + FADED


def harder(history: History, frame: Frame) -> Evicted | None:
    """Cut what is left, the largest first: each to a quarter, and a small one to a digest."""
    missing = characters_missing(history, frame, frame.budget.min_round)
    largest = sorted(
        ((entry.size.characters, position) for position, entry in enumerate(history.body)),
        reverse=True,
    )
    fading: list[Fading] = []
    for length, position in largest:
        if missing <= 0 or length <= SMALLEST:
            break
        entry = history.body[position]
        if isinstance(entry.message, UserMessage) or entry.faded:
            continue
        to = length // 4
        fading.append(Fading(position, to if to >= SMALLEST else 0))
        missing -= length - to
    return Evicted(tuple(sorted(fading, key=lambda each: each.position))) if fading else None


def shelved(tools: tuple[ToolSpec, ...], used: tuple[str, ...]) -> Evicted | None:
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


# --- making it leave ------------------------------------------------------------------------


def evict(
    history: History, event: Evicted, caps: Caps, pins: Mapping[str, str], run: int
) -> History:
    """The history after `event`; what leaves the body becomes lines of the digest."""
    if event.fading:
        history = fade(history, event.fading, caps)
    if not event.dropped:
        return history
    every = tuple(history.body)
    gone, kept = every[: event.dropped], every[event.dropped :]
    lines = (*history.lines, *lines_of(gone, run, history.spoken, caps))
    kept_lines, forgotten = newest_lines(lines, caps.digest)
    size = history.size
    for entry in gone:
        size = size - entry.size
    history = replace(
        history,
        body=Trail.of(kept),
        size=size,
        spoken=tuple(moved(each, event.dropped) for each in history.spoken),
        lines=kept_lines,
        forgotten=history.forgotten + forgotten,
        whole=tuple(
            (tool, position - event.dropped)
            for tool, position in history.whole
            if position >= event.dropped
        ),
    )
    return headed(history, pins, run)


def fade(history: History, fading: tuple[Fading, ...], caps: Caps) -> History:
    """What shrinks, shrinks; what cannot get any smaller is marked, and not asked to again."""
    changes: dict[int, Entry] = {}
    for each in fading:
        entry = history.body[each.position]
        smaller = recut(entry, each.to) if each.to else faded(entry, caps)
        if smaller.size.characters >= entry.size.characters:
            smaller = replace(entry, faded=True)
        changes[each.position] = smaller
    gone = {each.position for each in fading}
    history = history.replacing(changes)
    return replace(history, whole=tuple(pair for pair in history.whole if pair[1] not in gone))


def faded(entry: Entry, caps: Caps) -> Entry:
    """An entry of which only the digest is left."""
    message = entry.message
    if not isinstance(message, ToolMessage):
        return replace(recut(entry, SMALLEST), faded=True)
    line = digest(message.text, caps.line)
    text = f"{FADED_BEGINS}{entry.length:,} chars, shortened: {line}]"
    shorter = replace(message, text=text)
    return replace(entry, message=shorter, size=size_of(shorter), faded=True)


def recut(entry: Entry, to: int) -> Entry:
    """An entry of about so many characters: a result cut again, or a reply with shorter arguments."""
    message = entry.message
    shorter: Message = message
    match message:
        case ToolMessage(text=text):
            notice = f"The whole result had {entry.length:,} chars"
            shorter = replace(message, text=cut(text, to, Keep.ENDS, notice))
        case AssistantMessage(text, calls):
            share = max(SMALLEST_ARGUMENTS, to // (len(calls) + 1))
            shorter = AssistantMessage(
                cut(text, share),
                tuple(
                    replace(call, arguments=shorten_arguments(call.arguments, share))
                    for call in calls
                ),
            )
        case Note(text):
            shorter = Note(cut(text, to))
        case UserMessage():
            pass
        case _:
            assert_never(message)
    return replace(entry, message=shorter, size=size_of(shorter))


def moved(spoken: Spoken, dropped: int) -> Spoken:
    if spoken.position is None or spoken.position < dropped:
        return replace(spoken, position=None)
    return replace(spoken, position=spoken.position - dropped)


def lines_of(
    gone: tuple[Entry, ...], run: int, pinned: tuple[Spoken, ...], caps: Caps
) -> Iterator[Line]:
    """What the digest says of these entries: op, status, detail; and who said what."""
    kept = {each.position for each in pinned}
    begins = pinned[0].position if pinned else None
    current = pinned != () and begins is None
    calls: dict[str, str] = {}
    for position, entry in enumerate(gone):
        current = current or position == begins
        of = run if current else run - 1
        match entry.message:
            case UserMessage(text) if position not in kept:
                yield Line(of, "user: " + digest(text, caps.line))
            case AssistantMessage(text, wanted):
                calls |= {
                    call.id: f"{call.name}({digest_arguments(call.arguments, caps.line // 2)})"
                    for call in wanted
                }
                if text and not wanted:
                    yield Line(of, "assistant: " + digest(text, caps.line))
            case ToolMessage() as result:
                room = min(caps.line * 3, caps.digest // 2) if result.failed else caps.line
                status = "failure" if result.failed else "success"
                op = calls.get(result.call_id, result.tool)
                detail = result.text if entry.faded else digest(result.text, room)
                yield Line(
                    of, f"op={op}; status={status}; detail={middle_cut(detail, room + FADED)}"
                )
            case _:
                pass


def newest_lines(lines: tuple[Line, ...], cap: int) -> tuple[tuple[Line, ...], int]:
    """As many of the newest lines as the cap of the digest holds, and how many it did not."""
    if lines and len(lines[-1].text) > cap:
        return (replace(lines[-1], text=middle_cut(lines[-1].text, cap)),), len(lines) - 1
    room, first = cap, len(lines)
    while first and room >= len(lines[first - 1].text):
        first -= 1
        room -= len(lines[first].text)
    return lines[first:], first


def headed(history: History, pins: Mapping[str, str], run: int) -> History:
    """The history with its head written anew: digest, pinned facts, the user's pinned words."""
    before = [line.text for line in history.lines if line.run < run]
    during = [line.text for line in history.lines if line.run >= run]
    head: list[Entry] = []
    if history.summary:
        head.append(noted(f"[Summary of earlier work]\n{history.summary}"))
    if before or history.forgotten:
        more = [f"(… and {history.forgotten} earlier actions)"] if history.forgotten else []
        head.append(noted(listed("Earlier in this session", [*more, *before])))
    if pins:
        facts = "\n".join(f"{key}: {text}" for key, text in pins.items())
        head.append(noted(f"[Kept in mind by the harness]\n{facts}"))
    pinned = [pinned_entry(each) for each in history.spoken if each.position is None]
    head += pinned[:1]
    if during:
        head.append(noted(listed("Earlier in this run", during)))
    head += pinned[1:]
    return reheaded(history, tuple(head))


def reheaded(history: History, head: tuple[Entry, ...]) -> History:
    size = history.size
    for entry in history.head:
        size = size - entry.size
    for entry in head:
        size = size + entry.size
    return replace(history, head=head, size=size)


def listed(title: str, lines: list[str]) -> str:
    told = "recorded by the harness: what was done and how it ended. Do not repeat what succeeded."
    return "\n".join((f"[{title}, {told}]", *(f"- {line}" for line in lines)))


def pinned_entry(spoken: Spoken) -> Entry:
    message = UserMessage(cut(spoken.text, spoken.shown, Keep.ENDS))
    return Entry(message, size_of(message), length=len(spoken.text))


# --- the user's words, when they alone are too long -----------------------------------------


def task_cut(history: History, frame: Frame) -> int | None:
    """To how many characters the longest of the user's pinned messages must shrink; None if it
    is as short as it may be."""
    longest = max(history.spoken, key=lambda each: each.shown, default=None)
    alone = Size()
    for each in history.spoken:
        alone = alone + pinned_entry(each).size
    if not frame.budget.evicts and frame.room(alone) >= frame.budget.min_round:
        return None  # it is the rest that is too much, and may not be touched
    missing = frame.budget.min_round - frame.room(history.size)
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
