"""How a server said no: its status and its words, made into one of our five failures.

What the servers are known to say stands in tables. A request that was too long is recognised by
its wording whatever the status, since servers send it as 400, 413, 422 or 500.
"""

import re
from collections.abc import Mapping
from datetime import UTC
from functools import cache
from math import isfinite

from holdfast.core.cut import middle_cut
from holdfast.core.events import Failure
from holdfast.core.jsontext import STRICT, dumped, one_line, parsed
from holdfast.core.messages import clean
from holdfast.models.base import ModelError
from holdfast.models.repair import repaired

UNREADABLE = "[a value that cannot be written as JSON]"

OVERFLOWS = (
    # llama.cpp, also behind Ollama and LM Studio
    "request ({tokens} tokens) exceeds the available context size ({window} tokens)",
    "exceeds the available context size",
    "exceed_context_size_error",
    "context size has been exceeded",
    # OpenAI, llama-cpp-python, vLLM and OpenRouter. The newer vLLM counts no further than its
    # limit, and OpenRouter only estimates: what they say of the request is left out.
    "maximum context length is {window} tokens~you requested {all} tokens (~{rest} in the comp",
    "maximum context length is {window} tokens~you requested {all} tokens (~{rest} for the comp",
    "maximum context length is {window} tokens~your messages resulted in {tokens} tokens",
    "maximum context length is {window} tokens~your request has {tokens} input tokens",
    "maximum context length is {window} tokens",
    "context length is only {window} tokens",
    "prompt (length {tokens}) is longer than the maximum model length of {window}",
    "prompt (total length {tokens}) is too long to fit into the model (context length {window})",
    "maximum context length of {window} tokens",
    "context_length_exceeded",
    "context length exceeded",
    "exceeds the context window",
    # SGLang, Together
    "the input ({tokens} tokens) is longer than the model's context length ({window} tokens)",
    # LM Studio: what it keeps of the prompt need not be all of it
    "context length of only {window} tokens",
    "prompt is greater than the context length",
    # Ollama
    "input length exceeds the context length",
    "input length ({tokens} tokens) exceeds the model's maximum context length ({window} tokens)",
    "prompt is longer than the context length",
    "prompt too long; exceeded max context length",
    # Anthropic
    "prompt is too long: {tokens} tokens > {window} maximum",
    "exceed context limit: {tokens} + {any} > {window}",
    "prompt is too long",
    # Mistral
    "prompt contains {tokens} tokens~too large for model with {window} maximum context length",
    # Gemini
    "input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})",
    "token count exceeds the maximum number of tokens allowed ({window})",
    "token count exceeds the maximum number of",
    # text-generation-inference
    "`inputs` tokens + `max_new_tokens` must be <= {window}. given: {tokens} `inputs`",
    "`inputs` must have less than {window} tokens. given: {tokens}",
    # xAI, Copilot, Kimi, MiniMax
    "maximum prompt length is {window} but the request contains {tokens} tokens",
    "prompt token count of {tokens} exceeds the limit of {window}",
    "exceeded model token limit: {window}",
    "context window exceeds limit",
)
"""How servers say that a request is too long. `~` stands for a few words, `{tokens}` for the
size of the request without room for an answer, which is `{all}` less `{rest}` with some."""
FIELDS = {"tokens": r"\bn_prompt_tokens\W{1,5}(\d{1,9})", "window": r"\bn_ctx\W{1,5}(\d{1,9})"}

STATUSES: Mapping[int, Failure] = {
    **dict.fromkeys((408, 409, 425, 429, 503, 529), Failure.BUSY),
    413: Failure.OVERFLOW,
    501: Failure.REJECTED,
}
FAMILIES = {3: Failure.REJECTED, 4: Failure.REJECTED}
"""What the other statuses mean, by their hundreds; the rest is garbled, 200 with a page too."""
HOPELESS = ("insufficient_quota", "requires more system memory")
"""What comes with a status that means busy or garbled, but no second try will mend it."""
WORDS = (
    ("|".join(HOPELESS), Failure.REJECTED),
    (r"rate.?limit|overloaded|unavailable|too many requests|resource_exhausted", Failure.BUSY),
    (r"authentication|permission|not_found|invalid_request|invalid_argument", Failure.REJECTED),
)
"""What an error without a status means."""
LOADING = re.compile(r"loading model|model is (?:still )?loading|currently loading")
BROKEN_CALLS = re.compile(
    r"error parsing tool call: raw='(?P<raw>.*?)', err="
    r"|does not match the expected \S+ format"
    r"|failed to parse (?:the )?tool call(?! arguments as json)"
    r"|tool call parsing failed|malformed_function_call"
    r"|returned invalid tool call arguments for|incomplete \w+ tool call"
    r"|failed to parse (?:\w+ )?json(?: tool call|:)",
    re.DOTALL | re.IGNORECASE,
)
"""How servers say that the model itself wrote a call which they could not read. They lose the
reply, and to ask for the same again would bring the same. (Of arguments that do not parse as JSON
llama.cpp speaks when they stand in the history it was sent.)"""
MESSAGE_FIELDS = ("message", "error", "detail")
LOOKED_AT = 20_000
"""Characters of a body in which we look for words."""
SHOWN = 300


def failure_of(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float | None = None,
    where: str = "",
) -> ModelError:
    """The failure in a response that is no reply. `now`, in seconds since 1970, is needed for a
    Retry-After that is a date. `where`: the address that was asked, which may be a wrong one."""
    text = body[:LOOKED_AT].decode("utf-8", "replace")
    try:
        message = message_in(parsed(text, STRICT))
    except ValueError:
        message = summary_of_page(text) if text.lstrip().startswith("<") else text
    detail = f"HTTP {status}: {shown(message) or 'without a word'}"
    if where and status in (404, 405) and "model" not in message.lower():
        detail += f" ({where})"
    return failure(f"{message}\n{text}", status, detail, wait=retry_after(headers, now))


def failure_in(error: object) -> ModelError:
    """The failure that a server reports inside a stream it began with status 200."""
    code = number_in(error.get("code")) if isinstance(error, dict) else None
    status = int(code) if code is not None and 300 <= code < 600 else None
    message = message_in(error)
    everything = f"{message}\n{json_of(error)[:LOOKED_AT]}"
    return failure(everything, status, f"error in the reply: {shown(message)}")


def failure(text: str, status: int | None, detail: str, wait: float | None = None) -> ModelError:
    broken = BROKEN_CALLS.search(text)
    text = text.lower()
    if found := next(filter(None, (each.search(text) for each in overflow_wordings())), None):
        sizes = {name: int(size.replace(",", "")) for name, size in found.groupdict().items()}
        for name, pattern in FIELDS.items():
            if name not in sizes and (given := re.search(pattern, text)):
                sizes[name] = int(given[1])
        tokens = sizes.get("tokens") or sizes.get("all", 0) - sizes.get("rest", 0)
        window = sizes.get("window") or None
        return ModelError(Failure.OVERFLOW, detail, window=window, tokens=max(tokens, 0) or None)
    if status is None or any(words in text for words in HOPELESS):
        kind = next((kind for words, kind in WORDS if re.search(words, text)), Failure.GARBLED)
    else:
        kind = STATUSES.get(status) or FAMILIES.get(status // 100, Failure.GARBLED)
    if kind is Failure.GARBLED and broken:
        return ModelError(kind, detail, problem=what_was_wrong(broken["raw"] or ""))
    loading = kind is Failure.BUSY and LOADING.search(text) is not None
    return ModelError(kind, detail, retry_after=wait, loading=loading)


def what_was_wrong(raw: str) -> str:
    """For the model: what it wrote, and what it may have meant."""
    problem = "Your last reply held a call that could not be read, so nothing was run."
    if raw:
        problem += f" Its arguments were not valid JSON: {shown(raw)}"
        if (meant := repaired(raw)) is not None:
            problem += f"\nIf you meant this, write it so: {shown(meant.arguments)}"
    return f"{problem}\nWrite the call again, with arguments that are one valid JSON object."


@cache  # compiled when the first request fails, not when a program starts
def overflow_wordings() -> tuple[re.Pattern[str], ...]:
    def pattern(wording: str) -> str:
        number = r"(?P<\1>\\d[\\d,]{0,11})"
        return re.sub(r"\\{(\w+)\\}", number, re.escape(wording)).replace(r"\~", ".{0,120}?")

    return tuple(re.compile(pattern(each), re.DOTALL) for each in OVERFLOWS)


def message_in(value: object) -> str:
    """The words in an error object, however it is wrapped."""
    for _ in range(6):
        if isinstance(value, dict):
            inner = next((value[name] for name in MESSAGE_FIELDS if value.get(name)), None)
        else:
            inner = value[0] if isinstance(value, list) and value else None
        if inner is None:
            break
        value = inner
    return value[:LOOKED_AT] if isinstance(value, str) else json_of(value)[:LOOKED_AT]


def json_in(data: bytes | str) -> object:
    """What a server sent as JSON; a failure that shows it, if it is none."""
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return parsed(text, STRICT)
    except ValueError:
        text = text[:LOOKED_AT]
        what = summary_of_page(text) if text.lstrip().startswith("<") else text
        raise ModelError(Failure.GARBLED, f"not JSON: {shown(what)}") from None


def summary_of_page(text: str) -> str:
    title = re.search(r"<(title|h1)[^>]{0,200}>(.{0,300}?)</\1", text, re.DOTALL | re.IGNORECASE)
    return f"a page: {title[2] if title else re.sub('<[^>]{0,500}>', ' ', text)}"


def retry_after(headers: Mapping[str, str], now: float | None) -> float | None:
    """The seconds a server asks us to wait."""
    lower = {name.lower(): value for name, value in headers.items()}
    if (milliseconds := number_in(lower.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    given = lower.get("retry-after", "")
    if (seconds := number_in(given)) is not None or now is None:
        return seconds
    from email.utils import parsedate_to_datetime  # a slow import, seldom needed

    try:
        when = parsedate_to_datetime(given)
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def json_of(value: object) -> str:
    try:
        return dumped(value)
    except (ValueError, RecursionError):
        return UNREADABLE


def shown(value: object) -> str:
    text = value if isinstance(value, str) else json_of(value)
    return clean(middle_cut(one_line(text[:LOOKED_AT]), SHOWN))


def number_in(value: object) -> float | None:
    """A number that is not negative, also if it is written as a string."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) and number >= 0 else None
