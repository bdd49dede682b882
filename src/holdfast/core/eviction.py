"""How things leave the window: results fade to digests, rounds become lines, words of the user and
what is pinned move into the head. What leaves, and when, is decided in `window` and `room`.
"""

from collections.abc import Iterator, Mapping

from holdfast.core.copies import replace
from holdfast.core.cut import cut, digest_arguments, middle_cut, shorten_arguments
from holdfast.core.digest import digest
from holdfast.core.events import Evicted, Fading, Outcome
from holdfast.core.history import Entry, History, Line, Spoken, noted
from holdfast.core.limits import Caps
from holdfast.core.messages import AssistantMessage, Note, ToolMessage, UserMessage
from holdfast.core.tokens import size_of
from holdfast.core.tools import Keep
from holdfast.core.trail import Trail

LATE = "[The call "
"""How a note begins that tells of a call which finished after it was given up."""
FADED = 64
"""Characters that stand around the digest of a faded result."""
SMALLEST = 240
"""Characters below which an entry of the newest round is digested instead of cut again."""
SMALLEST_ARGUMENTS = 60
"""Characters of the arguments of a call that are shown in any case."""


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
    line = digest_of(entry, message.text, caps.line)
    text = f"[earlier result {message.call_id} of {entry.length:,} chars, shortened: {line}]"
    shorter = replace(message, text=text)
    return replace(entry, message=shorter, size=size_of(shorter), faded=True)


def recut(entry: Entry, to: int) -> Entry:
    """An entry of about so many characters: a result cut again, or a reply with shorter arguments."""
    match entry.message:
        case ToolMessage(text=text) as result:
            notice = f"The whole result had {entry.length:,} chars"
            result = replace(result, text=cut(text, to, Keep.ENDS, notice))
            return replace(entry, message=result, size=size_of(result))
        case AssistantMessage(text, calls) as reply:
            share = max(SMALLEST_ARGUMENTS, to // (len(calls) + 1))
            shorter = tuple(
                replace(call, arguments=shorten_arguments(call.arguments, share)) for call in calls
            )
            reply = replace(reply, text=cut(text, share), calls=shorter)
            return replace(entry, message=reply, size=size_of(reply))
        case _:
            return entry


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
                op = calls.get(result.call_id, result.tool)
                status = STATUS.get(entry.outcome or Outcome.DONE, "success")
                detail = result.text if entry.faded else digest_of(entry, result.text, room)
                detail = middle_cut(detail, room + FADED)
                yield Line(of, f"op={op}; id={result.call_id}; status={status}; detail={detail}")
            case Note(text) if text.startswith(LATE):
                yield Line(of, middle_cut(text, caps.line + FADED))
            case _:
                pass


STATUS = {
    Outcome.FAILED: "failure",
    Outcome.TIMED_OUT: "unknown",
    Outcome.UNKNOWN: "unknown",
    Outcome.NOT_RUN: "not run",
    Outcome.CANCELLED: "not run",
}


def digest_of(entry: Entry, text: str, room: int) -> str:
    """A digest that names the length of the whole result, not of the cut it is made from."""
    line = digest(text, room)
    return line.replace(f"[of {len(text):,} chars]", f"[of {entry.length:,} chars]")


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
