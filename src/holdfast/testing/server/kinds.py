"""The kinds of server, and all in which they differ, as a table.

What stands here was seen on real servers or in their sources. How a kind says that a request is
too long is in `overflow`, what it tells of itself in `probes`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from holdfast.testing.server.asked import Api, ApiName
from holdfast.testing.server.draft import Style
from holdfast.testing.server.http import Answer, Framing, Step
from holdfast.testing.server.json import encoded

PLAIN_JSON, UTF8_JSON = "application/json", "application/json; charset=utf-8"
PLAIN_EVENTS, UTF8_EVENTS = "text/event-stream", "text/event-stream; charset=utf-8"
LINES = "application/x-ndjson"


class Kind(Enum):
    OPENAI = "openai"
    LLAMA_CPP = "llama.cpp"
    LLAMA_CPP_PYTHON = "llama-cpp-python"
    OLLAMA = "ollama"
    LM_STUDIO = "lm-studio"
    VLLM = "vllm"
    ANTHROPIC = "anthropic"
    LLAMAFILE = "llamafile"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        known = ", ".join(kind.value for kind in cls)
        raise ValueError(f"There is no kind {value!r} of server. There are: {known}.")


class Stranger(Enum):
    """What becomes of a request for a model that is not served."""

    REFUSED = "refused"
    SERVED = "served"
    """By the model that is there, and under its name."""
    ECHOED = "echoed"
    """By the model that is there, under the name that was asked for."""


@dataclass(frozen=True, slots=True)
class Problem:
    status: int
    message: str
    type: str
    code: object = None
    param: str | None = None
    more: tuple[tuple[str, object], ...] = ()


# --- the shapes of an error ----------------------------------------------------------------------


def as_openai(problem: Problem) -> object:
    return {
        "error": {
            "message": problem.message,
            "type": problem.type,
            "param": problem.param,
            "code": problem.code,
        }
    }


def as_llama_cpp(problem: Problem) -> object:
    said = {"code": problem.status, "message": problem.message, "type": problem.type}
    return {"error": {**said, **dict(problem.more)}}


def as_vllm(problem: Problem) -> object:
    said = {"message": problem.message, "type": problem.type, "param": problem.param}
    return {"error": {**said, "code": problem.status}}


def as_words(problem: Problem) -> object:
    return {"error": problem.message}


def as_anthropic(problem: Problem) -> object:
    return {"type": "error", "error": {"type": problem.type, "message": problem.message}}


TYPES: Mapping[Callable[[Problem], object], Mapping[int, str]] = {
    as_openai: {429: "rate_limit_error", 500: "server_error", 503: "server_error"},
    as_llama_cpp: {
        401: "authentication_error",
        404: "not_found_error",
        500: "server_error",
        503: "unavailable_error",
    },
    as_vllm: {400: "BadRequestError", 404: "NotFoundError", 500: "InternalServerError"},
    as_words: {},
    as_anthropic: {
        401: "authentication_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        503: "overloaded_error",
        529: "overloaded_error",
    },
}
"""What a shape calls an error of this status; the others are all `invalid_request_error`."""


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    error: Callable[[Problem], object]
    json: str = UTF8_JSON
    """The content type of a document."""
    events: str = PLAIN_EVENTS
    """The content type of a stream of events."""
    style: Style = Style(opening={"role": "assistant", "content": ""})
    strangers: Stranger = Stranger.REFUSED
    stranger: str = "The model `{model}` does not exist."
    wrong_key: str = "Incorrect API key provided."
    not_found: str = "Not Found"
    reads_history: bool = False
    """Parses the arguments in the history, and fails with a 500 if it cannot."""
    cuts_in_silence: bool = False
    """In OpenAI's API, which has no word for it, a request that is too long loses its front."""
    refuses_tools: bool = False
    """If its model cannot use them; the others leave them out in silence."""
    refuses_unknown_fields: bool = False


TRAITS: Mapping[Kind, Traits] = {
    Kind.OPENAI: Traits(
        error=as_openai,
        json=PLAIN_JSON,
        events=UTF8_EVENTS,
        style=Style(
            opening={"role": "assistant", "content": "", "refusal": None},
            extra={"service_tier": "default", "system_fingerprint": None},
        ),
        stranger="The model `{model}` does not exist or you do not have access to it.",
        refuses_unknown_fields=True,
    ),
    Kind.LLAMA_CPP: Traits(
        error=as_llama_cpp,
        style=Style(
            opening={"role": "assistant", "content": None},
            extra={"system_fingerprint": "b1-571d0d5"},
        ),
        strangers=Stranger.SERVED,
        wrong_key="Invalid API Key",
        not_found="File Not Found",
        reads_history=True,
    ),
    Kind.LLAMA_CPP_PYTHON: Traits(
        error=as_openai,
        json=PLAIN_JSON,
        events=UTF8_EVENTS,
        style=Style(opening={"role": "assistant"}, spaced=True, counts_streams=False),
        strangers=Stranger.ECHOED,
        wrong_key="Invalid API key",
    ),
    Kind.OLLAMA: Traits(
        error=as_openai,
        stranger="model '{model}' not found",
        not_found="404 page not found",
        cuts_in_silence=True,
        refuses_tools=True,
    ),
    Kind.LM_STUDIO: Traits(
        error=as_words,
        stranger="Model not found: '{model}'. Load it first, or turn on just-in-time loading.",
        wrong_key="Invalid API token",
        not_found="Unexpected endpoint or method. ({path})",
    ),
    Kind.VLLM: Traits(
        error=as_vllm,
        json=PLAIN_JSON,
        events=UTF8_EVENTS,
        wrong_key="Unauthorized",
    ),
    Kind.ANTHROPIC: Traits(
        error=as_anthropic,
        json=PLAIN_JSON,
        events=UTF8_EVENTS,
        stranger="model: {model}",
        wrong_key="invalid x-api-key",
        refuses_unknown_fields=True,
    ),
    Kind.LLAMAFILE: Traits(
        error=as_llama_cpp,
        style=Style(says_done=False, counts_streams=False, fresh_ids=True, leak="</s>"),
        strangers=Stranger.ECHOED,
        wrong_key="Invalid API Key",
        not_found="File Not Found",
    ),
}

OWN_SHAPES = {ApiName.OLLAMA: as_words, ApiName.ANTHROPIC: as_anthropic}
"""The shape that belongs to an API, whoever speaks it."""


def refused(
    kind: Kind,
    status: int,
    message: str,
    *,
    api: Api | None = None,
    headers: Mapping[str, str] | None = None,
    named: str = "",
    code: object = None,
    param: str | None = None,
    **more: object,
) -> Answer:
    """An error in the shape of this kind; `named` is its type, where the status does not tell."""
    shape = TRAITS[kind].error
    if api:
        shape = OWN_SHAPES.get(api.name, shape)
    type_ = named or TYPES[shape].get(status, "invalid_request_error")
    problem = Problem(status, message, type_, code, param, tuple(more.items()))
    return document(kind, shape(problem), status=status, headers=headers)


def document(
    kind: Kind, content: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """JSON, as this kind sends it."""
    given = {"Content-Type": TRAITS[kind].json, **(headers or {})}
    return Answer(status, given, (encoded(content),))


def stream(kind: Kind, api: Api, steps: tuple[Step, ...]) -> Answer:
    media = LINES if api.name is ApiName.OLLAMA else TRAITS[kind].events
    headers = {"Content-Type": media, "Cache-Control": "no-cache"}
    return Answer(200, headers, steps, Framing.CHUNKED)
