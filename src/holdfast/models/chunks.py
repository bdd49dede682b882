"""What `/v1/chat/completions` answers, made into pieces and one reply, used whole or not at all.

Servers agree on the outline of the format and on little else. All that is known of how they
differ stands here, as tables where it can. Whoever reads the bytes is elsewhere; how a server says
no is in `failures`. Calls written as text, and arguments that do not parse, are left as the
model wrote them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from holdfast.core.events import Failure, Finish, Reply, WantedCall
from holdfast.core.jsontext import json_object, one_line
from holdfast.core.limits import Usage
from holdfast.core.messages import clean
from holdfast.models.base import ModelError, Replied, Said, Thought
from holdfast.models.failures import UNREADABLE, failure_in, json_of, number_in, shown
from holdfast.models.thinking import Apart, unopened

EMPTY_STREAM = "empty stream"
"""The detail of a failure that may be an overflow: llama-cpp-python answers a request that is too
long with status 200 and a stream without a single event."""
LEAKED = ("</s>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<end_of_turn>", "<|end_of_text|>")
"""With these a model ends its turn. Old servers, and new ones with a wrong template, let them
through."""
NO_REASON = "the stream does not say why it ended"
MOST_CALLS = 1_000
"""Calls of one reply: far more than are ever run, and a bound for a server that never ends."""
TEXT_FIELDS = ("text", "thinking", "reasoning", "summary", "refusal", "content")
"""Where the text of a part may stand, the likeliest first."""
ENDINGS: Mapping[str, Finish | Failure] = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence"), Finish.STOP),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), Finish.STOP),
    **dict.fromkeys(("length", "max_tokens", "model_length"), Finish.LENGTH),
    **dict.fromkeys(("max_output_tokens", "incomplete"), Finish.LENGTH),
    "model_context_window_exceeded": Finish.LENGTH,
    **dict.fromkeys(("content_filter", "refusal", "safety", "sensitive"), Finish.REFUSED),
    **dict.fromkeys(("error", "abort", "cancelled", "canceled"), Failure.GARBLED),
    **dict.fromkeys(("network_error", "timeout", "malformed_function_call"), Failure.GARBLED),
    "insufficient_system_resource": Failure.BUSY,
}
NO_REASONS = ("", "null", "none")
EXTRA = "extra_content"
PROMPT = ("prompt_tokens", "input_tokens")
COMPLETION = ("completion_tokens", "output_tokens")
CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")


# --- a reply, as it arrives -----------------------------------------------------------------


@dataclass(slots=True)
class Draft:
    """A call whose fragments are still arriving."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: object = None
    """What Gemini demands back with the call: its signature."""

    def is_whole(self) -> bool:
        """Whether the arguments are those of a call that can be run, with nothing to come."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            json_object("".join(self.arguments))
        except ValueError:
            return False
        return True

    def is_repeated_by(self, arguments: str) -> bool:
        """Some servers send a whole call again. A part of one that comes twice is meant twice."""
        if arguments[:1] != "{" or len(arguments) != sum(map(len, self.arguments)):
            return False
        return arguments == "".join(self.arguments) and self.is_whole()

    def is_followed_by(self, id_: str, name: str, arguments: str) -> bool:
        """Whether a fragment for the same place begins another call: some servers number all
        their calls alike, and some repeat the name, or invent an id, with each fragment."""
        has_another_id = bool(id_ and self.id and id_ != self.id)
        if name == self.name and self.is_repeated_by(arguments):
            return has_another_id
        if has_another_id and not name:
            return self.is_whole()
        if has_another_id:
            return name != self.name or not self.arguments or self.is_whole()
        if not name or not self.arguments:
            return False
        is_placeholder = bool(id_) and self.arguments == ["{}"]
        return name != self.name or bool(arguments) and self.is_whole() and not is_placeholder

    def add(self, id_: str, name: str, arguments: str) -> None:
        self.id = self.id or id_
        if name.startswith(self.name):  # the same again, or all of it so far
            self.name = name
        else:
            self.name += name
        if arguments and not self.is_repeated_by(arguments):
            if self.arguments == ["{}"]:  # it held the place of those that come now
                self.arguments.clear()
            self.arguments.append(arguments)


class ReplySoFar:
    """Reads the answer to one request: chunk by chunk, or whole."""

    def __init__(self) -> None:
        self._chunks = 0
        self._done = self._refused = self._streamed = False
        self._said: list[str] = []
        self._thought: list[str] = []
        self._apart = Apart()
        self._calls: list[Draft] = []
        self._legacy = Draft()
        self._reason = self._model = ""
        self._usage: Usage | None = None
        self._repairs: dict[str, None] = {}

    def feed(self, chunk: object) -> list[Said | Thought]:
        """The pieces in one chunk of a stream; a `ModelError` if it reports a failure."""
        self._streamed = True
        choice = self._choice(chunk)
        return self._kept(self._pieces(choice.get("delta"), choice))

    def whole(self, body: object) -> list[Said | Thought]:
        """The pieces of an answer that was not streamed."""
        choice = self._choice(body)
        pieces = self._kept(self._pieces(choice.get("message"), choice))
        return pieces + self.done()

    @property
    def has_reason(self) -> bool:
        """Whether the reply has said why it ended: then only counts can follow."""
        return bool(self._reason)

    def done(self) -> list[Said | Thought]:
        """Note the `[DONE]` of the stream."""
        self._done = True
        return self._kept(self._apart.end())

    def finish(self) -> Replied:
        """The reply, if it came to its end: nothing of one that did not is used."""
        if not self._chunks:
            raise ModelError(Failure.GARBLED, EMPTY_STREAM, unexplained=True)
        before, text = self._answer()
        drafts = [each for each in self._calls if each.name or each.arguments]
        if not drafts and self._legacy.name:  # some servers send a call both ways
            drafts = [self._legacy]
        ending: Finish | Failure = Finish.STOP
        if self._reason:
            ending = ENDINGS.get(self._reason.lower(), Finish.STOP)
            if self._reason.lower() not in ENDINGS:
                # What nobody knows may have been an accident: words of it do no harm, calls may.
                ending = Failure.GARBLED if drafts else ending
                self._repair(f"unknown finish reason {one_line(self._reason)[:40]!r}")
        elif not self._done:
            raise ModelError(Failure.GARBLED, f"the stream broke off after {self._chunks} chunks")
        elif self._streamed:
            # `[DONE]` alone is no proof: proxies add it when the server behind them has died.
            raise ModelError(Failure.GARBLED, NO_REASON, unexplained=True)
        elif not (text.strip() or drafts) or not all(each.is_whole() for each in drafts):
            raise ModelError(Failure.GARBLED, "no finish reason, and nothing whole was said")
        else:
            self._repair("no finish reason")
        if isinstance(ending, Failure):
            raise ModelError(ending, f"the server gave up: {one_line(self._reason)[:40]}")
        if self._reason == "tool_calls" and not drafts:
            self._repair("calls were announced, and none came")
        if self._apart.thinking:
            self._repair("a <think> block was never closed")
        calls = tuple(self._wanted(each, ending) for each in drafts)
        ending = Finish.REFUSED if self._refused else ending
        thought = clean("".join((*self._thought, before)))
        extra = [each.extra for each in drafts]
        owed = json_of({EXTRA: extra}) if any(extra) else ""
        owed = "" if owed == UNREADABLE else owed
        reply = Reply(text=text, calls=calls, finish=ending, reasoning=thought, owed=owed)
        return Replied(reply, self._usage, self._model, tuple(self._repairs))

    def _answer(self) -> tuple[str, str]:
        """What was said, without the thought it may turn out to begin with."""
        text = clean("".join(self._said))
        if text.endswith(LEAKED):
            text = text[: max(map(text.rfind, LEAKED))]
            self._repair("a mark of the template in the text")
        if self._apart.found:
            return "", text
        thought, answer = unopened(text)
        if answer != text:
            self._repair("a thought without its beginning")
        return thought, answer

    def _choice(self, chunk: object) -> dict[str, object]:
        """The first choice, after what the chunk says of everything else."""
        self._chunks += 1
        if isinstance(chunk, list) and chunk:  # so Gemini wraps its errors
            chunk = chunk[0]
        if not isinstance(chunk, dict):
            raise ModelError(Failure.GARBLED, f"not a chunk: {shown(chunk)}")
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        choice = choice if isinstance(choice, dict) else {}
        for source in (chunk, choice):
            if error := source.get("error") or source.get("object") == "error" and source:
                raise failure_in(error)
            self._usage = usage_of(source.get("usage")) or self._usage
        if isinstance(model := chunk.get("model"), str):
            self._model = self._model or clean(model)
        is_another = isinstance(index := choice.get("index"), int) and index > 0
        return {} if is_another else choice

    def _pieces(self, delta: object, choice: dict[str, object]) -> Iterator[Said | Thought]:
        thoughts: set[str] = set()  # some servers send the same under two names
        for key, value in delta.items() if isinstance(delta, dict) else ():
            if key in ("content", "refusal"):
                for kind, text in texts_in(value, key):
                    if names_a_thought(kind):
                        yield Thought(text, kind)
                    else:
                        self._refused = self._refused or kind == "refusal"
                        yield from self._apart.feed(text)
            elif key == "tool_calls":
                self._hear(value if isinstance(value, list) else [value])
            elif key == "function_call":
                self._legacy.add(*fragment_of(value))
            elif names_a_thought(key):
                text = "".join(text for _, text in texts_in(value, key))
                if text and text not in thoughts:
                    thoughts.add(text)
                    yield Thought(text, key)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason.lower() not in NO_REASONS:
            self._reason = reason
            yield from self._apart.end()

    def _kept(self, pieces: Iterator[Said | Thought]) -> list[Said | Thought]:
        shown: list[Said | Thought] = []
        for piece in pieces:
            if piece.text:
                (self._said if isinstance(piece, Said) else self._thought).append(piece.text)
                text = clean(piece.text)
                shown.append(piece if text == piece.text else replace(piece, text=text))
        return shown

    def _hear(self, fragments: list[object]) -> None:
        for place, fragment in enumerate(fragments):
            id_, name, arguments = fragment_of(fragment)
            if not (id_ or name or arguments):
                continue
            index = fragment.get("index") if isinstance(fragment, dict) else None
            if not isinstance(index, int):
                index = place if len(fragments) > 1 else None
            if len(self._calls) >= MOST_CALLS:
                raise ModelError(Failure.GARBLED, f"more than {MOST_CALLS} calls in one reply")
            call = self._known(index, id_)
            if call is None or call.is_followed_by(id_, name, arguments):
                call = Draft(index)
                self._calls.append(call)
            call.add(id_, name, arguments)
            if isinstance(fragment, dict) and fragment.get(EXTRA):
                call.extra = fragment[EXTRA]

    def _known(self, index: int | None, id_: str) -> Draft | None:
        """The call that a fragment goes on with, as far as its place and its id tell."""
        latest = None
        for each in reversed(self._calls):
            if index in (None, each.index):
                latest = latest or each
                if not id_ or each.id == id_:
                    return each
        return latest

    def _wanted(self, draft: Draft, ending: Finish) -> WantedCall:
        arguments = clean("".join(draft.arguments))
        if not arguments.strip() and ending is not Finish.LENGTH:  # else they may have been cut
            self._repair("a call without arguments")
            arguments = "{}"
        return WantedCall(clean(draft.name), arguments, clean(draft.id))

    def _repair(self, what: str) -> None:
        self._repairs[what] = None


def texts_in(value: object, kind: str, deepest: int = 4) -> Iterator[tuple[str, str]]:
    """The texts in a string, a part or a list of parts, each with the kind of its part."""
    if isinstance(value, str):
        if value:
            yield kind, value
    elif isinstance(value, list) and deepest:
        for part in value:
            yield from texts_in(part, kind, deepest - 1)
    elif isinstance(value, dict) and deepest:
        if kind in ("content", "text") and isinstance(given := value.get("type"), str):
            kind = given  # whatever is inside a thought or a refusal is one
        text = next((value[name] for name in TEXT_FIELDS if value.get(name)), None)
        yield from texts_in(text, kind, deepest - 1)


def names_a_thought(name: str) -> bool:
    name = name.lower()
    is_one = "reasoning" in name or "thinking" in name or "thought" in name
    return is_one and "signature" not in name


def fragment_of(value: object) -> tuple[str, str, str]:
    """Id, name and arguments in a fragment of a call."""
    call = value if isinstance(value, dict) else {}
    function = inner if isinstance(inner := call.get("function"), dict) else call
    id_, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json_of(arguments)
    return (str(id_ or "")[:200], name if isinstance(name, str) else "", arguments or "")


# --- what it cost ---------------------------------------------------------------------------


def usage_of(value: object) -> Usage | None:
    """The counts as the server gave them; None where it gave none that can be meant."""
    if not isinstance(value, dict):
        return None
    details = value.get("prompt_tokens_details") or value.get("input_tokens_details")
    counts = {**details, **value} if isinstance(details, dict) else value
    prompt, completion = first_count(counts, PROMPT), first_count(counts, COMPLETION)
    total = first_count(counts, ("total_tokens",)) or 0
    prompt = max(total - (completion or 0), 0) if prompt is None else prompt
    # Some count what was thought only in the total.
    completion = max(completion or 0, total - prompt)
    if not prompt and not completion:
        return None
    cached = min(first_count(counts, CACHED) or 0, prompt)
    return Usage(prompt=prompt, completion=completion, cached=cached)


def first_count(counts: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    numbers = (number_in(counts.get(name)) for name in names)
    return next((int(each) for each in numbers if each is not None and each < 1e12), None)
