"""The insides of envelopes: items, context, usage, each made of the states before and after.

`feed` says which envelope comes of which event; here is what stands in those that say more than
the event itself.
"""

from collections.abc import Iterator, Mapping

from holdfast.core.events import (
    Decided,
    Evicted,
    ModelFailed,
    ModelReplied,
    Outcome,
    Purpose,
    ToolFinished,
    Verdict,
    WantedCall,
)
from holdfast.core.history import OpenCall
from holdfast.core.jsontext import json_object
from holdfast.core.limits import Usage
from holdfast.core.messages import ToolMessage
from holdfast.core.state import State, Waiting, window_of
from holdfast.core.tokens import Size
from holdfast.core.tools import SideEffect
from holdfast.tools.door import Question

Item = dict[str, object]
Told = tuple[str, Mapping[str, object]]

# --- looking things up --------------------------------------------------------------------------


def waiting(state: State) -> Waiting | None:
    return state.run.waiting if state.run else None


def open_call(state: State, call_id: str) -> OpenCall | None:
    """The call, if it has not been answered."""
    calls = state.run.unanswered if state.run else ()
    return next((each for each in calls if each.call.id == call_id), None)


def shown_of(call_id: str, state: State) -> str:
    """What the model sees of a result that has just come: in the round, or in the history if it
    was the last of its round."""
    for each in state.run.open if state.run else ():
        if each.call.id == call_id and each.result is not None:
            return each.result.text
    body = state.history.body
    for place in range(len(body) - 1, -1, -1):
        message = body[place].message
        if isinstance(message, ToolMessage) and message.call_id == call_id:
            return message.text
    return ""


# --- runs and context ---------------------------------------------------------------------------


def beginning(text: str, state: State) -> Mapping[str, object]:
    run = state.run
    assert run is not None
    limits = run.settings.limits
    return {
        "input": text,
        "model": run.settings.model,
        "tools": [tool.name for tool in run.tools],
        "shelved": list(run.shelved),
        "window": window_of(state, run),
        "limits": {
            "steps": limits.rounds,
            "calls": limits.calls,
            "tokens": limits.tokens,
            "cost_usd": limits.cost / 1e6,
            "seconds": limits.seconds,
        },
    }


def context(state: State, tokens: int, source: str) -> Mapping[str, object]:
    """How full the window is, and with what. `source` says who counted `used`; the slices are
    estimates in any case."""
    run = state.run
    assert run is not None
    head, results = Size(), Size()
    for entry in state.history.head:
        head = head + entry.size
    for entry in state.history.body:
        if isinstance(entry.message, ToolMessage):
            results = results + entry.size
    sizes = {
        "system": run.system,
        "tools": run.fixed - run.system,
        "pinned": head,
        "history": state.history.size - head - results,
        "results": results,
    }
    budget = run.settings.budget
    slices = {name: state.gauge.weigh(size) for name, size in sizes.items()}
    slices["reserve"] = budget.output + budget.safety
    return {"used": tokens, "size": window_of(state, run), "source": source, "slices": slices}


def evicted(event: Evicted, before: State, after: State) -> Mapping[str, object]:
    return {
        "before": before.gauge.weigh(before.history.size),
        "after": after.gauge.weigh(after.history.size),
        "method": "summary" if after.history.summary else "mechanical",
        "kept": len(after.history.body),
        "dropped": event.dropped,
        "faded": [{"position": each.position, "to": each.to} for each in event.fading],
        "shelved": list(event.shelved),
    }


# --- the model's words --------------------------------------------------------------------------


def message_kind(purpose: Purpose) -> str:
    return "summary" if purpose is Purpose.SUMMARISE else "agent_message"


def begun(item: str, kind: str) -> Item:
    return {"id": item, "type": kind, "status": "in_progress", "text": ""}


def void(item: str, kind: str) -> Item:
    """Nothing of it counts."""
    return {"id": item, "type": kind, "status": "void", "text": ""}


def replied(
    event: ModelReplied, before: State, after: State, kinds: Mapping[str, str]
) -> Iterator[Told]:
    asked, run, reply = waiting(before), after.run, event.reply
    if asked is None or run is None or asked.ask != event.ask:
        yield late(f"Request {event.ask} was answered when nobody waited for it.", reply.text)
        return
    if reply.reasoning:
        thought: Item = {"id": f"r{event.ask}", "type": "reasoning", "status": "completed"}
        yield "item.completed", {"item": thought | {"text": reply.reasoning}}
    if reply.text:
        kind = message_kind(asked.purpose)
        said: Item = {"id": f"m{event.ask}", "type": kind, "status": "completed"}
        yield "item.completed", {"item": said | {"text": reply.text}}
    yield (
        "step.completed",
        {
            "step": event.ask,
            "finish": reply.finish.value,
            "model": event.by or run.settings.model,
            "fallback": bool(event.by),
            "usage": used(event.usage) if event.usage else None,
            "notes": list(event.notes),
            "problem": reply.problem,
            "not_taken": [wanted.name for wanted in reply.calls[len(run.open) :]],
        },
    )
    if event.usage:
        yield "context.updated", context(after, event.usage.prompt, "server")
    for each, wanted in zip(run.open, reply.calls, strict=False):
        yield "item.started", {"item": wished(each, wanted, kinds)}


def failed(event: ModelFailed, before: State) -> Told:
    asked = waiting(before)
    if asked is None or asked.ask != event.ask:
        return late(f"Request {event.ask} failed when nobody waited for it.", event.detail)
    return "step.failed", {
        "step": event.ask,
        "failure": event.failure.value,
        "detail": event.detail,
        "window": event.window,
        "tokens": event.tokens,
    }


def late(detail: str, text: str) -> Told:
    """It changes nothing any more, but it has happened."""
    return "warning", {"about": "late", "detail": detail, "text": text}


def used(usage: Usage) -> Mapping[str, object]:
    return {
        "input_tokens": usage.prompt,
        "output_tokens": usage.completion,
        "cache_read_input_tokens": usage.cached,
        "cost_usd": usage.cost / 1e6,
    }


# --- calls --------------------------------------------------------------------------------------


def called(each: OpenCall, kinds: Mapping[str, str]) -> Item:
    tool = each.tool
    reads = tool is not None and tool.effect is SideEffect.READ and not tool.mutates
    return {
        "id": each.call.id,
        "type": "tool_call",
        "name": each.call.name,
        "kind": kinds.get(each.call.name, "read" if reads else "other"),
        "arguments": json_object(each.call.arguments),
    }


def wished(each: OpenCall, wanted: WantedCall, kinds: Mapping[str, str]) -> Item:
    """A call that has not run yet; with what the model wrote, where that was read as another."""
    item = called(each, kinds) | {"status": "pending"}
    if each.problem or each.call.name != wanted.name:
        item["written"] = {"name": wanted.name, "arguments": wanted.arguments}
    return item


def finished(event: ToolFinished, before: State, after: State, kinds: Mapping[str, str]) -> Told:
    """A result: all of it, and beside it what the model is shown."""
    ended = {"outcome": event.outcome.value, "result": event.text, "attached": attached(event)}
    each = open_call(before, event.call_id)
    if each is not None:
        shown = shown_of(event.call_id, after)
        status = "completed" if event.outcome is Outcome.DONE else "failed"
        return "item.completed", {
            "item": called(each, kinds) | {"status": status} | ended | {"shown": shown}
        }
    if after.history is before.history:  # the fold took no notice of it: it came twice
        return late(f"The call {event.call_id} was answered again.", event.text)
    item = {"id": event.call_id, "type": "tool_call", **ended, "late": True}
    return "item.updated", {"item": item}


def attached(event: ToolFinished) -> list[Item]:
    return [{"media": one.media, "size": one.size, "blob": one.blob} for one in event.attached]


def question(asked: Question) -> Item:
    """What a person decides about, and how they can answer."""
    always = ["allow_session", "allow_always"] if asked.suggestion else []
    return {
        "id": asked.call.id,
        "name": asked.call.name,
        "arguments": json_object(asked.call.arguments),
        "access": asked.touch.access.value,
        "subjects": list(asked.touch.subjects),
        "danger": asked.touch.danger,
        "why": asked.why,
        "preview": asked.preview,
        "rule": asked.suggestion,
        "options": ["allow_once", *always, "reject_once"],
    }


def answered(event: Decided) -> str:
    """A verdict in the words of the options that were offered."""
    if event.verdict is Verdict.REFUSED:
        return "reject_once"
    return "allow_session" if event.grants else "allow_once"
