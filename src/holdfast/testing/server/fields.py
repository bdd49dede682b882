"""The fields of a request, API by API: those that must be there, and of what type they are."""

from collections.abc import Iterator, Mapping

from holdfast.testing.server.asked import ApiName, Asked, object_in
from holdfast.testing.server.kinds import TRAITS, Kind

Types = type | tuple[type, ...]

NUMBER = (int, float)
OPENAI: Mapping[str, Types] = {
    "frequency_penalty": NUMBER,
    "logit_bias": dict,
    "logprobs": bool,
    "max_completion_tokens": int,
    "max_tokens": int,
    "messages": list,
    "metadata": dict,
    "model": str,
    "n": int,
    "parallel_tool_calls": bool,
    "presence_penalty": NUMBER,
    "prompt_cache_key": str,
    "reasoning_effort": str,
    "response_format": dict,
    "safety_identifier": str,
    "seed": int,
    "service_tier": str,
    "stop": (str, list),
    "store": bool,
    "stream": bool,
    "stream_options": dict,
    "temperature": NUMBER,
    "tool_choice": (str, dict),
    "tools": list,
    "top_logprobs": int,
    "top_p": NUMBER,
    "user": str,
    "verbosity": str,
}
ANTHROPIC: Mapping[str, Types] = {
    "max_tokens": int,
    "messages": list,
    "metadata": dict,
    "model": str,
    "service_tier": str,
    "stop_sequences": list,
    "stream": bool,
    "system": (str, list),
    "temperature": NUMBER,
    "thinking": dict,
    "tool_choice": dict,
    "tools": list,
    "top_k": int,
    "top_p": NUMBER,
}
OLLAMA: Mapping[str, Types] = {
    "format": (str, dict),
    "keep_alive": (str, int),
    "messages": list,
    "model": str,
    "options": dict,
    "shift": bool,
    "stream": bool,
    "think": (bool, str),
    "tools": list,
    "truncate": bool,
}
FIELDS = {ApiName.OPENAI: OPENAI, ApiName.ANTHROPIC: ANTHROPIC, ApiName.OLLAMA: OLLAMA}
REQUIRED = ("model", "messages")


def field_complaints(kind: Kind, asked: Asked) -> Iterator[str]:
    known = FIELDS[asked.api.name]
    for name in REQUIRED:
        if not asked.body.get(name):
            yield f"The field {name} is missing or empty."
    for name, value in asked.body.items():
        if name not in known:
            if TRAITS[kind].refuses_unknown_fields:
                yield f"There is no field {name} in the API of this server."
        elif not is_of(value, known[name]):
            yield f"The field {name} must not be {type_of(value)}."
    if "stream_options" in asked.body and not asked.stream:
        yield "There are stream_options, and no stream is asked for."
    messages = asked.body.get("messages")
    for place, message in enumerate(messages if isinstance(messages, list) else (), start=1):
        yield from about_message(asked.api.name, f"message {place}", message)
    tools = asked.body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        yield from about_tool(asked.api.name, tool)


def about_message(api: ApiName, place: str, message: object) -> Iterator[str]:
    if not isinstance(message, dict):
        yield f"{place.capitalize()} is {type_of(message)}, and not an object."
        return
    content = message.get("content")
    if "content" in message and content is None:
        yield f'The content of {place} is null, which some servers refuse: send "".'
    elif content is None and not message.get("tool_calls"):
        yield f"There is no content in {place}."
    elif not isinstance(content, str | list | None):
        yield f"The content of {place} must not be {type_of(content)}."
    for part in content if isinstance(content, list) else ():
        if not isinstance(object_in(part).get("type"), str):
            yield f"A part of the content of {place} has no type."
        elif api is ApiName.ANTHROPIC and object_in(part) == {"type": "text", "text": ""}:
            yield f"A text in {place} is empty, which Anthropic refuses."
    if "tool_calls" in message:
        yield from about_calls(api, place, message["tool_calls"])
    if message.get("role") == "tool" and api is ApiName.OPENAI:
        if not isinstance(message.get("tool_call_id"), str):
            yield f"The result in {place} has no tool_call_id."


def about_calls(api: ApiName, place: str, calls: object) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield f"The tool_calls of {place} must be a list with calls in it, or be left out."
        return
    wanted: Types = str if api is ApiName.OPENAI else dict
    for call in calls:
        function = object_in(object_in(call).get("function"))
        if api is ApiName.OPENAI and object_in(call).get("type") != "function":
            yield f"A call in {place} is not of the type function."
        if not isinstance(arguments := function.get("arguments"), wanted):
            yield f"The arguments of a call in {place} must not be {type_of(arguments)}."


def about_tool(api: ApiName, tool: object) -> Iterator[str]:
    if api is ApiName.ANTHROPIC:
        return
    fields = object_in(tool)
    if fields.get("type") != "function" or not isinstance(fields.get("function"), dict):
        yield "A tool is not of the type function, with a function in it."
    elif not isinstance(object_in(fields["function"]).get("description", ""), str):
        yield "The description of a tool is not a text."


def is_of(value: object, types: Types) -> bool:
    """`True` is no number here, although it is one in Python."""
    if isinstance(value, bool):
        return types is bool or isinstance(types, tuple) and bool in types
    return isinstance(value, types)


def type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
