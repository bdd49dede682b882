"""What a client asked for, whatever the API it came by: the common ground of counting, judging
and answering. How each API writes it is read in `openai`, `ollama` and `anthropic`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from holdfast.testing.server.draft import Draft
from holdfast.testing.server.json import encoded
from holdfast.testing.server.tokens import count


@dataclass(frozen=True, slots=True)
class Made:
    """A call in the history, as the client wrote it: nothing of it need be right."""

    id: object
    name: object
    arguments: object


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message in the history."""

    place: str
    """Where it stands, in words for a complaint."""
    role: str
    text: str = ""
    calls: tuple[Made, ...] = ()
    answers: object = None
    """Of a result: the id of its call."""
    shows: bool = False
    """There is more in it than text: an image, say."""


@dataclass(frozen=True, slots=True)
class Tool:
    name: object
    parameters: object
    whole: object
    """The definition as it came, which is what is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    api: "Api"
    body: Mapping[str, object]
    model: str
    stream: bool
    messages: tuple[Spoken, ...]
    """The system prompt is one of them, also where the API keeps it apart."""
    tools: tuple[Tool, ...]
    output: object
    """The tokens the answer may take, as the client wrote it; None where it did not."""
    wants_usage: bool = True
    """OpenAI's API counts the tokens of a stream only if asked to."""
    window: int | None = None
    """The window this request asks for. Only Ollama gives one to a request."""
    truncates: bool = False
    """What does not fit may be cut off in silence."""
    shifts: bool = False
    """The answer may go on when the window is full: the front of the prompt makes room for it."""

    @property
    def prompt(self) -> str:
        """The text a model would be given, and the one that is counted."""
        return "".join(rendered(self))

    @property
    def tokens(self) -> int:
        return count(self.prompt)

    @property
    def room(self) -> int | None:
        """The tokens the answer may take; None if that is not said in a way that can be meant."""
        if not isinstance(self.output, int) or isinstance(self.output, bool) or self.output <= 0:
            return None
        return self.output


class ApiName(Enum):
    OPENAI = "OpenAI"
    OLLAMA = "Ollama"
    ANTHROPIC = "Anthropic"


@dataclass(frozen=True, slots=True)
class Api:
    """How one API is spoken. The functions stand in the module of that name."""

    name: ApiName
    read: Callable[[Mapping[str, object]], Asked]
    whole: Callable[[Draft], object]
    """The document that is the answer, if it is not streamed."""
    pieces: Callable[[Draft], Iterator[bytes]]
    """The answer as a stream: one event or line each."""


def rendered(asked: Asked) -> Iterator[str]:
    """A chat template like that of most small models; no real one in particular."""
    if asked.tools:
        yield "<|im_start|>tools\n"
        yield from (encoded(tool.whole).decode() + "\n" for tool in asked.tools)
        yield "<|im_end|>\n"
    for message in asked.messages:
        yield f"<|im_start|>{message.role}\n{message.text}"
        for call in message.calls:
            made = {"name": call.name, "arguments": call.arguments}
            yield f"\n<tool_call>{encoded(made).decode()}</tool_call>"
        yield "<|im_end|>\n"
    yield "<|im_start|>assistant\n"


def text_in(content: object) -> str:
    """The text of a message: a string, or the texts among its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def objects_in(value: object) -> list[Mapping[str, object]]:
    """The objects of a list. What else is in it is the judge's business."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def object_in(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
