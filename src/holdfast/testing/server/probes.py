"""What a server tells of itself: its models, their windows, how it counts. No reply is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from holdfast.testing.server.anthropic import ANTHROPIC
from holdfast.testing.server.asked import object_in, text_in
from holdfast.testing.server.http import Answer
from holdfast.testing.server.kinds import TRAITS, Kind, document, refused
from holdfast.testing.server.openai import CREATED, OPENAI
from holdfast.testing.server.record import Received
from holdfast.testing.server.tokens import count, numbers

TRAINED = 131_072
"""The window every model here was trained for. Reading it for the one that is loaded is a
mistake clients make."""


@dataclass(frozen=True, slots=True)
class Self:
    kind: Kind
    model: str
    window: int
    tools: bool
    """Whether the model can use tools."""


Probe = Callable[[Self, Mapping[str, object]], object]


def probed(self: Self, received: Received) -> Answer:
    kinds, probe = PROBES.get((received.method, received.path), (frozenset(), None))
    if probe is None or self.kind not in kinds:
        words = TRAITS[self.kind].not_found.format(path=received.path)
        return refused(self.kind, 404, words)
    found = probe(self, object_in(received.body))
    return found if isinstance(found, Answer) else document(self.kind, found)


# --- every kind ----------------------------------------------------------------------------------


def models(self: Self, body: Mapping[str, object]) -> object:
    entry: dict[str, object] = {"id": self.model, "object": "model", "created": CREATED}
    match self.kind:
        case Kind.LLAMA_CPP:
            meta = {"vocab_type": 2, "n_ctx": self.window, "n_ctx_train": TRAINED}
            entry |= {"aliases": [self.model], "owned_by": "llamacpp", "meta": meta}
        case Kind.LLAMAFILE:
            entry |= {"owned_by": "llamacpp"}
        case Kind.LLAMA_CPP_PYTHON:
            entry = {"id": self.model, "object": "model", "owned_by": "me", "permissions": []}
        case Kind.VLLM:
            entry |= {"owned_by": "vllm", "root": self.model, "max_model_len": self.window}
        case Kind.ANTHROPIC:
            entry = {"type": "model", "id": self.model, "display_name": self.model}
            return {"data": [entry], "has_more": False, "first_id": self.model}
        case Kind.OLLAMA:
            entry |= {"owned_by": "library"}
        case Kind.LM_STUDIO:
            entry = {"id": self.model, "object": "model", "owned_by": "organization_owner"}
        case Kind.OPENAI:
            entry |= {"owned_by": "system"}
    return {"object": "list", "data": [entry]}


def health(self: Self, body: Mapping[str, object]) -> object:
    return {"status": "ok"}


# --- llama.cpp and vLLM -------------------------------------------------------------------------


def props(self: Self, body: Mapping[str, object]) -> object:
    return {
        "default_generation_settings": {"n_ctx": self.window, "params": {"n_predict": -1}},
        "total_slots": 1,
        "model_alias": self.model,
        "model_path": f"models/{self.model}.gguf",
        "chat_template": "{% for message in messages %}...{% endfor %}",
        "chat_template_caps": {
            "supports_tools": self.tools,
            "supports_tool_calls": self.tools,
            "supports_parallel_tool_calls": self.tools,
            "supports_system_role": True,
        },
        "modalities": {"vision": False, "audio": False},
        "build_info": "b1-571d0d5",
    }


def tokenize(self: Self, body: Mapping[str, object]) -> object:
    if self.kind is Kind.LLAMA_CPP:
        return {"tokens": numbers(text_in(body.get("content")))}
    text = text_in(body["prompt"]) if "prompt" in body else prompt_of(self, body)
    tokens = numbers(text)
    return {"count": len(tokens), "max_model_len": self.window, "tokens": tokens}


def apply_template(self: Self, body: Mapping[str, object]) -> object:
    return {"prompt": prompt_of(self, body)}


def input_tokens(self: Self, body: Mapping[str, object]) -> object:
    return {"object": "response.input_tokens", "input_tokens": count(prompt_of(self, body))}


def prompt_of(self: Self, body: Mapping[str, object]) -> str:
    asked = OPENAI.read(body)
    return (asked if self.tools else replace(asked, tools=())).prompt


def count_tokens(self: Self, body: Mapping[str, object]) -> object:
    return {"input_tokens": ANTHROPIC.read(body).tokens}


# --- Ollama --------------------------------------------------------------------------------------


DETAILS = {"format": "gguf", "family": "test", "parameter_size": "1B", "quantization_level": "Q4_0"}


def version(self: Self, body: Mapping[str, object]) -> object:
    return {"version": "0.12.6"}


def tags(self: Self, body: Mapping[str, object]) -> object:
    return {"models": [{"name": self.model, "model": self.model, "size": 1, "details": DETAILS}]}


def show(self: Self, body: Mapping[str, object]) -> object:
    if (asked := body.get("model", body.get("name"))) != self.model:
        words = TRAITS[self.kind].stranger.format(model=asked)
        return document(self.kind, {"error": words}, status=404)
    return {
        "details": DETAILS,
        "model_info": {"general.architecture": "test", "test.context_length": TRAINED},
        "capabilities": ["completion", *(["tools"] if self.tools else [])],
    }


def ps(self: Self, body: Mapping[str, object]) -> object:
    loaded = {"name": self.model, "model": self.model, "details": DETAILS}
    return {"models": [{**loaded, "context_length": self.window}]}


# --- LM Studio -----------------------------------------------------------------------------------


def lm_studio(self: Self, body: Mapping[str, object]) -> object:
    config = {"context_length": self.window, "eval_batch_size": 512, "flash_attention": False}
    return {
        "models": [
            {
                "type": "llm",
                "publisher": "test",
                "key": self.model,
                "display_name": self.model,
                "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
                "size_bytes": 1,
                "loaded_instances": [{"id": self.model, "config": config}],
                "max_context_length": TRAINED,
                "format": "gguf",
                "capabilities": {"vision": False, "trained_for_tool_use": self.tools},
            }
        ]
    }


LLAMA_CPP = frozenset({Kind.LLAMA_CPP})
OLLAMA = frozenset({Kind.OLLAMA})
PROBES: Mapping[tuple[str, str], tuple[frozenset[Kind], Probe]] = {
    ("GET", "/v1/models"): (frozenset(Kind), models),
    ("GET", "/health"): (frozenset({Kind.LLAMA_CPP, Kind.LLAMAFILE, Kind.VLLM}), health),
    ("GET", "/props"): (LLAMA_CPP, props),
    ("POST", "/tokenize"): (LLAMA_CPP | {Kind.VLLM}, tokenize),
    ("POST", "/apply-template"): (LLAMA_CPP, apply_template),
    ("POST", "/v1/chat/completions/input_tokens"): (LLAMA_CPP, input_tokens),
    ("POST", "/v1/messages/count_tokens"): (LLAMA_CPP | {Kind.ANTHROPIC}, count_tokens),
    ("GET", "/api/version"): (OLLAMA, version),
    ("GET", "/api/tags"): (OLLAMA, tags),
    ("POST", "/api/show"): (OLLAMA, show),
    ("GET", "/api/ps"): (OLLAMA, ps),
    ("GET", "/api/v1/models"): (frozenset({Kind.LM_STUDIO}), lm_studio),
}
"""Where a probe is answered, and by which kinds."""
