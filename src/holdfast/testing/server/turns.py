"""What a script is made of: a reply, a fault, or a function that looks at the request first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.core.events import Reply, WantedCall
from holdfast.core.jsontext import dumped
from holdfast.testing.script import Says, says, several
from holdfast.testing.server.asked import Asked, object_in, objects_in, text_in
from holdfast.testing.server.draft import Draft
from holdfast.testing.server.http import Answer
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.record import Received

SOME_WORDS = says("This is an answer of some words, so that it comes in several pieces.")


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault may look at: who is asked, and for what."""

    kind: Kind
    window: int
    asked: Asked
    received: Received


@dataclass(frozen=True, slots=True)
class Fault:
    """A turn that goes wrong. `faults` has one function for each kind of it."""

    name: str
    of: "Turn"
    """The turn that would have been right."""
    spoil: Callable[[Draft, Scene], Draft] | None = None
    """What it does to the reply before it is written."""
    garble: Callable[[Answer, Scene], Answer] | None = None
    """What it does to the answer, which is bytes by then."""
    times: int = 1
    """How many requests it meets."""
    loading: bool = False
    """The model is not there yet: every request is told so, also one that asks for no reply."""


Decided: TypeAlias = Says | Reply | Fault
Turn: TypeAlias = Decided | Callable[[Received], Decided]


def first_tool(received: Received) -> Says:
    """Calls the first tool that is offered, with arguments that fit its schema."""
    tools = objects_in(object_in(received.body).get("tools"))
    offered = [object_in(tool.get("function")) or tool for tool in tools]
    if not offered:
        return several(WantedCall("clock"))
    schema = offered[0].get("parameters") or offered[0].get("input_schema")
    arguments = example({"type": "object", **object_in(schema)})
    return several(WantedCall(str(offered[0].get("name")), dumped(arguments)))


def example(schema: object, deepest: int = 5) -> object:
    """A value that fits a simple JSON schema."""
    wanted = object_in(schema)
    choices = wanted.get("enum")
    if "const" in wanted or "default" in wanted:
        return wanted.get("const", wanted.get("default"))
    if isinstance(choices, list) and choices:
        return choices[0]
    match wanted.get("type", "object" if "properties" in wanted else "string"):
        case "object" if deepest:
            required = wanted.get("required")
            properties = object_in(wanted.get("properties"))
            names = required if isinstance(required, list) else ()
            return {str(name): example(properties.get(str(name)), deepest - 1) for name in names}
        case "integer":
            return 1
        case "number":
            return 1.5
        case "boolean":
            return True
        case "array":
            return [example(wanted.get("items"), deepest - 1)][:deepest]
        case "null":
            return None
        case _:
            return "example"


def helpful(received: Received) -> Says:
    """Calls the first tool that is offered, and then says what it returned."""
    body = object_in(received.body)
    messages = objects_in(body.get("messages"))
    news = messages[last_of_assistant(messages) + 1 :]
    results = [result for message in news if (result := result_in(message)) is not None]
    if results:
        return says(f"The tool returned: {results[-1][:2000]}")
    if body.get("tools"):
        return first_tool(received)
    last = news[-1] if news else {}
    return says(f"You said: {text_in(last.get('content'))[:2000]}")


def last_of_assistant(messages: list[Mapping[str, object]]) -> int:
    places = [place for place, each in enumerate(messages) if each.get("role") == "assistant"]
    return places[-1] if places else -1


def result_in(message: object) -> str | None:
    """The text of a tool's result, if that is what the message is."""
    fields = object_in(message)
    if fields.get("role") == "tool":
        return text_in(fields.get("content"))
    parts = objects_in(fields.get("content"))
    results = [part for part in parts if part.get("type") == "tool_result"]
    return text_in(results[-1].get("content")) if results else None
