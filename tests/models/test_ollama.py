"""The client for Ollama's own API, over real sockets, against a server that misbehaves."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.events import Failure, Reply
from holdfast.core.limits import Usage
from holdfast.core.messages import AssistantMessage, Note, ToolCall, ToolMessage, UserMessage
from holdfast.core.tools import ToolSpec
from holdfast.models.base import Model, ModelError, Piece, Replied, Said, Thought
from holdfast.models.catalog import Prices
from holdfast.models.chunks import ReplySoFar
from holdfast.models.failures import json_in
from holdfast.models.ollama import Lines, Ollama, read
from holdfast.models.spoken import Dialect
from holdfast.models.telling import Telling
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.testing.server import Kind, faults
from tests.models import test_chat
from tests.models.asking import IMPATIENT, READ, ignore, outcome, request
from tests.models.test_chat import CALL, STALLING, WORDS

NDJSON = {"Content-Type": "application/x-ndjson"}

# --- what every fault comes to --------------------------------------------------------------

STREAMED = {
    **test_chat.STREAMED,
    "wrong-key": "FAILED rejected: HTTP 401: Incorrect API key provided.",
    "unknown-model": "FAILED rejected: HTTP 404: model 'test-model' not found; get it with: ollama "
    "pull test-model",
    "overflow": test_chat.STREAMED["overflow-ollama"],
    "overflow-llama-cpp-python": "FAILED garbled: empty stream",
    "overflow-lm-studio": "FAILED garbled: not JSON: event: error",
    "half-event": "FAILED garbled: the stream broke off after 9 chunks",
    "no-done": "FAILED garbled: the stream broke off after 17 chunks",
    "keep-alive-only": "FAILED garbled: not JSON: : keep-alive",
    "cut-json": 'FAILED garbled: not JSON: {"model":"test-model","created_at":'
    '"2027-01-15T08:00:00Z","m',
    **dict.fromkeys(("no-finish-reason", "calls-announced-without-any"), WORDS),
    "empty-choices": "(nothing)",
    "broken-arguments-in-a-string": CALL,
}
"""As with `chat`, but for this."""
WHOLE = {
    **STREAMED,
    **dict.fromkeys(
        ("half-event", "cut-json"),
        'FAILED garbled: not JSON: {"model":"test-model","created_at":"2027-01-15T08:00:00Z",'
        '"message":{"role":"assistant","content":"This is an answer of some words, so that it com',
    ),
    "empty-stream": "FAILED garbled: not JSON: ",
    "keep-alive-only": test_chat.STREAMED["keep-alive-only"],
    "no-done": WORDS,
    **{
        name: test_chat.WHOLE[name]
        for name in ("error-in-stream", "overflow-llama-cpp-python", "overflow-lm-studio")
    },
}


async def outcome_of(fault: str, model_server: StartsServers, *, streams: bool) -> str:
    turn = faults.FAULTS[fault]()
    server = model_server(turn, then=turn, kind=Kind.OLLAMA, window=4096)
    waits = IMPATIENT if fault in STALLING else None
    model = Ollama(server.url, "test-model", window=4096, streams=streams, waits=waits)
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
CONVERSATION = (
    UserMessage("What is in a.md?"),
    AssistantMessage("I look.", (ToolCall("c1", "files.read", '{"path":"a.md"}'),)),
    ToolMessage("c1", "files.read", "Grüße", failed=True),
    Note("Go on."),
    UserMessage("And?"),
)


async def test_a_conversation_is_sent_as_ollama_has_it(model_server: StartsServers) -> None:
    server = model_server(says("Greetings."), kind=Kind.OLLAMA)
    model = Ollama(
        f"{server.url}/v1",  # the address of another API of the same server
        "test-model",
        key="secret",
        options={"temperature": 0.5},
        window=2048,
        keep_alive="10m",
        think=False,
    )

    await model.reply(request(*CONVERSATION, tools=(FILES,)), ignore)
    await model.aclose()

    (chat,) = server.chats
    assert chat.path == "/api/chat"
    assert chat.headers["authorization"] == "Bearer secret"
    assert chat.body == {
        "model": "test-model",
        "stream": True,
        "truncate": False,
        "shift": False,
        "keep_alive": "10m",
        "think": False,
        "options": {"num_predict": 200, "temperature": 0.5, "num_ctx": 2048},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "files__read",
                    "description": "Read a file.",
                    "parameters": json.loads(READ.parameters),
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "What is in a.md?"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "function": {"name": "files__read", "arguments": {"path": "a.md"}},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_name": "files__read",
                "tool_call_id": "c1",
                "content": "Grüße",
            },
            {"role": "user", "content": "Go on.\n\nAnd?"},
        ],
    }


def test_a_model_that_speaks_json_is_held_to_its_schema() -> None:
    model = Ollama("http://127.0.0.1:9", "m", speaks=Dialect.JSON)

    body = json.loads(model.body(request(*CONVERSATION, tools=(FILES,))))

    assert "tools" not in body
    call, answer = body["format"]["anyOf"]
    assert call["properties"] == {
        "type": {"const": "tool_call"},
        "tool": {"const": "files.read"},
        "input": json.loads(READ.parameters),
    }
    assert answer["properties"] == {"type": {"const": "final"}, "answer": {"type": "string"}}
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert "To use a tool, reply with" in body["messages"][0]["content"]


def test_a_model_that_speaks_in_actions_is_held_to_nothing() -> None:
    model = Ollama("http://127.0.0.1:9", "m", speaks=Dialect.ACTIONS)

    body = json.loads(model.body(request(tools=(FILES,))))

    assert not {"tools", "format"} & set(body)


def test_tools_that_come_or_go_are_sent_so() -> None:
    model = Ollama("http://127.0.0.1:9", "m")
    offered = request(tools=(FILES,))
    bodies = [json.loads(model.body(each)) for each in (offered, replace(offered, tools=()))]

    assert ["tools" in body for body in bodies] == [True, False]


def test_without_a_window_the_server_chooses_one() -> None:
    body = json.loads(Ollama("http://127.0.0.1:9", "m").body(request(tools=())))

    assert body["options"] == {"num_predict": 200}


def test_another_attempt_has_another_seed_also_where_one_was_given() -> None:
    free = Ollama("http://127.0.0.1:9", "m")
    seeded = Ollama("http://127.0.0.1:9", "m", options={"seed": 40})

    def seeds(model: Ollama) -> list[int | None]:
        bodies = (json.loads(model.body(request(), attempt=attempt)) for attempt in (0, 1, 2))
        return [body["options"].get("seed") for body in bodies]

    assert seeds(free) == [None, 1, 2]
    assert seeds(seeded) == [40, 41, 42]


def test_two_windows_that_contradict_each_other_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="the window is 8192 and options.num_ctx 4096"):
        Ollama("http://127.0.0.1:9", "m", window=8192, options={"num_ctx": 4096})


async def test_a_prompt_that_is_too_long_is_refused_and_not_cut(
    model_server: StartsServers,
) -> None:
    server = model_server(says("I read all of it."), kind=Kind.OLLAMA, window=100)
    server.expect_complaints()  # that it is too long
    model = Ollama(server.url, "test-model", window=100)
    long = request(UserMessage("word " * 200), tools=())

    told = await outcome(model, long)
    await model.aclose()

    assert told == "FAILED overflow: HTTP 400: the input length exceeds the context length"


# --- what comes back ------------------------------------------------------------------------


async def test_thoughts_and_words_are_told_as_they_come(model_server: StartsServers) -> None:
    lines = [
        {"message": {"role": "assistant", "content": "", "thinking": "Noon"}, "done": False},
        {"message": {"role": "assistant", "content": "", "thinking": "?"}, "done": False},
        {"message": {"role": "assistant", "content": "It is "}, "done": False},
        {"message": {"role": "assistant", "content": "noon."}, "done": False},
        {
            "model": "qwen3:8b",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 31,
            "eval_count": 7,
        },
    ]
    body = "".join(f"{json.dumps(line)}\n" for line in lines)
    server = model_server(faults.http(200, body, NDJSON), kind=Kind.OLLAMA)
    prices = Prices(input=1_000_000, output=2_000_000)
    model: Model = Ollama(server.url, "test-model", prices=prices)
    told: list[Piece] = []

    replied = await model.reply(request(tools=()), told.append)
    await model.aclose()

    assert told == [
        Thought("Noon", "thinking"),
        Thought("?", "thinking"),
        Said("It is "),
        Said("noon."),
    ]
    assert replied == Replied(
        Reply(text="It is noon.", reasoning="Noon?"),
        Usage(prompt=31, completion=7, cost=45),
        "qwen3:8b",
    )


async def test_calls_in_several_lines_are_several_calls_even_if_they_are_the_same() -> None:
    call = {"function": {"index": 0, "name": "clock", "arguments": {}}}
    lines = [
        {"message": {"tool_calls": [call]}, "done": False},
        {"message": {"tool_calls": [call, call]}, "done": False},
        {"done": True, "done_reason": "stop"},
    ]

    reply = heard("".join(f"{json.dumps(line)}\n" for line in lines).encode()).reply

    assert [(call.name, call.arguments) for call in reply.calls] == [("clock", "{}")] * 3


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ("the input length exceeds the context length", Failure.OVERFLOW),
        ("an error was encountered while running the model", Failure.GARBLED),
        ("rate limit exceeded", Failure.BUSY),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_a_failure(error: str, failure: Failure) -> None:
    lines = [{"message": {"content": "Yes, I"}, "done": False}, {"error": error}]

    with pytest.raises(ModelError) as raised:
        heard("".join(f"{json.dumps(line)}\n" for line in lines).encode())

    assert raised.value.failure is failure


def test_a_server_that_only_loads_the_model_has_not_replied() -> None:
    with pytest.raises(ModelError, match="the server only said that the model was to load"):
        heard(b'{"message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}\n')


async def test_a_reply_that_the_server_gave_up_is_not_used(model_server: StartsServers) -> None:
    # So it does with a model that says the same thirty times.
    given_up = '{"message":{"role":"assistant","content":"no no no"},"done":false}'
    server = model_server(
        *(faults.http(200, given_up + end, NDJSON) for end in ("\n", "")), kind=Kind.OLLAMA
    )
    streaming, waiting = (Ollama(server.url, "test-model", streams=each) for each in (True, False))

    told = [await outcome(streaming, request()), await outcome(waiting, request())]
    await streaming.aclose()
    await waiting.aclose()

    assert told == ["FAILED garbled: the stream broke off after 1 chunks"] * 2


async def test_a_call_that_the_server_could_not_read_is_shown_to_the_model(
    model_server: StartsServers,
) -> None:
    error = (
        "error parsing tool call: raw='{\"path\": \"a.md\",}', err=invalid character '}' looking "
        "for beginning of object key string"
    )
    server = model_server(faults.http(500, json.dumps({"error": error})), kind=Kind.OLLAMA)
    model = Ollama(server.url, "test-model")

    with pytest.raises(ModelError) as raised:
        await model.reply(request(), ignore)
    await model.aclose()

    assert raised.value.failure is Failure.GARBLED
    assert raised.value.problem == (
        "Your last reply held a call that could not be read, so nothing was run. Its arguments "
        'were not valid JSON: {"path": "a.md",}\n'
        'If you meant this, write it so: {"path":"a.md"}\n'
        "Write the call again, with arguments that are one valid JSON object."
    )


@pytest.mark.parametrize(
    ("status", "error", "way_out"),
    [
        (404, 'model "llama9" not found, try pulling it first', "; get it with: ollama pull m"),
        (400, "m does not support tools", "; it can be told to write its calls in a dialect"),
        (400, '"m" does not support thinking', "; leave `think` out"),
        (404, "404 page not found", ""),
        (401, "unauthorized", ""),
    ],
)
async def test_a_refusal_names_the_way_out(
    status: int, error: str, way_out: str, model_server: StartsServers
) -> None:
    refusal = faults.http(status, json.dumps({"error": error}))
    server = model_server(refusal, kind=Kind.OLLAMA, model="m")
    model = Ollama(server.url, "m")

    told = await outcome(model, request())
    await model.aclose()

    assert told == f"FAILED rejected: HTTP {status}: {error}{way_out}"


# --- what the server has loaded -------------------------------------------------------------


REPLY = {"message": {"content": "Hello."}, "done": True, "done_reason": "stop"}
LOADED = {"models": [{"name": "m:latest", "context_length": 1000}]}
LESS = "m was loaded with a window of 1000 tokens, although 8192 were asked for"


async def test_people_are_told_once_when_the_server_loaded_less_than_was_asked_for() -> None:
    asked: list[str] = []
    with answering({"/api/chat": REPLY, "/api/ps": LOADED}, asked) as url:
        model = Ollama(url, "m", window=8192)

        told = [await outcome(model, request()) for _ in range(2)]
        await model.aclose()

    assert told == [f"'Hello.' ({LESS})", "'Hello.'"]
    assert asked == ["/api/chat", "/api/version", "/api/ps", "/api/chat"]
    assert model.window == 1000
    # To ask for another one now would load the model anew.
    assert json.loads(model.body(request()))["options"]["num_ctx"] == 8192


async def test_a_reply_cut_by_the_window_that_was_really_loaded_is_an_overflow() -> None:
    counts = {"done_reason": "length", "prompt_eval_count": 900, "eval_count": 100}
    documents = {"/api/chat": REPLY | counts, "/api/ps": LOADED}
    with answering(documents) as url:
        model = Ollama(url, "m", window=8192)

        first = await outcome(model, request())
        documents["/api/chat"] = REPLY
        second = await outcome(model, request())
        await model.aclose()

    assert first == (
        "FAILED overflow: the window of 1000 tokens was full before the reply was complete "
        "<window=1000 tokens=900>"
    )
    assert second == f"'Hello.' ({LESS})"


@pytest.mark.parametrize(
    ("model", "loaded"),
    [
        ("qwen3", 4096),
        ("Qwen3:latest", 4096),
        ("qwen3:8b", 8192),
        ("hf.co/unsloth/Qwen3-GGUF", 512),
        ("mistral", None),
        ("unsaid", None),
    ],
)
async def test_the_window_of_a_loaded_model_is_found_by_its_name(
    model: str, loaded: int | None
) -> None:
    models = [
        {"name": "qwen3:latest", "context_length": 4096},
        {"name": "qwen3:8b", "context_length": 8192},
        {"name": "hf.co/unsloth/Qwen3-GGUF:latest", "context_length": 512},
        {"name": "unsaid:latest"},
    ]
    with answering({"/api/ps": {"models": models}}) as url:
        client = Ollama(url, model)

        assert await client.loaded() == loaded
        await client.aclose()


@pytest.mark.parametrize(
    ("version", "note"),
    [
        (
            "0.9.6",
            "Ollama 0.9.6 cuts a prompt that is too long and does not say so; 0.12.6 and later "
            "refuse it",
        ),
        ("0.12.6", ""),
        ("0.33.0-rc2", ""),
        ("0.0.0", ""),
        (None, ""),
    ],
)
async def test_people_are_told_that_an_old_server_cuts_prompts(version: object, note: str) -> None:
    with answering({"/api/chat": REPLY, "/api/version": {"version": version}}) as url:
        model = Ollama(url, "m", window=4096)

        replied = await model.reply(request(), ignore)
        await model.aclose()

    assert replied == Replied(Reply(text="Hello."), notes=(note,) if note else ())


@contextmanager
def answering(documents: Mapping[str, object], asked: list[str] | None = None) -> Iterator[str]:
    """The address of a server that has these documents and no others."""
    paths = [] if asked is None else asked

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.dumps(documents.get(self.path)).encode()
            self.send_response(200 if self.path in documents else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 (its name)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


# --- whatever comes -------------------------------------------------------------------------


def heard(data: bytes, *cuts: int) -> Replied:
    """What is understood of a stream that comes in these pieces."""
    so_far, lines, places = ReplySoFar(), Lines(), count()
    telling = Telling(ignore, hides_calls=False)
    ends = [*sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in zip([0, *ends], ends, strict=False):
        for line in lines.feed(data[start:end]):
            if read(json_in(line), so_far, telling, places):
                return so_far.finish()
    return so_far.finish()


@given(st.lists(st.integers(0, 500), max_size=8))
def test_it_does_not_matter_in_which_pieces_a_stream_comes(cuts: list[int]) -> None:
    lines = [
        {"message": {"content": "Grüße 👋🏽", "thinking": "你好"}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"é": 1}}}]}},
        {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 6},
    ]
    data = "\r\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode() + b"\n"

    assert heard(data, *cuts) == heard(data)


keys = st.sampled_from(
    ["message", "content", "thinking", "tool_calls", "function", "name", "arguments", "index", "id"]
    + ["done", "done_reason", "error", "prompt_eval_count", "eval_count", "model", "role"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars | st.sampled_from(["stop", "length", "load", "<think>", "</think>", "{}", '{"a":']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=25,
)


@given(st.lists(values, max_size=6), st.lists(st.binary(max_size=12), max_size=3))
def test_whatever_comes_is_a_reply_or_a_failure(sent: list[object], noise: list[bytes]) -> None:
    lines = [json.dumps(value).encode() for value in sent]
    data = b"\n".join([*lines, *noise, b'{"done":true,"done_reason":"stop"}', b""])

    try:
        replied = heard(data)
    except ModelError:
        return
    assert isinstance(replied, Replied)


async def test_a_call_comes_over_the_wire_as_it_was_meant(model_server: StartsServers) -> None:
    server = model_server(calls("files__read", path="a.md"), kind=Kind.OLLAMA)
    model = Ollama(server.url, "test-model")

    replied = await model.reply(request(tools=(FILES,)), ignore)
    await model.aclose()

    (call,) = replied.reply.calls
    assert (call.name, call.arguments) == ("files__read", '{"path":"a.md"}')
