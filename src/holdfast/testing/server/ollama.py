"""Ollama's own `/api/chat`: the arguments of a call are an object, a stream is a line each."""

from collections.abc import Iterator, Mapping

from holdfast.testing.server.asked import Api, ApiName, Asked, object_in, objects_in
from holdfast.testing.server.draft import Call, Content, Draft, Ending, deltas
from holdfast.testing.server.json import encoded, unwrapped
from holdfast.testing.server.openai import content, spoken, tool

CREATED = "2027-01-15T08:00:00Z"
ENDINGS = {Ending.LENGTH: "length"}
"""All the others are `stop`, also the one for calls."""
THINKING = "thinking"


def read(body: Mapping[str, object]) -> Asked:
    options = object_in(body.get("options"))
    window = options.get("num_ctx")
    return Asked(
        api=OLLAMA,
        body=body,
        model=str(body.get("model", "")),
        stream=body.get("stream") is not False,
        messages=tuple(
            spoken(f"message {place}", message)
            for place, message in enumerate(objects_in(body.get("messages")), start=1)
        ),
        tools=tuple(tool(each) for each in objects_in(body.get("tools"))),
        output=options.get("num_predict"),
        window=window if isinstance(window, int) and window > 0 else None,
        truncates=body.get("truncate") is not False,
        shifts=body.get("shift") is not False,
    )


def whole(draft: Draft) -> object:
    if draft.error:
        return {"error": draft.error}
    message: dict[str, object] = {"role": "assistant", "content": content(draft)}
    if draft.thought:
        message[THINKING] = draft.thought
    if draft.calls:
        message["tool_calls"] = [called(call, place) for place, call in enumerate(draft.calls)]
    return ended(draft, message)


def pieces(draft: Draft) -> Iterator[bytes]:
    for document in documents(draft):
        yield encoded(document) + b"\n"


def documents(draft: Draft) -> Iterator[object]:
    if draft.has_choice:
        for text in deltas(draft.thought):
            yield line(draft, {"role": "assistant", "content": "", THINKING: text})
        if draft.content is Content.PARTS:
            yield line(draft, {"role": "assistant", "content": content(draft)})
        else:
            for text in deltas(draft.text):
                part = text if draft.content is Content.TEXT else None
                yield line(draft, {"role": "assistant", "content": part})
        for place, call in enumerate(draft.calls):
            calls = [called(call, place)]
            yield line(draft, {"role": "assistant", "content": "", "tool_calls": calls})
    if draft.error:
        yield {"error": draft.error}
    elif draft.ends:
        yield ended(draft, {"role": "assistant", "content": ""})


def line(draft: Draft, message: Mapping[str, object]) -> dict[str, object]:
    said = {"message": message} if draft.has_choice else {}
    return {"model": draft.model, "created_at": CREATED, **said, "done": False}


def ended(draft: Draft, message: Mapping[str, object]) -> dict[str, object]:
    """The last line, or the only one."""
    why = {"done_reason": ENDINGS.get(draft.ending, "stop")} if draft.ending else {}
    took = {"total_duration": 5_000_000, "load_duration": 1_000_000}
    document = {**line(draft, message), "done": True, **why, **took}
    if draft.usage:
        document["prompt_eval_count"] = draft.usage.prompt
        document["eval_count"] = draft.usage.completion
    return document


def called(call: Call, place: int) -> dict[str, object]:
    id_ = {} if call.id is None else {"id": call.id}
    function = {"index": place, "name": call.name, "arguments": unwrapped(call.arguments)}
    return {**id_, "function": function}


OLLAMA = Api(ApiName.OLLAMA, read, whole, pieces)
