"""What `/v1/messages` answers, made into pieces and one reply, used whole or not at all.

Only what this format has of its own is read here: blocks that begin, grow and end, thoughts that
are owed, a prompt counted in three parts. The rest is left to `chunks`, which is handed each event
as a chunk. Whoever reads the bytes is elsewhere; how a server says no is in `failures`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from holdfast.core.events import Failure
from holdfast.core.limits import Usage
from holdfast.models.base import ModelError, Replied, Said, Thought
from holdfast.models.chunks import EMPTY_STREAM, ReplySoFar, first_count
from holdfast.models.failures import failure_in, json_of, shown

THOUGHTS = ("thinking", "redacted_thinking")
PAUSED = {"pause_turn": "length"}
"""A reply that is to be continued, which `chunks` knows by another name."""


@dataclass(slots=True)
class Block:
    """A block of the reply that is still arriving."""

    kind: object
    place: int
    """Among all the blocks: servers number theirs as they like."""
    given: object = None
    """The input of a call, where it did not come in pieces."""
    thought: dict[str, object] = field(default_factory=dict)
    """Of a thought: the block as it must go back,"""
    grown: dict[str, list[str]] = field(default_factory=dict)
    """and what came for it in pieces, which are put together once."""

    def sealed(self) -> dict[str, object]:
        grown = {name: "".join(pieces) for name, pieces in self.grown.items()}
        begun = {name: self.thought.get(name) for name in grown}
        whole = {name: f"{begun[name] or ''}{text}" for name, text in grown.items()}
        return {**self.thought, **whole}


class MessageSoFar:
    """Reads the answer to one request, event by event."""

    def __init__(self, *, keeps_unsigned: bool = False) -> None:
        """`keeps_unsigned`: thoughts are owed also where the server does not sign them."""
        self.stopped = False
        self.reason = ""
        self._reply = ReplySoFar()
        self._keeps_unsigned = keeps_unsigned
        self._open: dict[object, Block] = {}
        self._blocks = self._calls = self._events = 0
        self._owed: list[tuple[int, Block]] = []
        """Each thought, and the number of calls that came before it."""
        self._counts: dict[str, object] = {}
        self._why: tuple[str, ...] = ()

    @property
    def written(self) -> int:
        """Tokens that the server kept for the next request."""
        return first_count(self._counts, ("cache_creation_input_tokens",)) or 0

    def feed(self, event: object) -> list[Said | Thought]:
        """The pieces in one event; a `ModelError` if it reports a failure."""
        if not isinstance(event, dict):
            raise ModelError(Failure.GARBLED, f"not an event: {shown(event)}")
        if event.get("type") == "error" or event.get("error"):
            raise failure_in(event)
        self._events += 1
        index = str(event.get("index"))
        match event.get("type"):
            case "message_start":
                message = object_in(event.get("message"))
                self._counts |= object_in(message.get("usage"))
                return self._reply.feed({"model": message.get("model")})
            case "content_block_start":
                return self._start(index, object_in(event.get("content_block")))
            case "content_block_delta":
                return self._change(self._open.get(index), object_in(event.get("delta")))
            case "content_block_stop":
                return self._close(index)
            case "message_delta":
                return self._end(object_in(event.get("delta")), object_in(event.get("usage")))
            case "message_stop":
                self.stopped = True
                pieces = [piece for index in tuple(self._open) for piece in self._close(index)]
                return pieces + self._reply.done()
            case _:
                return []  # a ping, or what we do not know yet

    def finish(self) -> Replied:
        """The reply, if it came to its end: nothing of one that did not is used."""
        if not self.stopped:
            end = f"the stream broke off after {self._events} events"
            raise ModelError(Failure.GARBLED, end if self._events else EMPTY_STREAM)
        replied = self._reply.finish()
        sealed_by = ((before, block.sealed()) for before, block in self._owed)
        owed = [each for each in sealed_by if self._keeps_unsigned or is_signed(each[1])]
        sealed = json_of(owed) if owed and replied.reply.calls else ""
        reply = replace(replied.reply, owed=sealed)
        notes = (*replied.notes, *self._why)
        return replace(replied, reply=reply, usage=usage_of(self._counts), notes=notes)

    def _start(self, index: object, start: dict[str, object]) -> list[Said | Thought]:
        block = Block(start.get("type"), self._blocks, start.get("input"))
        pieces = self._close(index)
        self._blocks += 1
        self._open[index] = block
        if block.kind in THOUGHTS:
            block.thought = dict(start)
            self._owed.append((self._calls, block))
            return pieces + self._said("thinking", start.get("thinking"))
        if block.kind == "tool_use":
            self._calls += 1
            return pieces + self._called(block, id=start.get("id"), name=start.get("name"))
        return pieces + self._said("content", start.get("text"))

    def _change(self, block: Block | None, delta: dict[str, object]) -> list[Said | Thought]:
        match delta.get("type"):
            case "text_delta":
                return self._said("content", delta.get("text"))
            case "thinking_delta" | "signature_delta" as kind:
                name = "thinking" if kind == "thinking_delta" else "signature"
                if block is not None and isinstance(text := delta.get(name), str):
                    block.grown.setdefault(name, []).append(text)
                return self._said("thinking", delta.get("thinking"))
            case "input_json_delta":
                if block is None:
                    raise ModelError(Failure.GARBLED, "arguments came without a call")
                if block.kind == "tool_use" and delta.get("partial_json"):
                    block.given = None
                    return self._called(block, arguments=delta.get("partial_json"))
        return []

    def _close(self, index: object) -> list[Said | Thought]:
        block = self._open.pop(index, None)
        if block is None or block.kind != "tool_use" or block.given is None:
            return []
        is_text = isinstance(block.given, str)
        return self._called(block, arguments=block.given if is_text else json_of(block.given))

    def _end(self, delta: dict[str, object], counts: dict[str, object]) -> list[Said | Thought]:
        self._counts |= {name: count for name, count in counts.items() if count is not None}
        reason = delta.get("stop_reason")
        self.reason = reason if isinstance(reason, str) else self.reason
        if why := object_in(delta.get("stop_details")).get("explanation"):
            self._why = (f"refused: {shown(why)}",)
        return self._reply.feed({"choices": [{"finish_reason": PAUSED.get(self.reason, reason)}]})

    def _said(self, name: str, text: object) -> list[Said | Thought]:
        return self._reply.feed({"choices": [{"delta": {name: text}}]}) if text else []

    def _called(self, block: Block, **call: object) -> list[Said | Thought]:
        return self._reply.feed(
            {"choices": [{"delta": {"tool_calls": [{"index": block.place, **call}]}}]}
        )


def events_of(message: object) -> Iterator[object]:
    """A message that came whole, as the events it would have come in."""
    if not isinstance(message, dict) or message.get("type") == "error" or message.get("error"):
        yield message
        return
    yield {"type": "message_start", "message": message}
    content = message.get("content")
    content = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for index, block in enumerate(content):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": message}
    yield {"type": "message_stop"}


def usage_of(counts: Mapping[str, object]) -> Usage | None:
    """What was read from the cache, or written into it, is not counted as input here."""
    fresh, answered = (first_count(counts, (f"{name}_tokens",)) for name in ("input", "output"))
    if fresh is None or answered is None:
        return None
    cached = first_count(counts, ("cache_read_input_tokens",)) or 0
    written = first_count(counts, ("cache_creation_input_tokens",)) or 0
    return Usage(prompt=fresh + cached + written, completion=answered, cached=cached)


def is_signed(thought: Mapping[str, object]) -> bool:
    return bool(thought.get("signature") or thought.get("data"))


def object_in(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
