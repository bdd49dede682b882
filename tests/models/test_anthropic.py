"""The client for Anthropic's API, over real sockets, against a server that misbehaves."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.effects import Request
from holdfast.core.events import Failure, Finish, Reply, WantedCall
from holdfast.core.history import Entry
from holdfast.core.limits import Usage
from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.core.tokens import size_of
from holdfast.core.tools import ToolSpec
from holdfast.core.trail import BLOCK, Trail
from holdfast.models.anthropic import Anthropic
from holdfast.models.base import Count, Model, ModelError, Piece, Replied, Said, Thought
from holdfast.models.blocks import MessageSoFar, events_of
from holdfast.models.catalog import Prices
from holdfast.models.failures import json_in
from holdfast.models.sse import Event, Events
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.testing.server import Fault, Kind, Turn, faults
from holdfast.testing.server.http import Answer, Framing, Repeat
from tests.models import test_chat
from tests.models.asking import IMPATIENT, READ, ignore, outcome, request
from tests.models.test_chat import CALL, STALLING, WORDS

STREAM = {"Content-Type": "text/event-stream"}

# --- what every fault comes to --------------------------------------------------------------

STREAMED = {
    **test_chat.STREAMED,
    "wrong-key": "FAILED rejected: HTTP 401: invalid x-api-key",
    "unknown-model": "FAILED rejected: HTTP 404: model: test-model",
    "overflow": test_chat.STREAMED["overflow-anthropic"],
    "overflow-llama-cpp-python": "FAILED garbled: empty stream",
    "half-event": "FAILED garbled: the stream broke off after 10 events",
    "no-done": "FAILED garbled: the stream broke off after 21 events",
    "no-finish-reason": "FAILED garbled: the stream does not say why it ended",
    "cut-json": 'FAILED garbled: not JSON: {"type":"content_block_de',
    "window-full": "FAILED overflow: the window of 4096 tokens was full before the reply was "
    "complete <window=4096 tokens=100>",
    "calls-announced-without-any": WORDS,
    "empty-choices": "(nothing)",
    "broken-arguments-empty": "read({})",
}
"""As with `chat`, but for this."""
WHOLE = {
    **STREAMED,
    **dict.fromkeys(
        ("half-event", "cut-json"),
        'FAILED garbled: not JSON: {"id":"msg_00000001","type":"message","role":"assistant",'
        '"model":"test-model","content":[{"type":"text","text":"This is an answer of some words, '
        "so that it comes in seve",
    ),
    "no-done": WORDS,
    "broken-arguments-in-a-string": CALL,
    "broken-arguments-empty": "read({}) (a call without arguments)",
    **{
        name: test_chat.WHOLE[name]
        for name in ("error-in-stream", "overflow-llama-cpp-python", "overflow-lm-studio")
    },
}


async def outcome_of(fault: str, model_server: StartsServers, *, streams: bool) -> str:
    turn = faults.FAULTS[fault]()
    server = model_server(turn, then=turn, kind=Kind.ANTHROPIC, window=4096)
    waits = IMPATIENT if fault in STALLING else None
    model = Anthropic(server.url, "test-model", window=4096, streams=streams, waits=waits)
    line = await outcome(model, request())
    await model.aclose()
    return line.replace(server.url.removeprefix("http://"), "SERVER")


@pytest.mark.parametrize("fault", faults.FAULTS)
async def test_every_fault_of_a_stream_has_a_defined_outcome(
    fault: str, model_server: StartsServers
) -> None:
    assert await outcome_of(fault, model_server, streams=True) == STREAMED[fault]


@pytest.mark.parametrize("fault", faults.FAULTS)
async def test_every_fault_of_a_reply_that_is_not_streamed_has_a_defined_outcome(
    fault: str, model_server: StartsServers
) -> None:
    assert await outcome_of(fault, model_server, streams=False) == WHOLE[fault]


# --- what is sent ---------------------------------------------------------------------------


FILES = ToolSpec(name="files.read", description="Read a file.", parameters=READ.parameters)
CLOCK = ToolSpec(name="clock")
CONVERSATION = (
    UserMessage("What is in a.md and b.md?"),
    AssistantMessage(
        "I look.",
        (ToolCall("c1", "files.read", '{"path":"a.md"}'), ToolCall("c2", "clock", "{}")),
    ),
    ToolMessage("c1", "files.read", "Grüße"),
    ToolMessage("c2", "clock", "no clock", failed=True),
    Note("Go on."),
)
MARK = {"cache_control": {"type": "ephemeral"}}


async def test_a_conversation_is_sent_as_anthropic_has_it(model_server: StartsServers) -> None:
    server = model_server(says("Greetings."), kind=Kind.ANTHROPIC)
    model: Model = Anthropic(
        f"{server.url}/v1", "test-model", key="secret", fields={"temperature": 0.5}
    )
    asked = request(*CONVERSATION, tools=(FILES, CLOCK))

    await model.reply(replace(asked, tail=(Note("Answer now."),)), ignore)
    await model.aclose()

    (chat,) = server.chats
    assert chat.path == "/v1/messages"
    assert chat.headers["x-api-key"] == "secret"
    assert chat.headers["anthropic-version"] == "2023-06-01"
    assert chat.body == {
        "model": "test-model",
        "max_tokens": 200,
        "stream": True,
        "temperature": 0.5,
        "tools": [
            {
                "name": "files__read",
                "description": "Read a file.",
                "input_schema": json.loads(READ.parameters),
            },
            {"name": "clock", "input_schema": {"type": "object", "properties": {}}},
        ],
        "system": [{"type": "text", "text": "You are an agent.", **MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is in a.md and b.md?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {
                        "type": "tool_use",
                        "id": "c1",
                        "name": "files__read",
                        "input": {"path": "a.md"},
                    },
                    {"type": "tool_use", "id": "c2", "name": "clock", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "Grüße"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c2",
                        "content": "no clock",
                        "is_error": True,
                    },
                    {"type": "text", "text": "Go on.", **MARK},
                    {"type": "text", "text": "Answer now."},
                ],
            },
        ],
    }


def test_without_a_system_prompt_the_tools_are_marked_to_be_kept() -> None:
    body = sent(Anthropic("http://127.0.0.1:9", "m"), request(system="", tools=(FILES, CLOCK)))

    assert "system" not in body
    assert [MARK.items() <= tool.items() for tool in body["tools"]] == [False, True]


def test_tools_that_come_or_go_are_sent_so() -> None:
    model = Anthropic("http://127.0.0.1:9", "m")
    offered = request(tools=(FILES,))
    bodies = [sent(model, each) for each in (offered, replace(offered, tools=()))]

    assert ["tools" in body for body in bodies] == [True, False]


def test_nothing_that_a_request_alone_says_is_marked_to_be_kept() -> None:
    asked = Request("", (), (), Trail(), (Note("Hello?"),), 100)

    assert sent(Anthropic("http://127.0.0.1:9", "m"), asked)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hello?"}]}
    ]


def test_how_tools_are_chosen_is_left_out_where_there_are_none() -> None:
    model = Anthropic("http://127.0.0.1:9", "m", fields={"tool_choice": {"type": "auto"}})

    assert sent(model, request())["tool_choice"] == {"type": "auto"}
    assert "tool_choice" not in sent(model, request(tools=()))


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
a_call = st.just(ToolCall("c1", "files.read", '{"path":"é\\n"}'))
messages = st.one_of(
    st.builds(UserMessage, texts),
    st.builds(Note, texts),
    st.builds(AssistantMessage, texts, st.lists(a_call, max_size=2).map(tuple)),
    st.builds(ToolMessage, st.just("c1"), st.just("files.read"), texts, st.booleans()),
)


@given(
    st.lists(messages, max_size=3),
    st.lists(messages, max_size=8),
    st.lists(st.builds(Note, texts), max_size=2),
    st.sampled_from([0, BLOCK - 2, 3 * BLOCK]),
)
def test_messages_are_joined_and_marked_as_a_plain_encoding_would(
    head: list[Message], said: list[Message], tail: list[Note], before: int
) -> None:
    model = Anthropic("http://127.0.0.1:9", "m")
    body: list[Message] = [UserMessage(f"{number}") for number in range(before)]
    asked = Request("", (), entries(head), Trail(), tuple(tail), 100)

    for length in (len(body), len(body) + len(said)):  # the second time much is known
        stays = [*head, *(body + said)[:length]]
        asked = replace(asked, body=Trail.of(entries(stays[len(head) :])))

        assert sent(model, asked)["messages"] == plainly(stays, tail)


def entries(said: Iterable[Message]) -> tuple[Entry, ...]:
    return tuple(Entry(message, size_of(message)) for message in said)


def plainly(stays: Sequence[Message], tail: Sequence[Note]) -> list[dict[str, object]]:
    """What the format asks for, written the simple way."""
    blocks = [(role_of(message), list(plain_blocks(message))) for message in stays]
    if blocks:
        blocks[-1][1][-1] |= MARK
    blocks += [("user", list(plain_blocks(note))) for note in tail]
    joined: list[dict[str, Any]] = []
    for role, several in blocks:
        if joined and joined[-1]["role"] == role:
            joined[-1]["content"] += several
        else:
            joined.append({"role": role, "content": several})
    return joined


def role_of(message: Message) -> str:
    return "assistant" if isinstance(message, AssistantMessage) else "user"


def plain_blocks(message: Message) -> Iterable[dict[str, object]]:
    match message:
        case ToolMessage(call_id, _, text, failed):
            error = {"is_error": True} if failed else {}
            content = text if text.strip() else "(nothing)"
            yield {"type": "tool_result", "tool_use_id": call_id, "content": content, **error}
        case AssistantMessage(text, wanted) if wanted:
            if text.strip():
                yield {"type": "text", "text": text}
            for call in wanted:
                arguments = json.loads(call.arguments)
                yield {"type": "tool_use", "id": call.id, "name": "files__read", "input": arguments}
        case _:
            yield {"type": "text", "text": message.text if message.text.strip() else "(nothing)"}


def sent(model: Anthropic, asked: Request) -> Any:
    return json.loads(model.body(asked))


# --- what comes back ------------------------------------------------------------------------


def start(index: int, **block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def change(index: int, kind: str, **delta: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def stop(index: int) -> dict[str, object]:
    return {"type": "content_block_stop", "index": index}


def ending(reason: str | None = "end_turn", **usage: int) -> list[dict[str, object]]:
    delta = {"stop_reason": reason}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


BEGINNING = {
    "type": "message_start",
    "message": {
        "model": "claude-x",
        "usage": {
            "input_tokens": 20,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 1000,
            "output_tokens": 1,
        },
    },
}
THINKING = (
    start(0, type="thinking", thinking="", signature=""),
    change(0, "thinking_delta", thinking="A file"),
    change(0, "thinking_delta", thinking=", then."),
    change(0, "signature_delta", signature="c2ln"),
    stop(0),
    start(1, type="redacted_thinking", data="c2VjcmV0"),
    stop(1),
)
CALLING = (
    start(2, type="text", text=""),
    change(2, "text_delta", text="I look."),
    stop(2),
    start(3, type="tool_use", id="toolu_1", name="read", input={}),
    change(3, "input_json_delta", partial_json=""),
    change(3, "input_json_delta", partial_json='{"path"'),
    change(3, "input_json_delta", partial_json=': "a.md"}'),
    stop(3),
    *ending("tool_use", output_tokens=42),
)
OWED = (
    '[[0,{"type":"thinking","thinking":"A file, then.","signature":"c2ln"}],'
    '[0,{"type":"redacted_thinking","data":"c2VjcmV0"}]]'
)


def streamed(*events: object) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def heard(*events: object, keeps_unsigned: bool = False) -> Replied:
    so_far = MessageSoFar(keeps_unsigned=keeps_unsigned)
    for event in events:
        so_far.feed(event)
    return so_far.finish()


async def test_thoughts_words_and_calls_come_as_they_were_sent(
    model_server: StartsServers,
) -> None:
    body = streamed(BEGINNING, {"type": "ping"}, *THINKING, *CALLING)
    server = model_server(faults.http(200, body, STREAM), kind=Kind.ANTHROPIC)
    prices = Prices(input=1_000_000, output=2_000_000, cached=100_000, written=1_250_000)
    model = Anthropic(server.url, "test-model", prices=prices)
    told: list[Piece] = []

    replied = await model.reply(request(), told.append)
    await model.aclose()

    assert told == [
        Thought("A file", "thinking"),
        Thought(", then.", "thinking"),
        Said("I look."),
    ]
    assert replied == Replied(
        Reply(
            text="I look.",
            calls=(WantedCall("read", '{"path": "a.md"}', "toolu_1"),),
            reasoning="A file, then.",
            owed=OWED,
        ),
        Usage(prompt=1320, completion=42, cached=1000, cost=20 + 375 + 100 + 84),
        "claude-x",
    )


def test_a_message_that_comes_whole_reads_like_one_that_is_streamed() -> None:
    message = {
        "type": "message",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "A file, then.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.md"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1320, "output_tokens": 42},
    }

    whole, in_pieces = heard(*events_of(message)), heard(BEGINNING, *THINKING, *CALLING)

    assert whole.usage == Usage(prompt=1320, completion=42)
    arguments = WantedCall("read", '{"path":"a.md"}', "toolu_1")
    assert whole.reply == replace(in_pieces.reply, calls=(arguments,))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("pause_turn", Finish.LENGTH),
        ("refusal", Finish.REFUSED),
    ],
)
def test_it_is_known_why_the_model_stopped(reason: str, finish: Finish) -> None:
    replied = heard(BEGINNING, start(0, type="text", text="So"), *ending(reason))

    assert replied.reply == Reply(text="So", finish=finish)


async def test_a_reply_that_the_window_ended_is_an_overflow(model_server: StartsServers) -> None:
    body = streamed(BEGINNING, start(0, type="text", text="Once"), *ending(FULL, output_tokens=9))
    server = model_server(faults.http(200, body, STREAM), kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model", window=200_000)

    told = await outcome(model, request())
    await model.aclose()

    assert told == (
        "FAILED overflow: the window of 200000 tokens was full before the reply was complete "
        "<window=200000 tokens=1320>"
    )


FULL = "model_context_window_exceeded"


def test_people_are_told_why_a_reply_was_refused() -> None:
    details = {"type": "refusal", "explanation": "This could do harm."}
    delta = {"stop_reason": "refusal", "stop_details": details}

    replied = heard(BEGINNING, {"type": "message_delta", "delta": delta}, {"type": "message_stop"})

    assert replied.reply.finish is Finish.REFUSED
    assert replied.notes == ("refused: This could do harm.",)


@pytest.mark.parametrize(
    "events",
    [
        [start(0, type="tool_use", name="clock", input={}), stop(0)],
        [start(0, type="tool_use", name="clock", input={})],
        [start(0, type="tool_use", name="clock", input=""), stop(0)],
        [start(0, type="tool_use", name="clock"), change(0, "input_json_delta", partial_json="")],
    ],
)
def test_a_call_without_input_has_no_arguments(events: list[object]) -> None:
    replied = heard(BEGINNING, *events, *ending("tool_use"))

    assert replied.reply.calls == (WantedCall("clock", "{}"),)


def test_calls_that_the_server_numbers_alike_and_never_ends_are_still_two() -> None:
    first = start(0, type="tool_use", id="a", name="read", input={"path": "a.md"})
    second = start(0, type="tool_use", id="b", name="read", input={"path": "a.md"})

    replied = heard(BEGINNING, first, second, *ending("tool_use"))

    assert replied.reply.calls == (
        WantedCall("read", '{"path":"a.md"}', "a"),
        WantedCall("read", '{"path":"a.md"}', "b"),
    )


def test_arguments_without_a_call_are_a_failure() -> None:
    with pytest.raises(ModelError, match="arguments came without a call"):
        heard(BEGINNING, change(4, "input_json_delta", partial_json='{"path"'))


def test_the_input_of_a_tool_that_the_server_runs_itself_is_not_ours() -> None:
    search = start(0, type="server_tool_use", id="s", name="web_search", input={})

    replied = heard(
        search,
        change(0, "input_json_delta", partial_json='{"query": "x"}'),
        start(1, type="text", text="Found."),
        *ending(),
    )

    assert replied.reply == Reply(text="Found.")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, Failure.BUSY),
        ({"type": "rate_limit_error", "message": "Slow down"}, Failure.BUSY),
        ({"type": "api_error", "message": "Internal server error"}, Failure.GARBLED),
        ({"type": "authentication_error", "message": "invalid x-api-key"}, Failure.REJECTED),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_a_failure(
    error: dict[str, str], failure: Failure
) -> None:
    with pytest.raises(ModelError) as raised:
        heard(BEGINNING, start(0, type="text", text="Yes"), {"type": "error", "error": error})

    assert raised.value.failure is failure
    assert raised.value.detail == f"error in the reply: {error['message']}"


def test_an_error_is_one_also_without_its_wrapping() -> None:
    with pytest.raises(ModelError, match="busy: error in the reply: Overloaded"):
        heard(BEGINNING, {"type": "error", "message": "Overloaded"})


async def test_an_overloaded_server_is_busy(model_server: StartsServers) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server = model_server(faults.http(529, json.dumps(error)), kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model")

    told = await outcome(model, request())
    await model.aclose()

    assert told == "FAILED busy: HTTP 529: Overloaded"


async def test_pings_do_not_prove_that_a_model_is_at_work(model_server: StartsServers) -> None:
    ping = Repeat(b'event: ping\ndata: {"type": "ping"}\n\n', pause=0.02)
    pinging = Answer(200, STREAM, (streamed(BEGINNING).encode(), ping), Framing.CHUNKED)
    turn = Fault("pings", says(""), garble=lambda _, scene: pinging)
    server = model_server(turn, kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model", waits=IMPATIENT)

    told = await outcome(model, request())
    await model.aclose()

    assert told.startswith("FAILED gone: nothing came from")


async def test_what_was_read_before_is_counted_as_part_of_the_prompt(
    model_server: StartsServers,
) -> None:
    server = model_server(says("One."), says("Two."), kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model")
    more = (*CONVERSATION, AssistantMessage("One."), UserMessage("And?"))

    first = await model.reply(request(*CONVERSATION, tools=(FILES, CLOCK)), ignore)
    second = await model.reply(request(*more, tools=(FILES, CLOCK)), ignore)
    await model.aclose()

    assert first.usage is not None
    assert second.usage is not None
    assert [first.usage.prompt, second.usage.prompt] == [chat.tokens for chat in server.chats]
    assert second.usage.cached > first.usage.prompt * 0.9


async def test_the_server_counts_a_request_before_it_is_sent(model_server: StartsServers) -> None:
    server = model_server(says("Hello."), kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model", fields={"temperature": 0.5})
    asked = request(*CONVERSATION, tools=(FILES, CLOCK))

    counted = await model.count(asked)
    replied = await model.reply(asked, ignore)
    await model.aclose()

    assert replied.usage is not None
    assert counted == Count(replied.usage.prompt, "the server")
    allowed = {"model", "messages", "system", "tools"}
    assert isinstance(server.received[0].body, dict)
    assert set(server.received[0].body) == allowed


async def test_llama_cpp_is_understood_too(model_server: StartsServers) -> None:
    server = model_server(calls("read", path="a.md"), says("Done."), kind=Kind.LLAMA_CPP)
    model = Anthropic(server.url, "test-model")

    told = [await outcome(model, request()), await outcome(model, request())]
    await model.aclose()

    assert told == ['read({"path": "a.md"})', "'Done.'"]


# --- thoughts that are owed -----------------------------------------------------------------


def with_thoughts(owed: str, *more: Message) -> Request:
    call = ToolCall("c1", "read", '{"path":"a.md"}')
    round_ = (AssistantMessage("I look.", (call,), owed), ToolMessage("c1", "read", "Grüße"))
    return request(UserMessage("What is in a.md?"), *round_, *more)


def kinds_sent(asked: Request, model: Anthropic | None = None) -> list[str]:
    """The kinds of the blocks in the first reply of the history."""
    body = sent(model or Anthropic("http://127.0.0.1:9", "m"), asked)
    return [block["type"] for block in body["messages"][1]["content"]]


def test_thoughts_go_back_unchanged_in_front_of_the_calls_they_came_with() -> None:
    (_, reply, _) = sent(Anthropic("http://127.0.0.1:9", "m"), with_thoughts(OWED))["messages"]

    assert reply["content"] == [
        {"type": "thinking", "thinking": "A file, then.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.md"}},
    ]


def test_thoughts_between_two_calls_go_back_between_them() -> None:
    def call(index: int) -> list[dict[str, object]]:
        return [start(index, type="tool_use", id=f"t{index}", name="clock", input={}), stop(index)]

    def thought(index: int) -> list[dict[str, object]]:
        signed = {"type": "thinking", "thinking": f"{index}", "signature": "c2ln"}
        return [start(index, **signed), stop(index)]

    heard_events = (*thought(0), *call(1), *thought(2), *call(3), *thought(4), *ending("tool_use"))
    owed = heard(*heard_events).reply.owed
    wanted = (ToolCall("c1", "clock", "{}"), ToolCall("c2", "clock", "{}"))
    results = [ToolMessage(call.id, "clock", "12:00") for call in wanted]
    asked = request(UserMessage("When?"), AssistantMessage("", wanted, owed), *results)

    # What was thought after the last call has nothing to stand before.
    assert kinds_sent(asked) == ["thinking", "tool_use", "thinking", "tool_use"]


def test_thoughts_that_nobody_signed_are_owed_only_where_thinking_was_asked_for() -> None:
    thought = [start(0, type="thinking", thinking="Hm."), stop(0)]
    call = [start(1, type="tool_use", name="clock", input={}), *ending("tool_use")]

    asked_for = heard(*thought, *call, keeps_unsigned=True)
    by_itself = heard(*thought, *call)

    assert asked_for.reply.owed == '[[0,{"type":"thinking","thinking":"Hm."}]]'
    assert by_itself.reply.owed == ""


def test_thoughts_without_calls_are_not_owed() -> None:
    assert heard(*THINKING, start(2, type="text", text="No."), *ending()).reply.owed == ""


@pytest.mark.parametrize(
    "owed",
    [
        "",
        "not JSON",
        '{"thought_signature":"abc"}',
        '[{"type":"reasoning","id":"rs_1"}]',
        '[[0,{"type":"text","text":"I am the user"}]]',
        '[["0",{"type":"thinking"}]]',
        '[[0,{"type":"thinking","thinking":1e999}]]',
    ],
)
def test_what_another_client_sealed_is_not_sent(owed: str) -> None:
    assert kinds_sent(with_thoughts(owed)) == ["text", "tool_use"]


def test_a_reply_without_calls_sends_no_thoughts() -> None:
    asked = request(UserMessage("Hello?"), AssistantMessage("Hi.", (), OWED), UserMessage("And?"))

    assert kinds_sent(asked) == ["text"]


# --- what is done about a refusal -----------------------------------------------------------


def refusing(message: str) -> Fault:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return faults.http(400, json.dumps(error))


PREFIX = "messages.1.content.0: Invalid `signature` in `thinking` block"


async def test_thoughts_that_are_refused_are_left_out_for_good_and_later_ones_are_sent(
    model_server: StartsServers,
) -> None:
    script: tuple[Turn, ...] = (refusing(PREFIX), says("One."), says("Two."))
    server = model_server(*script, kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model")
    call = ToolCall("c2", "read", "{}")
    later = AssistantMessage("", (call,), OWED.replace("A file", "Another"))
    asked = with_thoughts(OWED)
    more = with_thoughts(OWED, later, ToolMessage("c2", "read", "Hello"))

    told = [await outcome(model, asked), await outcome(model, more)]
    await model.aclose()

    assert told == [
        f"'One.' (asked again without the thoughts of before, because HTTP 400: {PREFIX})",
        "'Two.'",
    ]
    thoughts = [chat.raw.count(b'"type":"thinking"') for chat in server.chats]
    assert thoughts == [1, 0, 1]


@pytest.mark.parametrize(
    "message",
    [
        "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ],
)
async def test_a_request_that_cannot_be_thought_about_is_made_without_thinking(
    message: str, model_server: StartsServers
) -> None:
    script: tuple[Turn, ...] = (refusing(message), says("One."), says("Two."))
    server = model_server(*script, kind=Kind.ANTHROPIC)
    thinking = {"type": "enabled", "budget_tokens": 1024}
    model = Anthropic(server.url, "test-model", fields={"thinking": thinking})

    first, second = await outcome(model, request()), await outcome(model, request())
    await model.aclose()

    assert first.startswith("'One.' (asked again without thinking, because HTTP 400: ")
    assert second == "'Two.'"
    assert [b'"thinking"' in chat.raw for chat in server.chats] == [True, False, True]


async def test_a_history_with_calls_is_concluded_also_where_tools_are_demanded(
    model_server: StartsServers,
) -> None:
    needs = "Requests which include `tool_use` or `tool_result` blocks must define tools."
    script: tuple[Turn, ...] = (refusing(needs), says("One."), says("Two."), says("Three."))
    server = model_server(*script, kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model")
    conclude = request(*CONVERSATION, tools=())

    told = [await outcome(model, each) for each in (conclude, conclude, request(tools=()))]
    await model.aclose()

    assert told == [
        f"'One.' (asked again with a tool that stands for none, because HTTP 400: {needs})",
        "'Two.'",
        "'Three.'",
    ]
    bodies = [chat.body for chat in server.chats if isinstance(chat.body, dict)]
    assert [body.get("tool_choice") for body in bodies] == [
        None,
        {"type": "none"},
        {"type": "none"},
        None,
    ]


async def test_a_server_that_knows_no_marks_is_asked_without_them(
    model_server: StartsServers,
) -> None:
    unknown = "system.0.cache_control: Extra inputs are not permitted"
    server = model_server(refusing(unknown), says("One."), says("Two."), kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model")
    asked = request()

    told = [await outcome(model, asked), await outcome(model, asked)]
    await model.aclose()

    assert told[1] == "'Two.'"
    assert [chat.raw.count(b"cache_control") for chat in server.chats] == [2, 0, 0]


@pytest.mark.parametrize(
    "message",
    [PREFIX, "cache_control is not known here", "blocks must define tools", "budget_tokens"],
)
async def test_the_same_refusal_twice_is_final(message: str, model_server: StartsServers) -> None:
    server = model_server(refusing(message), refusing(message), kind=Kind.ANTHROPIC)
    model = Anthropic(server.url, "test-model", fields={"thinking": {"type": "adaptive"}})

    told = await outcome(model, with_thoughts(OWED))
    await model.aclose()

    assert told == f"FAILED rejected: HTTP 400: {message}"
    assert len(server.chats) == 2


# --- whatever comes -------------------------------------------------------------------------


def read_in_pieces(data: bytes, cuts: Iterable[int]) -> Replied:
    so_far, events = MessageSoFar(), Events()
    ends = [*sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in zip([0, *ends], ends, strict=False):
        for event in events.feed(data[begin:end]):
            if isinstance(event, Event) and not so_far.stopped:
                so_far.feed(json_in(event.data))
    return so_far.finish()


@given(st.lists(st.integers(0, 1500), max_size=8))
def test_it_does_not_matter_in_which_pieces_a_stream_comes(cuts: list[int]) -> None:
    data = streamed(BEGINNING, *THINKING, *CALLING).encode()

    assert read_in_pieces(data, cuts) == read_in_pieces(data, [])


names = st.sampled_from(
    ["type", "index", "delta", "content_block", "message", "usage", "content", "text", "thinking"]
    + ["signature", "data", "partial_json", "input", "id", "name", "stop_reason", "stop_details"]
    + ["explanation", "input_tokens", "output_tokens", "cache_read_input_tokens", "error", "model"]
)
kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "ping"]
    + ["message_delta", "message_stop", "error", "text", "text_delta", "tool_use", "thinking"]
    + ["input_json_delta", "thinking_delta", "signature_delta", "redacted_thinking", "message"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars | kinds | st.sampled_from(["end_turn", "max_tokens", '{"a":', "<think>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6),
    max_leaves=6,
)
indexes = st.integers(0, 2) | values
events_like = st.one_of(
    values,
    st.fixed_dictionaries(
        {"type": kinds, "index": indexes},
        optional={
            "content_block": st.fixed_dictionaries(
                {"type": kinds},
                optional={name: values for name in ("text", "thinking", "input", "name", "id")},
            ),
            "delta": st.fixed_dictionaries(
                {"type": kinds},
                optional={
                    name: values
                    for name in ("text", "thinking", "signature", "partial_json", "stop_reason")
                },
            ),
            "message": values,
            "usage": values,
        },
    ),
)


@given(st.lists(events_like, max_size=8), st.booleans())
def test_whatever_comes_is_a_reply_or_a_failure(sent_: list[object], keeps: bool) -> None:
    for events in ([*sent_, *ending()], [each for event in sent_ for each in events_of(event)]):
        try:
            replied = heard(*events, keeps_unsigned=keeps)
        except ModelError:
            continue
        assert isinstance(replied, Replied)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_bytes_that_are_no_stream_are_a_failure(data: bytes, cuts: list[int]) -> None:
    with pytest.raises(ModelError):
        read_in_pieces(data, cuts)
