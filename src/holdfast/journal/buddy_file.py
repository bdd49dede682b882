"""Session files of the terminal agent buddy (`.buddyx/sessions/<id>.json`), in and out.

Its file is a list of messages and a count of tokens; a log says much more, and some of what a file
says has no place in a log. Both ways, what could not be carried is said in words.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.events import (
    CallsAdmitted,
    Event,
    ModelAsked,
    ModelReplied,
    Outcome,
    Pinned,
    Purpose,
    Reply,
    RunStopped,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    WantedCall,
)
from holdfast.core.fold import evolve
from holdfast.core.history import call_id
from holdfast.core.limits import Settings, StopReason, Usage
from holdfast.core.machine import replay
from holdfast.core.messages import ToolMessage
from holdfast.core.state import NEW, State
from holdfast.core.tools import ToolSpec
from holdfast.journal.base import Journal, Stored
from holdfast.journal.exchange import BadFile

VERSION = 1
CANCELLED = "operation cancelled by user"
"""What buddy says for a call that has no result."""
ENDED = "(The imported session has no answer here.)"
SMALLEST_WINDOW = 2_048


@dataclass(frozen=True, slots=True)
class Carried:
    content: str
    """The session's new id, or the text of the file."""
    left_out: tuple[str, ...] = ()


# --- out ------------------------------------------------------------------------------------


@dataclass
class Messages:
    """Buddy's messages, made while a log is folded."""

    made: list[dict[str, Any]] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    """Calls that have no result yet."""
    results: dict[str, str] = field(default_factory=dict)
    tracker: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def saw(self, event: Event, state: State) -> None:
        match event:
            case UserSpoke(text, settings=settings):
                if settings and settings.system and not self.made:
                    self.made.append({"role": "system", "content": settings.system})
                if settings:
                    self.tracker["context_limit"] = settings.budget.window
                self.answer_all(state)
                self.made.append({"role": "user", "content": text})
            case ModelReplied():
                self.replied(event, state)
            case ToolFinished(called, _, text, attached=attached):
                self.results.setdefault(called, text)
                if attached:
                    self.left_out["images and files that tools returned"] = None
            case RunStopped(_, text):
                self.answer_all(state)
                if self.made and self.made[-1].get("content") != text:
                    self.made.append({"role": "assistant", "content": text})
            case _:
                self.left_out["what the harness noted: nudges, evictions, decisions, times"] = None

    def replied(self, event: ModelReplied, state: State) -> None:
        self.answer_all(state)
        run = state.run
        calls = run.open if run and event.reply.calls else ()
        if event.reply.reasoning:
            self.left_out["the model's reasoning"] = None
        message: dict[str, Any] = {"role": "assistant", "content": event.reply.text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": each.call.id,
                    "type": "function",
                    "function": {"name": each.call.name, "arguments": each.call.arguments},
                }
                for each in calls
            ]
        if calls or event.reply.text:
            self.made.append(message)
        self.pending = [each.call.id for each in calls]
        self.count(event.usage or Usage())

    def count(self, usage: Usage) -> None:
        for name, tokens in (("prompt", usage.prompt), ("completion", usage.completion)):
            total = f"total_{name}_tokens"
            self.tracker[total] = self.tracker.get(total, 0) + tokens
            self.tracker[f"last_{name}_tokens"] = tokens

    def answer_all(self, state: State) -> None:
        """The results of the round, in the order of its calls."""
        if not self.pending:
            return
        shown = {
            entry.message.call_id: entry.message.text
            for entry in state.history.body
            if isinstance(entry.message, ToolMessage)
        }
        for called in self.pending:
            text = self.results.get(called, shown.get(called, CANCELLED))
            self.made.append({"role": "tool", "tool_call_id": called, "content": text})
        self.pending = []


async def exported(journal: Journal, session: str) -> Carried:
    about = await journal.about(session)
    stored = await journal.read(session)
    messages = folded(stored)
    document = {
        "version": VERSION,
        "id": session,
        "updated_at_millis": int(about.changed * 1000),
        "state": {"messages": messages.made, "tracker": messages.tracker},
    }
    return Carried(json.dumps(document, indent=2), tuple(messages.left_out))


def folded(stored: list[Stored]) -> Messages:
    state, messages = NEW, Messages()
    for each in stored:
        state = evolve(state, each.event)
        messages.saw(each.event, state)
    messages.answer_all(state)
    return messages


# --- in -------------------------------------------------------------------------------------

KNOWN = {"role", "content", "tool_calls", "tool_call_id", "name"}


async def imported(journal: Journal, text: str, *, folder: str = "") -> Carried:
    """A new session with what a file of buddy's holds; `BadFile` if it is none."""
    document = checked(text)
    making = Log(document["state"], at=document.get("updated_at_millis", 0) / 1000)
    log = list(making.events())
    try:
        state = replay(log)
    except Exception as wrong:
        raise BadFile(f"the messages of the file cannot follow each other: {wrong}") from None
    book = await journal.create(folder=folder)
    book.append(log, state)
    await book.close()
    return Carried(book.id, tuple(making.left_out))


def checked(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadFile(f"the file is no JSON: {wrong}") from None
    state = document.get("state") if type(document) is dict else None
    messages = state.get("messages") if type(state) is dict else None
    if type(messages) is not list:
        raise BadFile("the file is no session of buddy's: it has no state with messages.")
    if document.get("version") != VERSION:
        raise BadFile(f"the file has version {document.get('version')!r}; only 1 is known.")
    if type(document.get("updated_at_millis", 0)) not in (int, float):
        raise BadFile("updated_at_millis must be a number.")
    for number, message in enumerate(messages, 1):
        if type(message) is not dict or type(message.get("role")) is not str:
            raise BadFile(f"message {number} has no role.")
    return dict(document)


class Log:
    """Makes the events that buddy's messages tell of."""

    def __init__(self, state: dict[str, Any], at: float) -> None:
        self.messages: list[dict[str, Any]] = state["messages"]
        self.left_out: dict[str, None] = {}
        self.at = at
        tracker = state.get("tracker")
        limit = tracker.get("context_limit") if type(tracker) is dict else None
        self.window = max(SMALLEST_WINDOW, limit) if type(limit) is int else 0
        self.asks = self.calls = 0
        self.running = False
        self.results = {
            message.get("tool_call_id"): unwrapped(self.words(message))
            for message in self.messages
            if message["role"] == "tool"
        }

    def events(self) -> Iterator[Event]:
        for number, message in enumerate(self.messages):
            if message.keys() - KNOWN:
                self.left_out["fields of messages that only buddy knows"] = None
            match message["role"]:
                case "user":
                    yield from self.ended(ENDED)
                    yield self.begun(self.words(message))
                case "assistant":
                    yield from self.replied(message)
                case "system" if number > 0:
                    yield Pinned("from buddy", self.words(message), self.at)
        yield from self.ended(ENDED)

    def begun(self, text: str) -> UserSpoke:
        self.running = True
        return UserSpoke(text, self.at, self.settings())

    def ended(self, text: str) -> Iterator[Event]:
        if self.running:
            self.running = False
            yield RunStopped(StopReason.CANCELLED, text)

    def settings(self) -> Settings:
        first = self.messages[0]
        system = self.words(first) if first["role"] == "system" else ""
        names = {call.name for message in self.messages for call in self.wanted(message)}
        tools = tuple(ToolSpec(name=name) for name in sorted(names))
        if self.window:
            return Settings.for_window(self.window, system=system, tools=tools)
        return Settings(system=system, tools=tools)

    def replied(self, message: dict[str, Any]) -> Iterator[Event]:
        if not self.running:
            yield self.begun("(The imported session begins without a message of the user.)")
        self.asks += 1
        text, wanted = self.words(message), self.wanted(message)
        yield ModelAsked(self.asks, Purpose.WORK, 0)
        yield ModelReplied(self.asks, Reply(text=text, calls=wanted), self.at)
        if not wanted:
            self.running = False
            yield RunStopped(StopReason.ANSWERED, text or ENDED)
            return
        ids = tuple(call_id(self.calls + number) for number in range(1, len(wanted) + 1))
        self.calls += len(wanted)
        yield CallsAdmitted(ids)
        for ours, call in zip(ids, wanted, strict=True):
            yield ToolStarted(ours, self.at)
            said = self.results.get(call.id, CANCELLED)
            yield ToolFinished(ours, outcome_of(said), said, self.at)

    def wanted(self, message: dict[str, Any]) -> tuple[WantedCall, ...]:
        calls = message.get("tool_calls") or ()
        if message["role"] != "assistant" or type(calls) is not list:
            return ()
        return tuple(self.call(each) for each in calls)

    def call(self, call: Any) -> WantedCall:
        function = call.get("function") if type(call) is dict else None
        if type(function) is not dict or type(function.get("name")) is not str:
            raise BadFile("a tool call of the file has no function with a name.")
        arguments = function.get("arguments", "{}")
        text = arguments if type(arguments) is str else json.dumps(arguments)
        return WantedCall(function["name"], text, str(call.get("id", "")))

    def words(self, message: dict[str, Any]) -> str:
        content = message.get("content")
        if type(content) is list:
            self.left_out["parts of messages that are no text"] = None
            parts = [part.get("text") for part in content if type(part) is dict]
            return "\n".join(part for part in parts if type(part) is str)
        return content if type(content) is str else ""


def unwrapped(text: str) -> str:
    """Newer files wrap each result in an object with its time."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if type(value) is not dict or "harness_timestamp" not in value or "result" not in value:
        return text
    result = value["result"]
    return result if type(result) is str else json.dumps(result)


def outcome_of(text: str) -> Outcome:
    if text == CANCELLED:
        return Outcome.CANCELLED
    return Outcome.FAILED if text.startswith("Tool error:") else Outcome.DONE
