"""Messages become bytes once, and the bytes are what a plain encoding would give."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.effects import Request
from holdfast.core.history import Entry
from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.core.tokens import size_of
from holdfast.core.trail import BLOCK, Trail
from holdfast.models.chat import native
from holdfast.models.encoding import Encoded, Encoder

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
calls = st.builds(ToolCall, st.just("c1"), st.just("files.read"), st.just('{"path":"é\\n"}'))
messages = st.one_of(
    st.builds(UserMessage, texts),
    st.builds(Note, texts),
    st.builds(AssistantMessage, texts, st.lists(calls, max_size=2).map(tuple)),
    st.builds(ToolMessage, st.just("c1"), st.just("files.read"), texts),
)


def request(head: Sequence[Message], body: Sequence[Message], tail: Sequence[Note]) -> Request:
    def entry(message: Message) -> Entry:
        return Entry(message, size_of(message))

    entries = Trail.of(map(entry, body))
    return Request("", (), tuple(map(entry, head)), entries, tuple(tail), 100)


def plainly(every: Sequence[Message]) -> list[dict[str, object]]:
    """What the format asks for, written the simple way."""
    sent: list[dict[str, object]] = []
    for message in every:
        match message:
            case UserMessage(text) | Note(text):
                sent.append({"role": "user", "content": text})
            case ToolMessage(call_id, _, text):
                sent.append({"role": "tool", "tool_call_id": call_id, "content": text})
            case AssistantMessage(text, wanted):
                sent.append({"role": "assistant", "content": text})
                if wanted:
                    sent[-1]["tool_calls"] = [
                        {
                            "id": call.id,
                            "type": "function",
                            "function": {"name": "files__read", "arguments": call.arguments},
                        }
                        for call in wanted
                    ]
        if len(sent) > 1 and [*sent[-1]] == [*sent[-2]] == ["role", "content"]:
            last, before = sent[-1], sent[-2]
            if last["role"] == before["role"]:
                sent[-2:] = [{**last, "content": f"{before['content']}\n\n{last['content']}"}]
    return sent


@given(
    st.lists(messages, max_size=3),
    st.lists(messages, max_size=3),
    st.lists(messages, max_size=3),
    st.lists(st.builds(Note, texts), max_size=2),
)
def test_messages_are_encoded_as_a_plain_encoder_would(
    head: list[Message], few: list[Message], last: list[Message], tail: list[Note]
) -> None:
    body = [*few * BLOCK, *last]  # so that there are full blocks, and ends between all kinds
    encoder = Encoder(native)

    first = encoder.messages(request(head, body, tail))
    again = encoder.messages(request(head, body, tail))

    assert json.loads(b"".join([b"[", *first, b"]"])) == plainly([*head, *body, *tail])
    assert again == first


def test_a_round_encodes_what_it_adds_and_nothing_again() -> None:
    encoded: list[Message] = []

    def counted(message: Message) -> Encoded:
        encoded.append(message)
        return native(message)

    encoder, body = Encoder(counted), Trail[Entry]()
    head = (Entry(note := Note("the digest"), size_of(note)),)
    said: list[Message] = [note]
    for number in range(5 * BLOCK):
        message = UserMessage(str(number)) if number % 2 else AssistantMessage(str(number))
        said.append(message)
        body = body.adding(Entry(message, size_of(message)))
        encoder.messages(Request("", (), head, body, (), 100))

    assert encoded == said


def test_what_was_encoded_is_kept_only_up_to_its_bound() -> None:
    encoded: list[Message] = []

    def counted(message: Message) -> Encoded:
        encoded.append(message)
        return native(message)

    encoder = Encoder(counted, most_kept=3_000)
    small = request([], [UserMessage("small")], [])
    encoder.messages(small)
    encoder.messages(small)
    assert len(encoded) == 1

    large = request([], [UserMessage("x" * 2_700)], [])
    assert encoder.messages(large) == encoder.messages(large)
    encoder.messages(small)

    assert [type(each) for each in encoded] == [UserMessage] * 3
