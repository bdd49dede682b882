"""The client for `/v1/chat/completions`, over real sockets, against a server that misbehaves."""

import json
from dataclasses import replace

import anyio
import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.core.limits import Usage
from holdfast.core.messages import AssistantMessage, Note, ToolCall, ToolMessage, UserMessage
from holdfast.models.base import Count, Piece, Said, TakenBack, Thought
from holdfast.models.catalog import Prices
from holdfast.models.chat import Chat
from holdfast.models.spoken import Dialect
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.testing.server import Kind, ModelServer, faults
from tests.models.asking import CLOCK, IMPATIENT, READ, ignore, line_of, outcome, request

WORDS = repr("This is an answer of some words, so that it comes in several pieces.")
CALL = 'read({"path":"example"})'
STALLING = ("silence", "stall", "keep-alive-only", "overflow-llamafile")


# --- what every fault comes to --------------------------------------------------------------

STREAMED = {
    "http": "FAILED garbled: HTTP 500: without a word",
    "busy": "FAILED busy: HTTP 429: Rate limit reached for this model. Please try again later. <wait=1.0>",
    "unavailable": "FAILED busy: HTTP 503: The server is currently overloaded.",
    "loading": "FAILED busy: HTTP 503: Loading model <loading=True>",
    "wrong-key": "FAILED rejected: HTTP 401: Invalid API Key",
    "unknown-model": "FAILED rejected: HTTP 404: The model `test-model` does not exist.",
    "malformed-history": "FAILED garbled: HTTP 500: Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 10: syntax error",
    "html-page": "FAILED garbled: not JSON: a page: Welcome to the hotel network",
    "overflow": "FAILED overflow: HTTP 400: request (4097 tokens) exceeds the available context size (4096 tokens), try increasing it <window=4096 tokens=4097>",
    "close-before-answering": "FAILED gone: SERVER closed the connection",
    "silence": "FAILED gone: nothing came from SERVER for 0.3 seconds",
    "stall": "FAILED gone: nothing came from SERVER for 0.3 seconds",
    "dropped-stream": "FAILED gone: the answer of SERVER broke off",
    "reset-stream": "FAILED gone: the answer of SERVER broke off",
    "half-event": "FAILED garbled: the stream broke off in the middle of an event",
    "empty-stream": "FAILED garbled: empty stream",
    "keep-alive-only": "FAILED gone: nothing came from SERVER for 0.3 seconds",
    "keep-alive-comments": WORDS,
    "trickle": WORDS,
    "split-characters": "'Grüße aus Zürich. 你好，世界。 👋🏽 Ça va?'",
    "crlf": WORDS,
    "gzipped": WORDS,
    "long-line": WORDS,
    "cut-json": 'FAILED garbled: not JSON: {"id":"chatcmpl-00000001","object":"chat.completion.chunk","created":1800000000,"model":"test-model",',
    "utf8-garbage": "'This is an answer of some words, so that it comes in several pieces. ��(�!'",
    "nul": "'This is an answer of some words, so that it comes in several pieces.�!'",
    "lone-surrogate": "'This is an answer of some words, so that it comes in several pieces.�!'",
    "giant-reply": "'All work and no play… 4194304 chars'",
    "no-finish-reason": WORDS
    + " (asked again without a stream, because the stream does not say why it ended)"
    + " (no finish reason)",
    "no-done": WORDS,
    "error-in-stream": "FAILED garbled: error in the reply: The model produced output that does not match the expected peg-native format",
    "window-full": "FAILED overflow: the window of 4096 tokens was full before the reply was complete <window=4096 tokens=115>",
    "call-cut-by-length": 'read({"path":") [length]',
    "stop-with-calls": CALL,
    "calls-announced-without-any": WORDS + " (calls were announced, and none came)",
    "missing-ids": CALL,
    "empty-ids": CALL,
    "duplicate-ids": CALL + ' read({"path":"example"})',
    "arguments-as-object": CALL,
    "content-null": "(nothing)",
    "content-as-parts": WORDS,
    "empty-choices": "FAILED garbled: no finish reason, and nothing whole was said",
    "no-usage": WORDS,
    "zero-usage": WORDS,
    "wrong-usage": WORDS,
    "other-model": WORDS,
    "overflow-openai": "FAILED overflow: HTTP 400: This model's maximum context length is 4096 tokens. However, your messages resulted in 4097 tokens. Please reduce the length of the messages. <window=4096 tokens=4097>",
    "overflow-llama.cpp": "FAILED overflow: HTTP 400: request (4097 tokens) exceeds the available context size (4096 tokens), try increasing it <window=4096 tokens=4097>",
    "overflow-llama-cpp-python": "FAILED overflow: HTTP 400: This model's maximum context length is 4096 tokens. However, you requested 4297 tokens (4097 in the messages, 200 in the completion). Please reduce the length of the messages or completion. <window=4096 tokens=4097>",
    "overflow-ollama": "FAILED overflow: HTTP 400: the input length exceeds the context length",
    "overflow-lm-studio": "FAILED overflow: error in the reply: Trying to keep the first 4097 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input <window=4096>",
    "overflow-vllm": "FAILED overflow: HTTP 400: This model's maximum context length is 4096 tokens. However, you requested 4297 tokens (4097 in the messages, 200 in the completion). Please reduce the length of the messages or completion. <window=4096 tokens=4097>",
    "overflow-anthropic": "FAILED overflow: HTTP 400: prompt is too long: 4097 tokens > 4096 maximum <window=4096 tokens=4097>",
    "overflow-llamafile": "FAILED gone: nothing came from SERVER for 0.3 seconds",
    "broken-arguments-doubled-quotes": 'read({""path"":""example""})',
    "broken-arguments-doubled-braces": CALL + " (arguments of read mended: doubled braces)",
    "broken-arguments-single-quotes": CALL + " (arguments of read mended: single quotes)",
    "broken-arguments-bare-keys": CALL + " (arguments of read mended: a key without quotes)",
    "broken-arguments-trailing-comma": CALL + " (arguments of read mended: a trailing comma)",
    "broken-arguments-unclosed": CALL + " (arguments of read mended: missing closing brackets)",
    "broken-arguments-cut-off": 'read({"path":")',
    "broken-arguments-written-twice": 'read({"path":"example"}{"path":"example"})',
    "broken-arguments-in-a-fence": CALL
    + " (arguments of read mended: a code fence around the object)",
    "broken-arguments-in-a-string": CALL
    + " (arguments of read mended: an object written as a string)",
    "broken-arguments-after-some-words": CALL
    + " (arguments of read mended: text around the object)",
    "broken-arguments-a-raw-line-end": 'read({"path":"example","note":"one\\ntwo"}) (arguments of read mended: control characters in a string)',
    "broken-arguments-as-python": 'read({"path":"example","really":true,"other":null}) (arguments of read mended: True, False or None as in Python)',
    "broken-arguments-a-list": 'read([{"path":"example"}])',
    "broken-arguments-empty": "read({}) (a call without arguments)",
    "broken-arguments-no-json-at-all": "read(the usual ones, please)",
    "call-as-text-fenced": CALL + " (a call written as text)",
    "call-as-text-tagged": CALL + " (a call written as text)",
    "call-as-text-tool-call": CALL + " (a call written as text)",
    "call-as-text-bare": CALL + " (a call written as text)",
    "call-as-text-pythonic": CALL + " (a call written as text)",
    "reasoning-reasoning-content": WORDS
    + " [thought 'The user wants something. I had better say it.']",
    "reasoning-reasoning": WORDS + " [thought 'The user wants something. I had better say it.']",
    "reasoning-thinking": WORDS + " [thought 'The user wants something. I had better say it.']",
    "reasoning-think": WORDS + " [thought '\\nThe user wants something. I had better say it.\\n']",
}
WHOLE = {
    **STREAMED,
    "no-finish-reason": WORDS + " (no finish reason)",
    "half-event": 'FAILED garbled: not JSON: {"id":"chatcmpl-00000001","object":"chat.completion","created":1800000000,"model":"test-model","choices":[{"index":0,"message":{"role":"assistant","content":"This is an answer of some words, so that it',
    "cut-json": 'FAILED garbled: not JSON: {"id":"chatcmpl-00000001","object":"chat.completion","created":1800000000,"model":"test-model","choices":[{"index":0,"message":{"role":"assistant","content":"This is an answer of some words, so that it',
    "error-in-stream": "FAILED garbled: HTTP 500: The model produced output that does not match the expected peg-native format",
    "overflow-lm-studio": "FAILED overflow: HTTP 400: Trying to keep the first 4097 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input <window=4096>",
}


async def outcome_of(fault: str, model_server: StartsServers, *, streams: bool) -> str:
    server = model_server(faults.FAULTS[fault](), then=faults.FAULTS[fault](), window=4096)
    waits = IMPATIENT if fault in STALLING else None
    chat = Chat(f"{server.url}/v1", "test-model", window=4096, streams=streams, waits=waits)
    line = await outcome(chat, request())
    await chat.aclose()
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


# --- a conversation -------------------------------------------------------------------------

CONVERSATION = (
    UserMessage("What is in a.txt?"),
    Note("(The working folder is /tmp.)"),
    AssistantMessage("Let me see.", (ToolCall("c00000001", "files.read", '{"path":"a.txt"}'),)),
    ToolMessage("c00000001", "files.read", 'It says "hi" \n\t\\ é 你'),
    AssistantMessage("", (ToolCall("c00000002", "clock", "{}"),)),
    ToolMessage("c00000002", "clock", "12:00"),
)


async def test_a_conversation_is_sent_as_the_strictest_server_takes_it(
    model_server: StartsServers,
) -> None:
    server = model_server(says("It says hi."))
    chat = Chat(f"{server.url}/v1", "test-model", key="s3cret", fields={"temperature": 0})

    replied = await chat.reply(request(*CONVERSATION, tools=(READ, CLOCK)), ignore)

    assert line_of(replied) == "'It says hi.'"
    assert server.chats[0].headers["authorization"] == "Bearer s3cret"
    assert server.chats[0].body == snapshot(
        {
            "model": "test-model",
            "max_tokens": 200,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "read",
                        "description": "Read a file.",
                        "parameters": {
                            "type": "object",
                            "properties": {"path": {"type": "string"}},
                            "required": ["path"],
                        },
                    },
                },
                {
                    "type": "function",
                    "function": {
                        "name": "clock",
                        "description": "The time.",
                        "parameters": {"type": "object", "properties": {}},
                    },
                },
            ],
            "messages": [
                {"role": "system", "content": "You are an agent."},
                {
                    "role": "user",
                    "content": """\
What is in a.txt?

(The working folder is /tmp.)\
""",
                },
                {
                    "role": "assistant",
                    "content": "Let me see.",
                    "tool_calls": [
                        {
                            "id": "c00000001",
                            "type": "function",
                            "function": {"name": "files__read", "arguments": '{"path":"a.txt"}'},
                        }
                    ],
                },
                {
                    "role": "tool",
                    "tool_call_id": "c00000001",
                    "content": """\
It says "hi" \n\
	\\ é 你\
""",
                },
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {
                            "id": "c00000002",
                            "type": "function",
                            "function": {"name": "clock", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c00000002", "content": "12:00"},
            ],
        }
    )
    await chat.aclose()


async def test_what_gemini_signed_goes_back_with_the_call(model_server: StartsServers) -> None:
    signed = {"google": {"thought_signature": "abc"}}
    call = {"index": 0, "id": "x", "extra_content": signed}
    call["function"] = {"name": "read", "arguments": '{"path":"a"}'}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "stop"}]}
    stream = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    server = model_server(faults.http(200, stream, {"Content-Type": "text/event-stream"}))
    chat = Chat(f"{server.url}/v1", "test-model")

    reply = (await chat.reply(request(), ignore)).reply
    await chat.aclose()

    kept = AssistantMessage("", (ToolCall("c00000001", "read", '{"path":"a"}'),), reply.owed)
    body = json.loads(chat.body(request(UserMessage("Go on."), kept)))
    assert body["messages"][-1]["tool_calls"][0]["extra_content"] == signed
    other = replace(kept, owed='[{"type":"thinking"}]')
    assert "extra_content" not in str(chat.body(request(UserMessage("Go on."), other)))


async def test_each_request_begins_with_the_bytes_of_the_one_before() -> None:
    chat = Chat("http://127.0.0.1:9/v1", "test-model")

    bodies = [
        chat.body(request(*CONVERSATION[:end], tools=(READ, CLOCK)))
        for end in range(2, len(CONVERSATION) + 1, 2)
    ]

    for before, after in zip(bodies, bodies[1:], strict=False):
        assert after.startswith(before.removesuffix(b"]}"))


async def test_pieces_are_told_as_they_come_and_calls_in_the_text_are_not(
    model_server: StartsServers,
) -> None:
    answer = faults.reasoning("think", says("Some words.\nAnd more."))
    server = model_server(answer, faults.call_as_text("fenced", calls("read", path="a")))
    chat = Chat(f"{server.url}/v1", "test-model")
    told: list[Piece] = []

    await chat.reply(request(), told.append)
    thoughts = "".join(piece.text for piece in told if isinstance(piece, Thought))
    said = [piece.text for piece in told if isinstance(piece, Said)]
    assert thoughts.strip() == "The user wants something. I had better say it."
    assert len(said) > 1
    assert "".join(said) == "Some words.\nAnd more."

    told.clear()
    replied = await chat.reply(request(), told.append)
    assert line_of(replied) == 'read({"path":"a"}) (a call written as text)'
    assert told == []
    await chat.aclose()


A_CALL = '{"index":0,"id":"x","function":{"name":"read","arguments":"{\\"path\\":\\"/etc\\""}}'


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ('"finish_reason":"null"}]}\n\n', "the stream broke off after 1 chunks"),
        ('"finish_reason":"network_error"}]}\n\n', "the server gave up: network_error"),
        ('"finish_reason":"whatever"}]}\n\n', "the server gave up: whatever"),
        ('"finish_reason":"stop"}]}\n\ndata: {"cho', "broke off in the middle of an event"),
    ],
)
async def test_a_call_is_taken_only_from_a_stream_that_ended_well(
    ending: str, why: str, model_server: StartsServers
) -> None:
    stream = f'data: {{"choices":[{{"index":0,"delta":{{"tool_calls":[{A_CALL}]}},{ending}'
    server = model_server(then=faults.http(200, stream, {"Content-Type": "text/event-stream"}))
    chat = Chat(f"{server.url}/v1", "test-model")

    line = await outcome(chat, request())
    await chat.aclose()

    assert line.startswith("FAILED garbled:")
    assert why in line


async def test_what_cannot_be_sealed_is_not_sent_back(model_server: StartsServers) -> None:
    call = '{"index":0,"function":{"name":"read","arguments":"{}"},"extra_content":{"a":1e999}}'
    stream = (
        f'data: {{"choices":[{{"delta":{{"tool_calls":[{call}]}},"finish_reason":"stop"}}]}}\n\n'
    )
    server = model_server(faults.http(200, stream, {"Content-Type": "text/event-stream"}))
    chat = Chat(f"{server.url}/v1", "test-model")

    reply = (await chat.reply(request(), ignore)).reply
    await chat.aclose()

    assert reply.owed == ""
    broken = AssistantMessage("", (ToolCall("c00000001", "read", "{}"),), "no JSON at all")
    assert json.loads(chat.body(request(UserMessage("Go on."), broken)))


async def test_words_of_a_reply_that_was_asked_for_again_are_taken_back(
    model_server: StartsServers,
) -> None:
    stream = (
        'data: {"choices":[{"delta":{"content":"Delete everything, then some more. "}}]}\n\n'
        'data: {"error":{"code":400,"message":"unknown field seed, stream_options"}}\n\n'
    )
    refused = faults.http(200, stream, {"Content-Type": "text/event-stream"})
    server = model_server(refused, says("No."))
    chat = Chat(f"{server.url}/v1", "test-model")
    told: list[Piece] = []

    replied = await chat.reply(request(tools=()), told.append)
    await chat.aclose()

    void = next(at for at, piece in enumerate(told) if isinstance(piece, TakenBack))
    said = "".join(piece.text for piece in told[void:] if isinstance(piece, Said))
    assert said == replied.reply.text == "No."


async def test_cancelling_closes_the_connection_at_once(model_server: StartsServers) -> None:
    server = model_server(faults.stall(after=5), says("Still here."))
    chat = Chat(f"{server.url}/v1", "test-model")

    with anyio.CancelScope() as scope:
        await chat.reply(request(), lambda piece: scope.cancel())

    await to_thread.run_sync(server.wait_for, lambda: server.chats[0].hung_up)
    assert line_of(await chat.reply(request(), ignore)) == "'Still here.'"
    await chat.aclose()


def test_a_client_that_was_closed_can_be_used_again_and_in_another_event_loop(
    model_server: StartsServers,
) -> None:
    server = model_server(says("One."), says("Two."))
    chat = Chat(f"{server.url}/v1", "test-model")

    async def once() -> str:
        try:
            return await outcome(chat, request())
        finally:
            await chat.aclose()

    assert [anyio.run(once), anyio.run(once)] == ["'One.'", "'Two.'"]


async def test_usage_is_counted_and_priced(model_server: StartsServers) -> None:
    prices = Prices(input=2_000_000, output=10_000_000)
    usage = Usage(prompt=1_000, completion=100, cached=0)
    server = model_server(says("Hi.", usage=usage), faults.no_usage())
    chat = Chat(f"{server.url}/v1", "test-model", prices=prices)

    first, second = [await chat.reply(request(), ignore) for _ in range(2)]

    assert first.usage == Usage(prompt=1_000, completion=100, cost=3_000)
    assert second.usage is None
    await chat.aclose()


@pytest.mark.parametrize(
    ("refused", "sent", "instead"),
    [
        ("stream_options", "stream_options", None),
        ("max_tokens", "max_tokens", "max_completion_tokens"),
    ],
)
async def test_a_field_that_a_server_does_not_know_is_left_out_from_then_on(
    refused: str, sent: str, instead: str | None, model_server: StartsServers
) -> None:
    body = json.dumps({"error": {"message": f"Unsupported parameter: '{refused}'."}})
    server = model_server(faults.http(400, body), says("One."), says("Two."))
    chat = Chat(f"{server.url}/v1", "test-model")

    lines = [await outcome(chat, request()) for _ in range(2)]

    note = f"(asked again without {refused}, which the server does not know)"
    assert lines == [f"'One.' {note}", "'Two.'"]
    bodies = [each.body for each in server.chats]
    assert [sent in body for body in bodies if isinstance(body, dict)] == [True, False, False]
    if instead:
        assert isinstance(bodies[1], dict)
        assert bodies[1][instead] == 200
    await chat.aclose()


async def test_a_refusal_that_names_no_field_of_ours_is_final(model_server: StartsServers) -> None:
    server = model_server(faults.http(400, '{"error":"temperature must be below 2"}'))
    chat = Chat(f"{server.url}/v1", "test-model", fields={"temperature": 3})

    assert (
        await outcome(chat, request()) == "FAILED rejected: HTTP 400: temperature must be below 2"
    )
    await chat.aclose()


@pytest.mark.parametrize("kind", [Kind.LLAMA_CPP, Kind.VLLM])
async def test_the_server_counts_a_request_exactly(kind: Kind, model_server: StartsServers) -> None:
    server = model_server(says("Hi."), kind=kind)
    chat = Chat(f"{server.url}/v1", "test-model")
    asked = request(*CONVERSATION, tools=(READ, CLOCK))

    counted = await chat.count(asked)
    replied = await chat.reply(asked, ignore)

    assert counted is not None
    assert replied.usage is not None
    assert counted == Count(replied.usage.prompt, "the server")
    await chat.aclose()


async def test_where_nobody_counts_there_is_no_count(model_server: StartsServers) -> None:
    server = model_server(kind=Kind.OPENAI)

    for base in (f"{server.url}/v1", "http://127.0.0.1:9/v1"):
        chat = Chat(base, "test-model")
        assert await chat.count(request()) is None
        await chat.aclose()


# --- models without tools of their own ------------------------------------------------------


async def test_a_model_without_tools_is_told_them_in_words(model_server: StartsServers) -> None:
    server = model_server(says('TOOL_CALL {"tool": "read", "input": {"path": "b"}}'))
    chat = Chat(f"{server.url}/v1", "test-model", speaks=Dialect.ACTIONS)

    replied = await chat.reply(request(*CONVERSATION[:4]), ignore)

    assert line_of(replied) == 'read({"path":"b"}) (a call written as text)'
    assert server.chats[0].body == snapshot(
        {
            "model": "test-model",
            "max_tokens": 200,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {
                    "role": "system",
                    "content": """\
You are an agent.

To use a tool, reply with this and nothing after it:
TOOL_CALL {"tool": "name", "input": {...}}
The result comes in the next message. When you have the answer, reply with:
FINAL {"answer": "..."}
Write valid JSON: double quotes, line breaks in strings as \\n.
Tools:
- read: Read a file. Input: {"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}\
""",
                },
                {
                    "role": "user",
                    "content": """\
What is in a.txt?

(The working folder is /tmp.)\
""",
                },
                {
                    "role": "assistant",
                    "content": """\
Let me see.
TOOL_CALL {"tool": "files.read", "input": {"path":"a.txt"}}\
""",
                },
                {
                    "role": "user",
                    "content": """\
RESULT of files.read:
It says "hi" \n\
	\\ é 你\
""",
                },
            ],
        }
    )
    await chat.aclose()


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        ('FINAL {"answer": "It is **hi**.\\n- `x`", "citations": [1]}', "'It is **hi**.\\n- `x`'"),
        ("It is **hi**, and {that} is [all](x).", "'It is **hi**, and {that} is [all](x).'"),
        (
            'TOOL_CALL {"tool": "read", "input": {"path": ',
            '\'TOOL_CALL {"tool": "read", "input": {"path": \' [problem \'Your call was cut off '
            "before its end, so it was not run. Write it again, shorter if you can.']",
        ),
    ],
)
async def test_what_is_no_call_stays_as_it_was_written(
    written: str, understood: str, model_server: StartsServers
) -> None:
    server = model_server(says(written))
    chat = Chat(f"{server.url}/v1", "test-model", speaks=Dialect.ACTIONS)
    told: list[Piece] = []

    replied = await chat.reply(request(), told.append)

    assert line_of(replied) == understood
    assert "".join(piece.text for piece in told if isinstance(piece, Said)) == replied.reply.text
    await chat.aclose()


async def test_a_server_that_can_is_made_to_hold_the_model_to_a_schema(
    model_server: StartsServers,
) -> None:
    server = model_server(says('{"type":"tool_call","tool":"clock","input":{}}'))
    chat = Chat(f"{server.url}/v1", "test-model", speaks=Dialect.JSON)

    replied = await chat.reply(request(tools=(CLOCK,)), ignore)

    assert line_of(replied) == "clock({}) (a call written as text)"
    body = server.chats[0].body
    assert isinstance(body, dict)
    assert body["response_format"] == snapshot(
        {
            "type": "json_schema",
            "json_schema": {
                "name": "reply",
                "strict": True,
                "schema": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {
                                "type": {"const": "tool_call"},
                                "tool": {"const": "clock"},
                                "input": {"type": "object"},
                            },
                            "required": ["type", "tool", "input"],
                            "additionalProperties": False,
                        },
                        {
                            "type": "object",
                            "properties": {
                                "type": {"const": "final"},
                                "answer": {"type": "string"},
                            },
                            "required": ["type", "answer"],
                            "additionalProperties": False,
                        },
                    ]
                },
            },
        }
    )
    await chat.aclose()


# --- anything at all ------------------------------------------------------------------------

A_STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"He"}}]}\n\n'
    b": keep-alive\r\n\r\n"
    b'data: {"choices":[{"index":0,"delta":{"content":"llo","tool_calls":[{"index":0,"id":"x",'
    b'"function":{"name":"read","arguments":"{\\"path\\": 1}"}}]}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\n'
    b"data: [DONE]\n\n"
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(A_STREAM)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=6))
    return bytes(data[: draw(st.integers(0, len(data)))])


@given(
    st.lists(st.one_of(st.binary(max_size=200), damaged()), min_size=1, max_size=8),
    st.sampled_from(["text/event-stream", "application/json", "text/html", ""]),
)
@settings(max_examples=60)
def test_whatever_bytes_come_there_is_a_reply_or_a_failure(bodies: list[bytes], kind: str) -> None:
    lines: list[str] = []

    async def ask() -> None:
        chat = Chat(f"{server.url}/v1", "test-model")
        for _ in bodies:
            with anyio.fail_after(20):
                lines.append(await outcome(chat, request()))
        await chat.aclose()

    turns = [faults.http(200, body, {"Content-Type": kind}) for body in bodies]
    with ModelServer(*turns, then=faults.http(503)) as server:
        anyio.run(ask)
    assert len(lines) == len(bodies)
    assert not [line for line in lines if "rejected" in line]
