"""What each kind of server does with a request that is larger than its window.

Most refuse it, each in its own words; Ollama cuts it in silence, llama-cpp-python sends a stream
with nothing in it, and llamafile begins to work and is not heard of again.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from holdfast.testing.server.asked import ApiName, Asked
from holdfast.testing.server.http import Answer, Do
from holdfast.testing.server.kinds import Kind, refused, stream
from holdfast.testing.server.openai import event


def overflow(kind: Kind, asked: Asked, tokens: int, window: int) -> Answer | None:
    """The answer to a request of so many tokens; None if it is taken."""
    output = asked.room or 0
    is_refused = tokens >= window or kind in COUNTS_OUTPUT and tokens + output > window
    if not is_refused or asked.truncates:
        return None
    return WAYS[words_of(kind, asked)](asked, tokens, window)


def words_of(kind: Kind, asked: Asked) -> Kind:
    """Whose words are used: those of an API that has its own, whoever speaks it."""
    return Kind.ANTHROPIC if asked.api.name is ApiName.ANTHROPIC else kind


def openai(asked: Asked, tokens: int, window: int) -> Answer:
    return refused(
        Kind.OPENAI,
        400,
        f"This model's maximum context length is {window} tokens. However, your messages "
        f"resulted in {tokens} tokens. Please reduce the length of the messages.",
        param="messages",
        code="context_length_exceeded",
    )


def llama_cpp(asked: Asked, tokens: int, window: int) -> Answer:
    return refused(
        Kind.LLAMA_CPP,
        400,
        f"request ({tokens} tokens) exceeds the available context size ({window} tokens), "
        "try increasing it",
        named="exceed_context_size_error",
        n_prompt_tokens=tokens,
        n_ctx=window,
    )


def llama_cpp_python(asked: Asked, tokens: int, window: int) -> Answer:
    if asked.stream:
        return replace(stream(Kind.LLAMA_CPP_PYTHON, asked.api, ()), resets_next=True)
    return refused(
        Kind.LLAMA_CPP_PYTHON,
        400,
        requested(asked, tokens, window),
        param="messages",
        code="context_length_exceeded",
    )


def vllm(asked: Asked, tokens: int, window: int) -> Answer:
    return refused(Kind.VLLM, 400, requested(asked, tokens, window))


def requested(asked: Asked, tokens: int, window: int) -> str:
    output = asked.room or 0
    return (
        f"This model's maximum context length is {window} tokens. However, you requested "
        f"{tokens + output} tokens ({tokens} in the messages, {output} in the completion). "
        "Please reduce the length of the messages or completion."
    )


def ollama(asked: Asked, tokens: int, window: int) -> Answer:
    words = "the input length exceeds the context length"
    return refused(Kind.OLLAMA, 400, words, api=asked.api)


def lm_studio(asked: Asked, tokens: int, window: int) -> Answer:
    words = (
        f"Trying to keep the first {tokens} tokens when context the overflows. However, the model "
        f"is loaded with context length of only {window} tokens, which is not enough. Try to load "
        "the model with a larger context length, or provide a shorter input"
    )
    if not asked.stream:
        return refused(Kind.LM_STUDIO, 400, words)
    said = b"event: error\n" + event({"error": words})
    return stream(Kind.LM_STUDIO, asked.api, (said,))


def anthropic(asked: Asked, tokens: int, window: int) -> Answer:
    words = f"prompt is too long: {tokens} tokens > {window} maximum"
    if tokens < window:
        words = (
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked.room or 0} > "
            f"{window}, decrease input length or `max_tokens` and try again"
        )
    return refused(Kind.ANTHROPIC, 400, words)


def llamafile(asked: Asked, tokens: int, window: int) -> Answer:
    return stream(Kind.LLAMAFILE, asked.api, (Do.STALL,))


WAYS: Mapping[Kind, Callable[[Asked, int, int], Answer]] = {
    Kind.OPENAI: openai,
    Kind.LLAMA_CPP: llama_cpp,
    Kind.LLAMA_CPP_PYTHON: llama_cpp_python,
    Kind.OLLAMA: ollama,
    Kind.LM_STUDIO: lm_studio,
    Kind.VLLM: vllm,
    Kind.ANTHROPIC: anthropic,
    Kind.LLAMAFILE: llamafile,
}
COUNTS_OUTPUT = {Kind.VLLM, Kind.ANTHROPIC}
"""They refuse a request whose answer might not fit; the others answer as far as there is room."""
