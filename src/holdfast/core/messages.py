"""What is said: the messages of a conversation, as plain values.

Two messages with the same content are equal; identity, time and storage live elsewhere.
What a message costs is `tokens`, which of them are sent is `window`.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A wish of the model. `arguments` is always the text of a JSON object."""

    id: str
    """Ours, never the model's: servers send missing, empty and repeated ids."""
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    text: str
    calls: tuple[ToolCall, ...] = ()
    owed: str = ""
    """Sealed words of the provider that must go back to it with the calls they came with."""


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The one result of one call, as the model sees it: cut to its cap, or a digest."""

    call_id: str
    tool: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Said by the harness, in the user's role: a nudge, a digest, an instruction."""

    text: str


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage | Note


def clean(text: str) -> str:
    """`text` as every server and disk accepts it: no NUL, no lone surrogate.

    Surrogate pairs that arrived as two characters become the one they mean.
    """
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
