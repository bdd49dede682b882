"""A reply that is about to be written. All that a server can get wrong in it is a field, so that
most faults are one `replace`; the APIs write whatever stands here, true or not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from holdfast.core.events import Finish, Reply
from holdfast.core.limits import Usage
from holdfast.testing.server.tokens import count, pieces

MOST_DELTAS = 200
"""Pieces of one text. A longer text comes in longer pieces, so that a giant one stays quick."""


class Content(Enum):
    """How the text of a reply is put."""

    TEXT = "text"
    NULL = "null"
    PARTS = "parts"


class Ending(Enum):
    """Why the model stopped, as the server puts it. Each API has words of its own for these."""

    STOP = "stop"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Style:
    """How one kind of server writes what its API leaves open."""

    opening: Mapping[str, object] | None = None
    """The first delta of a stream; None: there is none."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Further fields of every document."""
    spaced: bool = False
    """JSON with blanks after commas and colons."""
    says_done: bool = True
    """A stream ends with `[DONE]`."""
    counts_streams: bool = True
    """A stream holds the usage, if asked for."""
    fresh_ids: bool = False
    """Every chunk has another id."""
    leak: str = ""
    """What of the template is left at the end of a text."""


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: object
    """Text, as it should be, or whatever else."""
    id: str | None
    """None: the field is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    id: str
    model: str
    text: str = ""
    content: Content = Content.TEXT
    thought: str = ""
    thought_field: str = "reasoning_content"
    calls: tuple[Call, ...] = ()
    ending: Ending | None = Ending.STOP
    """None: it does not say."""
    usage: Usage | None = None
    """None: it does not say."""
    has_choice: bool = True
    """Whether there is a reply in it at all."""
    ends: bool = True
    """Whether the mark for the end of a stream comes, `[DONE]` or what the API has for it."""
    error: str = ""
    """What the server reports in the middle of its stream, in place of an ending."""
    style: Style = Style()

    @property
    def tokens(self) -> int:
        written = (each.arguments for each in self.calls)
        texts = (self.thought, self.text, *(each.name for each in self.calls))
        return sum(map(count, (*texts, *(each for each in written if isinstance(each, str)))))


def drafted(reply: Reply, *, number: int, model: str, style: Style) -> Draft:
    """What an honest server writes. `number` is that of the answer; ids are made of it."""
    calls = tuple(
        Call(call.name, call.arguments, f"call_{number}_{place}")
        for place, call in enumerate(reply.calls)
    )
    endings = {Finish.LENGTH: Ending.LENGTH, Finish.REFUSED: Ending.REFUSED}
    return Draft(
        id=f"chatcmpl-{number:08}",
        model=model,
        text=reply.text + (style.leak if reply.text else ""),
        thought=reply.reasoning,
        calls=calls,
        ending=endings.get(reply.finish, Ending.CALLS if calls else Ending.STOP),
        style=style,
    )


def cut(draft: Draft, most: int) -> Draft:
    """The draft with at most so many tokens; one that is cut says that its length was why."""
    if draft.tokens <= most:
        return draft
    thought, most = cut_text(draft.thought, most)
    text, most = cut_text(draft.text, most)
    calls: list[Call] = []
    for call in draft.calls:
        most -= count(call.name)
        if most <= 0:  # a call that is cut in its name never came
            break
        arguments, most = cut_text(str(call.arguments), most)
        calls.append(replace(call, arguments=arguments))
    return replace(draft, thought=thought, text=text, calls=tuple(calls), ending=Ending.LENGTH)


def cut_text(text: str, most: int) -> tuple[str, int]:
    """The beginning of `text`, and how many tokens are left after it."""
    kept = pieces(text)[: max(most, 0)]
    return "".join(kept), most - len(kept)


def deltas(text: str) -> Iterator[str]:
    """`text` in the pieces in which it is streamed."""
    written = pieces(text)
    size = -(-len(written) // MOST_DELTAS) or 1
    for start in range(0, len(written), size):
        yield "".join(written[start : start + size])
