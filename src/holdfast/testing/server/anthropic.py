"""Anthropic's `/v1/messages`: a message is a list of blocks, and results come from the user."""

from collections.abc import Iterator, Mapping

from holdfast.core.limits import Usage
from holdfast.testing.server.asked import (
    Api,
    ApiName,
    Asked,
    Made,
    Spoken,
    Tool,
    objects_in,
    text_in,
)
from holdfast.testing.server.draft import Call, Content, Draft, Ending, deltas
from holdfast.testing.server.json import encoded, unwrapped

ENDINGS = {
    Ending.STOP: "end_turn",
    Ending.CALLS: "tool_use",
    Ending.LENGTH: "max_tokens",
    Ending.REFUSED: "refusal",
}


def event(name: str, **fields: object) -> bytes:
    data = encoded({"type": name, **fields})
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


# --- asking --------------------------------------------------------------------------------------


def read(body: Mapping[str, object]) -> Asked:
    messages = [
        each
        for place, message in enumerate(objects_in(body.get("messages")), start=1)
        for each in spoken(f"message {place}", message)
    ]
    if system := text_in(body.get("system")):
        messages.insert(0, Spoken("the system prompt", "system", system))
    return Asked(
        api=ANTHROPIC,
        body=body,
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        messages=tuple(messages),
        tools=tuple(
            Tool(each.get("name"), each.get("input_schema"), each)
            for each in objects_in(body.get("tools"))
        ),
        output=body.get("max_tokens"),
    )


def spoken(place: str, message: Mapping[str, object]) -> Iterator[Spoken]:
    """The messages in one: each result is one of its own, as in the other APIs."""
    role, content = str(message.get("role", "")), message.get("content")
    calls: list[Made] = []
    text, shows = content if isinstance(content, str) else "", False
    for block in objects_in(content):
        match block.get("type"):
            case "tool_use":
                calls.append(Made(block.get("id"), block.get("name"), block.get("input")))
            case "tool_result":
                if text:
                    yield Spoken(place, role, text)
                    text = ""
                result = text_in(block.get("content"))
                yield Spoken(place, "tool", result, answers=block.get("tool_use_id"))
            case kind:
                text, shows = text + text_in([block]), shows or kind != "text"
    if text or calls or shows or not objects_in(content):
        yield Spoken(place, role, text, tuple(calls), shows=shows)


# --- answering -----------------------------------------------------------------------------------


def whole(draft: Draft) -> object:
    if draft.error:
        return {"type": "error", "error": {"type": "api_error", "message": draft.error}}
    return message(draft, list(blocks(draft)), ENDINGS.get(draft.ending) if draft.ending else None)


def message(draft: Draft, content: object, stop_reason: str | None) -> dict[str, object]:
    counted = {"usage": usage(draft.usage)} if draft.usage else {}
    return {
        "id": draft.id.replace("chatcmpl-", "msg_"),
        "type": "message",
        "role": "assistant",
        "model": draft.model,
        "content": None if draft.content is Content.NULL else content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        **counted,
    }


def blocks(draft: Draft) -> Iterator[dict[str, object]]:
    if not draft.has_choice:
        return
    if draft.thought:
        yield {"type": "thinking", "thinking": draft.thought, "signature": "c2lnbmVk"}
    if draft.text:
        yield {"type": "text", "text": draft.text}
    for call in draft.calls:
        yield tool_use(call, unwrapped(call.arguments))


def tool_use(call: Call, arguments: object) -> dict[str, object]:
    id_ = {} if call.id is None else {"id": call.id.replace("call_", "toolu_")}
    return {"type": "tool_use", **id_, "name": call.name, "input": arguments}


def pieces(draft: Draft) -> Iterator[bytes]:
    yield event("message_start", message=message(draft, [], None))
    yield event("ping")
    for index, block in enumerate(block_events(draft)):
        start, changes = block
        yield event("content_block_start", index=index, content_block=start)
        for change in changes:
            yield event("content_block_delta", index=index, delta=change)
        yield event("content_block_stop", index=index)
    if draft.error:
        yield event("error", error={"type": "api_error", "message": draft.error})
        return
    stop_reason = ENDINGS.get(draft.ending) if draft.ending else None
    counted = {"usage": {"output_tokens": draft.usage.completion}} if draft.usage else {}
    ending = {"stop_reason": stop_reason, "stop_sequence": None}
    yield event("message_delta", delta=ending, **counted)
    if draft.ends:
        yield event("message_stop")


def block_events(draft: Draft) -> Iterator[tuple[object, Iterator[object]]]:
    """Each block as it begins, and what is then added to it."""
    if not draft.has_choice:
        return
    if draft.thought:
        yield (
            {"type": "thinking", "thinking": "", "signature": ""},
            ({"type": "thinking_delta", "thinking": text} for text in deltas(draft.thought)),
        )
    if draft.text and draft.content is not Content.NULL:
        yield (
            {"type": "text", "text": ""},
            ({"type": "text_delta", "text": text} for text in deltas(draft.text)),
        )
    for call in draft.calls:
        if isinstance(call.arguments, str):
            yield (
                tool_use(call, {}),
                ({"type": "input_json_delta", "partial_json": each} for each in written(call)),
            )
        else:
            yield tool_use(call, call.arguments), iter(())


def written(call: Call) -> Iterator[str]:
    yield ""  # so it always begins
    yield from deltas(str(call.arguments))


def usage(usage: Usage) -> dict[str, object]:
    """What was read from the cache is not counted as input."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }


ANTHROPIC = Api(ApiName.ANTHROPIC, read, whole, pieces)
