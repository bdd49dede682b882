"""`/v1/chat/completions`: how it asks, and how it is answered, whole or as a stream of events."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.core.limits import Usage
from holdfast.testing.server.asked import (
    Api,
    ApiName,
    Asked,
    Made,
    Spoken,
    Tool,
    object_in,
    objects_in,
    text_in,
)
from holdfast.testing.server.draft import Call, Content, Draft, Ending, deltas
from holdfast.testing.server.json import encoded

CREATED = 1_800_000_000
"""The time of every answer. Real servers have a clock here; a test wants the same bytes again."""
ENDINGS = {
    Ending.STOP: "stop",
    Ending.CALLS: "tool_calls",
    Ending.LENGTH: "length",
    Ending.REFUSED: "content_filter",
}
DONE = b"data: [DONE]\n\n"


def event(document: object, *, spaced: bool = False) -> bytes:
    return b"data: %b\n\n" % encoded(document, spaced=spaced)


# --- asking --------------------------------------------------------------------------------------


def read(body: Mapping[str, object]) -> Asked:
    output = body.get("max_completion_tokens", body.get("max_tokens"))
    options = object_in(body.get("stream_options"))
    return Asked(
        api=OPENAI,
        body=body,
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        messages=tuple(
            spoken(f"message {place}", message)
            for place, message in enumerate(objects_in(body.get("messages")), start=1)
        ),
        tools=tuple(tool(each) for each in objects_in(body.get("tools"))),
        output=output,
        wants_usage=options.get("include_usage") is True,
    )


def spoken(place: str, message: Mapping[str, object]) -> Spoken:
    calls = objects_in(message.get("tool_calls"))
    return Spoken(
        place,
        str(message.get("role", "")),
        text_in(message.get("content")),
        tuple(made(call) for call in calls),
        message.get("tool_call_id"),
        any(part.get("type") != "text" for part in objects_in(message.get("content"))),
    )


def made(call: Mapping[str, object]) -> Made:
    function = object_in(call.get("function"))
    return Made(call.get("id"), function.get("name"), function.get("arguments"))


def tool(definition: Mapping[str, object]) -> Tool:
    function = object_in(definition.get("function"))
    return Tool(function.get("name"), function.get("parameters"), definition)


# --- answering -----------------------------------------------------------------------------------


def whole(draft: Draft) -> object:
    message: dict[str, object] = {"role": "assistant", "content": content(draft)}
    if draft.thought:
        message[draft.thought_field] = draft.thought
    if draft.calls:
        message["tool_calls"] = [call_of(call) for call in draft.calls]
    choice = {"index": 0, "message": message, "finish_reason": ending(draft)}
    document = {
        "id": draft.id,
        "object": "chat.completion",
        "created": CREATED,
        "model": draft.model,
        "choices": [choice] if draft.has_choice else [],
        **draft.style.extra,
    }
    if draft.error:
        return {"error": error_of(draft.error)}
    return {**document, **({"usage": counted(draft.usage)} if draft.usage else {})}


def pieces(draft: Draft) -> Iterator[bytes]:
    for place, document in enumerate(documents(draft)):
        fresh = {"id": f"{draft.id}-{place}"} if draft.style.fresh_ids else {}
        yield event({**document, **fresh}, spaced=draft.style.spaced)
    if draft.error:
        yield event({"error": error_of(draft.error)})
    elif draft.ends and draft.style.says_done:
        yield DONE


def documents(draft: Draft) -> Iterator[dict[str, object]]:
    if draft.style.opening is not None:
        yield chunk(draft, draft.style.opening)
    if draft.has_choice:
        yield from (chunk(draft, {draft.thought_field: text}) for text in deltas(draft.thought))
        if draft.content is Content.TEXT:
            yield from (chunk(draft, {"content": text}) for text in deltas(draft.text))
        elif draft.content is Content.PARTS:
            yield chunk(draft, {"content": content(draft)})
        for place, call in enumerate(draft.calls):
            yield from (chunk(draft, {"tool_calls": [part]}) for part in parts_of(call, place))
    if draft.error:
        return
    yield chunk(draft, {}, ending(draft))
    if draft.usage and draft.style.counts_streams:
        yield {**chunk(replace(draft, has_choice=False), {}), "usage": counted(draft.usage)}


def chunk(
    draft: Draft, delta: Mapping[str, object], finish_reason: str | None = None
) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": draft.id,
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": draft.model,
        "choices": [choice] if draft.has_choice else [],
        **draft.style.extra,
    }


def parts_of(call: Call, place: int) -> Iterator[dict[str, object]]:
    """A call as it is streamed: its id and name with the first of its arguments, then the rest."""
    written = call.arguments
    first, *rest = (*deltas(written),) or ("",) if isinstance(written, str) else (written,)
    yield {"index": place, **call_of(replace(call, arguments=first))}
    for each in rest:
        yield {"index": place, "function": {"arguments": each}}


def call_of(call: Call) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    written: dict[str, object] = {"id": call.id, "type": "function", "function": function}
    if call.id is None:
        del written["id"]
    return written


def content(draft: Draft) -> object:
    match draft.content:
        case Content.TEXT:
            return draft.text
        case Content.NULL:
            return None
        case Content.PARTS:
            return [{"type": "text", "text": part} for part in deltas(draft.text)]


def ending(draft: Draft) -> str | None:
    return ENDINGS[draft.ending] if draft.ending else None


def counted(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def error_of(message: str) -> dict[str, object]:
    return {"code": 500, "message": message, "type": "server_error"}


OPENAI = Api(ApiName.OPENAI, read, whole, pieces)
