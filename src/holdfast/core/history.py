"""What was said, as a transcript that every provider would accept.

Calls enter only with their results and in order, so a history cannot be invalid: there is no
call without a result in it, no result without a call, and nothing between the two. What the
model wanted is made safe to keep and to send here; what leaves the window again is `window`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from holdfast.core.copies import replace
from holdfast.core.cut import cut, shorten_arguments
from holdfast.core.digest import digest
from holdfast.core.events import Finish, Outcome, Reply, Verdict
from holdfast.core.jsontext import dumped, json_object
from holdfast.core.limits import Caps, Usage
from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
    clean,
)
from holdfast.core.tokens import Size, size_of
from holdfast.core.tools import ToolSpec, resolve
from holdfast.core.trail import Trail

NAME_CAP = 64
STRANGE = re.compile(r"[^A-Za-z0-9_.-]")
"""Servers allow 64 of these characters in a tool's name, also of one that a model invented."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message in the window, and what the harness knows of it."""

    message: Message
    size: Size
    length: int = 0
    """Characters of the whole result, where the message is a cut or a digest of it."""
    outcome: Outcome | None = None
    """How the call ended, where the message is its result."""
    faded: bool = False
    """It cannot get any smaller: only a digest is left of it, or there is nothing to take away."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of the user that every request must hold."""

    text: str
    """All of it."""
    shown: int
    """Characters of it that the model is shown."""
    position: int | None
    """Its place in the body; None once it has been pinned to the head."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is left of something that was evicted."""

    run: int
    text: str


@dataclass(frozen=True, slots=True)
class History:
    head: tuple[Entry, ...] = ()
    """The digest and what is pinned; rewritten only when something is evicted."""
    body: Trail[Entry] = field(default_factory=Trail)
    size: Size = field(default_factory=Size)
    """Of head and body together."""
    spoken: tuple[Spoken, ...] = ()
    """The task of the run and, when the user steered it, the latest word."""
    lines: tuple[Line, ...] = ()
    """The digest of everything that was evicted, oldest first."""
    forgotten: int = 0
    """Older lines that the cap of the digest left no place for."""
    summary: str = ""
    """What the model wrote about the evicted rounds, if it was asked and was right."""
    whole: tuple[tuple[str, int], ...] = ()
    """Tool and position of each whole result of a tool that keeps only its newest ones."""

    def saying(self, *messages: Message) -> "History":
        entries = [Entry(message, size_of(message)) for message in messages]
        return self.with_entries(entries)

    def with_entries(self, entries: list[Entry]) -> "History":
        size = self.size
        for entry in entries:
            size = size + entry.size
        return replace(self, body=self.body.adding(*entries), size=size)

    def hearing(self, text: str, caps: Caps, run: int, *, begins_run: bool) -> "History":
        """The user's words, in their place and pinned: the task, or the latest word in a run.

        Words that these replace in the head become a line of the digest, and are not lost.
        """
        text = clean(text)
        spoken = Spoken(text, shown=len(text), position=len(self.body))
        pinned = (spoken,) if begins_run else (*self.spoken[:1], spoken)
        replaced = self.spoken if begins_run else self.spoken[1:]
        lines = self.lines
        for old in replaced:
            if old.position is None:
                at = run - 1 if begins_run else run
                line = Line(at, "user: " + digest(old.text, caps.line))
                first = next((i for i, each in enumerate(lines) if each.run >= at), len(lines))
                first = first if old is self.spoken[0] else len(lines)
                lines = (*lines[:first], line, *lines[first:])
        return replace(self.saying(UserMessage(text)), spoken=pinned, lines=lines)

    def replacing(self, changes: dict[int, Entry]) -> "History":
        """Entries of the body swapped for others; costs the length of the window."""
        size = self.size
        for position, entry in changes.items():
            size = size - self.body[position].size + entry.size
        body = Trail.of(changes.get(position, entry) for position, entry in enumerate(self.body))
        return replace(self, body=body, size=size)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of the round that is being worked on."""

    call: ToolCall
    """With all of its arguments, and the name of the tool it means."""
    tool: ToolSpec | None
    """None: there is no such tool."""
    fingerprint: str
    """Equal for equal calls, whatever the order of their arguments."""
    problem: str = ""
    """Why it cannot be run, in words for the model."""
    verdict: Verdict | None = None
    """What was decided about it; None: nobody has been asked yet, or nobody need be."""
    started: bool = False
    charged: Usage = Usage()
    """What it has told of its own spending."""
    crashes: int = 0
    """How often the process died while it was under way."""
    admitted: bool = False
    result: ToolMessage | None = None
    length: int = 0
    outcome: Outcome = Outcome.NOT_RUN
    came: str = ""
    """Fingerprint of the whole result."""
    times: int = 1
    """Which time this very call brought this very result."""


def opened(
    reply: Reply, first: int, most: int, tools: tuple[ToolSpec, ...]
) -> tuple[OpenCall, ...]:
    """The calls of a reply, made safe: ids of our own, arguments that are a JSON object.

    A reply that the length limit cut is used not at all: `{"index": 7` may have been 71.
    """
    calls = []
    for number, wanted in enumerate(reply.calls[:most], first):
        tool = resolve(wanted.name, tools) or resolve(safe_name(wanted.name), tools)
        name, arguments, problem = tool.name if tool else safe_name(wanted.name), "{}", ""
        try:
            given = json_object(wanted.arguments) if wanted.arguments.strip() else {}
            arguments = dumped(given)
            print_ = fingerprint(name, dumped(given, sort_keys=True))
        except ValueError:
            print_ = fingerprint(name, wanted.arguments)
            problem = (
                f"Not run: the arguments of '{name}' were not a JSON object. Send one object "
                "with double quotes, no comments and no trailing commas."
            )
        if reply.finish is Finish.LENGTH:
            problem = (
                "Not run: your reply was cut off at the output limit, so the call may be "
                "incomplete. Make the call again, with shorter arguments or fewer calls at once."
            )
        calls.append(OpenCall(ToolCall(call_id(number), name, arguments), tool, print_, problem))
    return tuple(calls)


def call_id(number: int) -> str:
    """Nine letters and digits: the strictest format a provider asks for."""
    return f"c{number:08d}"


def safe_name(name: str) -> str:
    """A name that no tool has, as far as a server would let it stand in a history."""
    return STRANGE.sub("_", name.strip())[:NAME_CAP] or "unnamed"


def fingerprint(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=8).hexdigest()


def closed(reply: Reply, calls: tuple[OpenCall, ...], caps: Caps) -> Iterator[Entry]:
    """The messages of a finished round: the reply, then the result of each call in order, then
    what is to be said about calls of the reply that are not among these."""
    shown = tuple(
        replace(each.call, arguments=shorten_arguments(each.call.arguments, caps.arguments))
        for each in calls
    )
    # What is owed cannot be cut, so it is kept whole or not at all.
    owed = clean(reply.owed) if calls and len(reply.owed) <= caps.text else ""
    message = AssistantMessage(cut(clean(reply.text), caps.text), shown, owed)
    yield Entry(message, size_of(message), length=len(reply.text))
    for each in calls:
        if each.result is None:
            raise ValueError(f"call {each.call.id} has no result; a round closes only with all")
        yield Entry(each.result, size_of(each.result), length=each.length, outcome=each.outcome)
    if calls and len(reply.calls) > len(calls):
        yield noted(
            f"Only the first {len(calls)} of your {len(reply.calls)} calls were taken. Make fewer "
            "calls at once; make the others again if you still need them."
        )
    if calls and reply.problem:
        problem = cut(clean(reply.problem), caps.line * 2)
        yield noted(f"A part of your reply could not be read: {problem}")


def noted(text: str) -> Entry:
    note = Note(text)
    return Entry(note, size_of(note))
