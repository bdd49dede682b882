"""What servers refuse by themselves, whatever their model would say: in the words of each kind."""

import json

from holdfast.testing.server.asked import Api, Asked
from holdfast.testing.server.http import Answer
from holdfast.testing.server.kinds import TRAITS, Kind, refused


def loading(kind: Kind) -> Answer:
    return refused(kind, 503, "Loading model")


def wrong_key(kind: Kind, api: Api | None) -> Answer:
    code = "invalid_api_key" if kind is Kind.OPENAI else None
    return refused(kind, 401, TRAITS[kind].wrong_key, api=api, code=code)


def unknown_model(kind: Kind, asked: Asked) -> Answer:
    words = TRAITS[kind].stranger.format(model=asked.model)
    return refused(kind, 404, words, api=asked.api, code="model_not_found", param="model")


def no_tools(kind: Kind, asked: Asked) -> Answer:
    return refused(kind, 400, f"{asked.model} does not support tools", api=asked.api)


def bad_history(kind: Kind, asked: Asked) -> Answer | None:
    """What llama.cpp says when a call in the history has arguments that are not JSON."""
    for message in asked.messages:
        for call in message.calls:
            if isinstance(call.arguments, str) and (wrong := error_in(call.arguments)):
                return unreadable(kind, asked, wrong)
    return None


def unreadable(kind: Kind, asked: Asked, wrong: str) -> Answer:
    words = f"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] {wrong}"
    return refused(kind, 500, words, api=asked.api)


def error_in(text: str) -> str:
    if not text:
        return (
            "parse error at line 1, column 1: attempting to parse an empty input; check that "
            "your input string or stream contains the expected JSON"
        )
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"parse error at line {error.lineno}, column {error.colno}: syntax error"
    except RecursionError:
        return "parse error: nested too deeply"
    return ""
