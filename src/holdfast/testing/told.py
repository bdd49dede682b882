"""A log as people read it: one line an event, so that a test shows the conversation itself."""

from collections.abc import Iterable
from typing import assert_never

from holdfast.core.events import (
    CallsAdmitted,
    CancelAsked,
    Charged,
    Decided,
    EndDecided,
    Event,
    Evicted,
    FileKept,
    FilesRestored,
    FollowedUp,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Nudged,
    Pinned,
    Reopened,
    RunStopped,
    Steered,
    Summarised,
    TaskCut,
    TimeRanOut,
    ToolDropped,
    ToolFinished,
    ToolsChanged,
    ToolsFound,
    ToolStarted,
    UserSpoke,
    Waited,
    Warned,
)
from holdfast.core.messages import clean


def told(events: Iterable[Event], width: int = 100) -> list[str]:
    """One line for each event that a reader of the conversation wants to see."""
    return [shortened(line, width) for event in events if (line := line_of(event))]


def shortened(line: str, width: int) -> str:
    line = " ".join(clean(line).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def line_of(event: Event) -> str:
    match event:
        case UserSpoke(text):
            return f"user: {text}"
        case ModelReplied(_, reply, by=by, notes=notes):
            calls = ", ".join(f"{call.name}({call.arguments})" for call in reply.calls)
            said = " ".join(part for part in (reply.text, calls) if part) or "(nothing)"
            finish = f" [{reply.finish.value}]" if reply.finish.value != "stop" else ""
            noted = f" ({'; '.join(notes)})" if notes else ""
            return f"{by or 'model'}: {said}{finish}{noted}"
        case ModelFailed(_, failure, detail):
            return f"model failed: {failure.value}: {detail}"
        case ToolFinished(call_id, outcome, text):
            plain = outcome.value == "done" or text.lower().startswith(outcome.value)
            return f"{call_id}: {text}" if plain else f"{call_id}: {outcome.value}: {text}"
        case Decided(call_id, verdict, by=by, arguments=changed, words=words):
            edited = f" as {changed}" if changed else ""
            return f"{call_id}: {verdict.value} by {by}{edited}{': ' if words else ''}{words}"
        case FileKept(call_id, path):
            return f"{call_id}: kept {path}"
        case FilesRestored(paths):
            return f"restored: {', '.join(paths)}"
        case Charged(call_id, usage):
            return f"{call_id}: charged {usage.prompt + usage.completion} tokens"
        case ModelAsked(_, purpose):
            return f"asked: {purpose.value}" if purpose.value != "work" else ""
        case Nudged(why, text):
            return f"nudged, {why.value}: {text}"
        case ToolDropped(tool):
            return f"tool dropped: {tool}"
        case Warned(about, text):
            return f"warned, {about.value}: {text}"
        case TaskCut(to):
            return f"task cut to {to}"
        case Evicted(fading, dropped, shelved):
            return f"evicted: {len(fading)} faded, {dropped} dropped, {len(shelved)} shelved"
        case Summarised(text):
            return f"summarised: {text}"
        case Pinned(key, text):
            return f"pinned, {key}: {text}"
        case ToolsChanged(tools):
            return f"tools: {', '.join(tool.name for tool in tools)}"
        case ToolsFound(names):
            return f"found: {', '.join(names)}"
        case EndDecided(reason, detail):
            return f"ending: {reason.value}: {detail}"
        case RunStopped(reason, text):
            return f"stopped, {reason.value}: {text}"
        case CancelAsked():
            return "cancel"
        case TimeRanOut():
            return "time ran out"
        case Reopened():
            return "reopened"
        case Steered():
            return "steered"
        case FollowedUp():
            return "followed up"
        case CallsAdmitted() | ToolStarted() | Waited():
            return ""
        case _:
            assert_never(event)
