"""Each kind of server tells of itself, answers, and says no in its own way."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from holdfast.core.events import Failure, Reply, WantedCall
from holdfast.models.failures import failure_of
from holdfast.testing.script import calls, says, several, wants
from holdfast.testing.server import Kind, ModelServer
from holdfast.testing.server.tokens import count, numbers
from tests.testing.client import (
    CHAT,
    CLOCK,
    GOOD,
    MESSAGES,
    OLLAMA,
    Answered,
    ask,
    bare_socket,
    connected,
    received_until,
    request_bytes,
)

OPENAI_KINDS = [kind for kind in Kind if kind is not Kind.ANTHROPIC]
LONG = [{"role": "user", "content": "word " * 300}]
TOOLS: dict[str, Any] = {"tools": [CLOCK]}
NATIVE: dict[str, Any] = {
    "model": "test-model",
    "messages": GOOD["messages"],
    "options": {"num_predict": 100},
}
"""A good request in Ollama's own API."""


def path_of(kind: Kind) -> str:
    return MESSAGES if kind is Kind.ANTHROPIC else CHAT


# --- what they tell of themselves ----------------------------------------------------------------


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_lists_its_model(kind: Kind) -> None:
    with ModelServer(kind=kind, model="qwen") as server:
        answer = ask(server, "GET", "/v1/models").json

    assert [entry["id"] for entry in answer["data"]] == ["qwen"]


def test_the_window_that_is_loaded_can_be_read_where_the_kind_has_it() -> None:
    def probe(kind: Kind, path: str) -> Any:
        with ModelServer(kind=kind, window=2048) as server:
            return ask(server, "GET", path).json

    props = probe(Kind.LLAMA_CPP, "/props")
    (llama,) = probe(Kind.LLAMA_CPP, "/v1/models")["data"]
    (vllm,) = probe(Kind.VLLM, "/v1/models")["data"]
    (running,) = probe(Kind.OLLAMA, "/api/ps")["models"]
    (studio,) = probe(Kind.LM_STUDIO, "/api/v1/models")["models"]

    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["chat_template_caps"]["supports_tools"] is True
    assert llama["meta"] == {"vocab_type": 2, "n_ctx": 2048, "n_ctx_train": 131072}
    assert vllm["max_model_len"] == 2048
    assert running["context_length"] == 2048
    assert studio["loaded_instances"][0]["config"]["context_length"] == 2048
    assert studio["capabilities"] == {"vision": False, "trained_for_tool_use": True}


def test_ollama_tells_its_version_its_models_and_what_they_can_do() -> None:
    with ModelServer(kind=Kind.OLLAMA) as server:
        version = ask(server, "GET", "/api/version").json
        tags = ask(server, "GET", "/api/tags").json
        show = ask(server, path="/api/show", body={"model": "test-model"}).json
        missing = ask(server, path="/api/show", body={"model": "gpt-99"})

    assert version == {"version": "0.12.6"}
    assert [entry["name"] for entry in tags["models"]] == ["test-model"]
    assert show["capabilities"] == ["completion", "tools"]
    assert show["model_info"]["test.context_length"] == 131072
    assert (missing.status, missing.json) == (404, {"error": "model 'gpt-99' not found"})


def test_a_path_that_a_kind_does_not_have_is_not_found_in_its_words() -> None:
    def missing(kind: Kind) -> tuple[int, object]:
        with ModelServer(kind=kind) as server:
            answer = ask(server, "GET", "/nowhere")
            return answer.status, answer.json

    assert {kind.value: missing(kind) for kind in Kind} == snapshot(
        {
            "openai": (
                404,
                {
                    "error": {
                        "message": "Not Found",
                        "type": "invalid_request_error",
                        "param": None,
                        "code": None,
                    }
                },
            ),
            "llama.cpp": (
                404,
                {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
            ),
            "llama-cpp-python": (
                404,
                {
                    "error": {
                        "message": "Not Found",
                        "type": "invalid_request_error",
                        "param": None,
                        "code": None,
                    }
                },
            ),
            "ollama": (
                404,
                {
                    "error": {
                        "message": "404 page not found",
                        "type": "invalid_request_error",
                        "param": None,
                        "code": None,
                    }
                },
            ),
            "lm-studio": (404, {"error": "Unexpected endpoint or method. (/nowhere)"}),
            "vllm": (
                404,
                {
                    "error": {
                        "message": "Not Found",
                        "type": "NotFoundError",
                        "param": None,
                        "code": 404,
                    }
                },
            ),
            "anthropic": (
                404,
                {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}},
            ),
            "llamafile": (
                404,
                {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
            ),
        }
    )


@pytest.mark.parametrize(
    ("kind", "path"),
    [(Kind.OPENAI, "/props"), (Kind.VLLM, "/api/ps"), (Kind.LLAMA_CPP, "/api/version")],
)
def test_a_kind_does_not_answer_the_probes_of_another(kind: Kind, path: str) -> None:
    with ModelServer(kind=kind) as server:
        assert ask(server, "GET", path).status == 404


def test_a_model_that_cannot_use_tools_is_said_to_be_one() -> None:
    def probe(kind: Kind, method: str, path: str) -> Any:
        with ModelServer(kind=kind, tools=False) as server:
            return ask(server, method, path, body={"model": "test-model"}).json

    props = probe(Kind.LLAMA_CPP, "GET", "/props")
    (studio,) = probe(Kind.LM_STUDIO, "GET", "/api/v1/models")["models"]
    show = probe(Kind.OLLAMA, "POST", "/api/show")

    assert props["chat_template_caps"]["supports_tools"] is False
    assert studio["capabilities"]["trained_for_tool_use"] is False
    assert show["capabilities"] == ["completion"]


def test_tools_for_a_model_that_cannot_use_them_are_dropped_or_refused() -> None:
    with ModelServer(then=says("Hello."), tools=False) as server:
        plain, offered = (ask(server, **fields).json["usage"] for fields in ({}, TOOLS))
    with ModelServer(kind=Kind.OLLAMA, tools=False) as server:
        refused = ask(server, path=OLLAMA, body={**NATIVE, **TOOLS})

    assert plain["prompt_tokens"] == offered["prompt_tokens"]
    assert (refused.status, refused.json) == (400, {"error": "test-model does not support tools"})


# --- counting ------------------------------------------------------------------------------------


def test_llama_cpp_counts_a_request_the_same_in_all_its_ways() -> None:
    asked = {**GOOD, "tools": [CLOCK]}
    with ModelServer(says("Hello.")) as server:
        counted = ask(server, path=f"{CHAT}/input_tokens", body=asked).json["input_tokens"]
        prompt = ask(server, path="/apply-template", body=asked).json["prompt"]
        tokens = ask(server, path="/tokenize", body={"content": prompt}).json["tokens"]
        usage = ask(server, body=asked).json["usage"]

    assert {counted, len(tokens), usage["prompt_tokens"], server.chats[0].tokens} == {counted}
    assert "Hello?" in prompt
    assert '"clock"' in prompt


def test_vllm_counts_a_text_or_a_request() -> None:
    with ModelServer(says("Hello."), kind=Kind.VLLM) as server:
        text = ask(server, path="/tokenize", body={"prompt": "Hello?"}).json
        request = ask(server, path="/tokenize", tools=[CLOCK]).json
        ask(server, tools=[CLOCK])

    assert (text["count"], len(text["tokens"]), text["max_model_len"]) == (2, 2, 4096)
    assert request["count"] == server.chats[0].tokens


@pytest.mark.parametrize("kind", [Kind.LLAMA_CPP, Kind.ANTHROPIC])
def test_messages_are_counted_before_they_are_sent(kind: Kind) -> None:
    with ModelServer(says("Hello."), kind=kind) as server:
        counted = ask(server, path=f"{MESSAGES}/count_tokens").json
        ask(server, path=MESSAGES)

    assert counted == {"input_tokens": server.chats[0].tokens}


def test_the_tokenizer_loses_nothing_and_costs_about_what_small_models_do() -> None:
    prose = "The quick brown fox jumps over the lazy dog, and nobody is surprised by that. " * 20
    assert 3.0 < len(prose) / count(prose) < 4.5
    assert count("2024-01-31") == 10
    assert count("你好世界") == 4
    assert numbers("a b") == numbers("a b") != numbers("b a")


# --- how they answer -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPENAI_KINDS)
def test_every_kind_but_anthropic_speaks_the_api_of_openai(kind: Kind) -> None:
    with ModelServer(says("Hello."), calls("clock", zone="utc"), kind=kind) as server:
        streamed = ask(server, stream=True)
        whole = ask(server).json["choices"][0]

    leak = "</s>" if kind is Kind.LLAMAFILE else ""
    assert streamed.text == f"Hello.{leak}"
    assert whole["finish_reason"] == "tool_calls"
    assert whole["message"]["tool_calls"][0]["function"] == {
        "name": "clock",
        "arguments": '{"zone": "utc"}',
    }


def test_kinds_differ_in_how_they_stream() -> None:
    def stream(kind: Kind) -> Answered:
        with ModelServer(says("Hi there"), kind=kind) as server:
            return ask(server, stream=True, stream_options={"include_usage": True})

    first = {kind.value: stream(kind).events[0]["choices"][0]["delta"] for kind in OPENAI_KINDS}
    last = {kind.value: stream(kind).events[-1] == "[DONE]" for kind in OPENAI_KINDS}
    counted = {kind.value: b'"usage"' in stream(kind).body for kind in OPENAI_KINDS}
    opening = {"role": "assistant", "content": ""}
    assert first == {
        "openai": {**opening, "refusal": None},
        "llama.cpp": {"role": "assistant", "content": None},
        "llama-cpp-python": {"role": "assistant"},
        "ollama": opening,
        "lm-studio": opening,
        "vllm": opening,
        "llamafile": {"content": "Hi"},
    }
    assert [kind for kind, is_done in last.items() if not is_done] == ["llamafile"]
    assert [kind for kind, is_counted in counted.items() if not is_counted] == [
        "llama-cpp-python",
        "llamafile",
    ]
    ids = {event["id"] for event in stream(Kind.LLAMAFILE).events}
    assert len(ids) == len(stream(Kind.LLAMAFILE).events)
    assert b'"object": "chat.completion.chunk"' in stream(Kind.LLAMA_CPP_PYTHON).body


def test_kinds_differ_in_what_they_call_their_answers() -> None:
    def types(kind: Kind) -> tuple[str, str]:
        with ModelServer(then=says("Hello."), kind=kind) as server:
            whole, stream = (ask(server, path=path_of(kind), stream=each) for each in (False, True))
            return whole.headers["content-type"], stream.headers["content-type"]

    utf8 = "; charset=utf-8"
    assert {kind.value: types(kind) for kind in Kind} == {
        "openai": ("application/json", "text/event-stream" + utf8),
        "llama.cpp": ("application/json" + utf8, "text/event-stream"),
        "llama-cpp-python": ("application/json", "text/event-stream" + utf8),
        "ollama": ("application/json" + utf8, "text/event-stream"),
        "lm-studio": ("application/json" + utf8, "text/event-stream"),
        "vllm": ("application/json", "text/event-stream" + utf8),
        "anthropic": ("application/json", "text/event-stream" + utf8),
        "llamafile": ("application/json" + utf8, "text/event-stream"),
    }


def test_ollama_answers_its_own_api_in_lines() -> None:
    turn = several(wants("clock", zone="utc"), text="Let me see")
    with ModelServer(turn, says("Noon."), kind=Kind.OLLAMA) as server:
        streamed = ask(server, path=OLLAMA, body=NATIVE)
        whole = ask(server, path=OLLAMA, body={**NATIVE, "stream": False})

    assert streamed.headers["content-type"] == "application/x-ndjson"
    assert [(line["message"], line["done"]) for line in streamed.lines] == snapshot(
        [
            ({"role": "assistant", "content": "Let"}, False),
            ({"role": "assistant", "content": " me"}, False),
            ({"role": "assistant", "content": " see"}, False),
            (
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {
                            "id": "call_1_0",
                            "function": {
                                "index": 0,
                                "name": "clock",
                                "arguments": {"zone": "utc"},
                            },
                        }
                    ],
                },
                False,
            ),
            ({"role": "assistant", "content": ""}, True),
        ]
    )
    last = streamed.lines[-1]
    assert (last["done_reason"], last["prompt_eval_count"], last["eval_count"]) == ("stop", 11, 14)
    assert whole.json["message"] == {"role": "assistant", "content": "Noon."}
    assert server.complaints == []


@pytest.mark.parametrize("kind", [Kind.ANTHROPIC, Kind.LLAMA_CPP])
def test_messages_are_answered_in_blocks(kind: Kind) -> None:
    turn = Reply(text="Let me see", calls=(WantedCall("clock", '{"zone":"utc"}'),), reasoning="Hm")
    with ModelServer(turn, turn, kind=kind) as server:
        whole = ask(server, path=MESSAGES).json
        streamed = ask(server, path=MESSAGES, stream=True)

    assert whole == snapshot(
        {
            "id": "msg_00000001",
            "type": "message",
            "role": "assistant",
            "model": "test-model",
            "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "c2lnbmVk"},
                {"type": "text", "text": "Let me see"},
                {
                    "type": "tool_use",
                    "id": "toolu_1_0",
                    "name": "clock",
                    "input": {"zone": "utc"},
                },
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 11,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 14,
            },
        }
    )
    names = [line for line in streamed.body.decode().splitlines() if line.startswith("event: ")]
    assert names == [f"event: {event['type']}" for event in streamed.events]
    assert [event["type"] for event in streamed.events if "delta" not in event] == snapshot(
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_stop",
            "content_block_start",
            "content_block_stop",
            "content_block_start",
            "content_block_stop",
            "message_stop",
        ]
    )
    written = [event["delta"] for event in streamed.events if "delta" in event]
    arguments = "".join(delta.get("partial_json", "") for delta in written)
    assert (arguments, written[-1]["stop_reason"]) == ('{"zone":"utc"}', "tool_use")
    assert server.complaints == []


def test_anthropic_does_not_count_as_input_what_was_cached() -> None:
    with ModelServer(says("One."), says("Two."), kind=Kind.ANTHROPIC) as server:
        ask(server, path=MESSAGES)
        usage = ask(server, path=MESSAGES).json["usage"]

    assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (0, 11)


def test_what_was_called_in_the_api_of_anthropic_can_be_answered_in_it() -> None:
    with ModelServer(calls("clock"), says("Noon."), kind=Kind.ANTHROPIC) as server:
        tools = [{"name": "clock", "input_schema": {"type": "object"}}]
        wanted = ask(server, path=MESSAGES, tools=tools).json["content"]
        result = {"type": "tool_result", "tool_use_id": wanted[0]["id"], "content": "12:00"}
        messages = [
            *GOOD["messages"],
            {"role": "assistant", "content": wanted},
            {"role": "user", "content": [result, {"type": "text", "text": "And now?"}]},
        ]
        ask(server, path=MESSAGES, tools=tools, messages=messages, system="Be short.")

    assert server.complaints == []


# --- a model that is not there -------------------------------------------------------------------


def test_a_model_that_is_not_there_is_refused_or_served_as_the_kind_does() -> None:
    def stranger(kind: Kind) -> object:
        with ModelServer(then=says("Hello."), kind=kind) as server:
            answer = ask(server, path=path_of(kind), model="gpt-99")
            return answer.status if answer.status == 404 else answer.json["model"]

    assert {kind.value: stranger(kind) for kind in Kind} == {
        "openai": 404,
        "llama.cpp": "test-model",
        "llama-cpp-python": "gpt-99",
        "ollama": 404,
        "lm-studio": 404,
        "vllm": 404,
        "anthropic": 404,
        "llamafile": "gpt-99",
    }


def test_ollama_says_in_its_own_api_that_a_model_is_not_there() -> None:
    with ModelServer(kind=Kind.OLLAMA) as server:
        answer = ask(server, path=OLLAMA, body={**NATIVE, "model": "gpt-99"})

    assert (answer.status, answer.json) == (404, {"error": "model 'gpt-99' not found"})


# --- the window ----------------------------------------------------------------------------------


def overflown(kind: Kind, path: str = "", **fields: Any) -> Answered:
    with ModelServer(then=says("Hello."), kind=kind, window=256, strict=False) as server:
        return ask(server, path=path or path_of(kind), messages=LONG, **fields)


@pytest.mark.parametrize(
    "kind",
    [
        Kind.OPENAI,
        Kind.LLAMA_CPP,
        Kind.LLAMA_CPP_PYTHON,
        Kind.LM_STUDIO,
        Kind.VLLM,
        Kind.ANTHROPIC,
    ],
)
def test_a_request_that_is_too_long_is_refused_in_words_our_client_knows(kind: Kind) -> None:
    answer = overflown(kind)

    error = failure_of(answer.status, answer.headers, answer.body)
    assert (error.failure, error.window) == (Failure.OVERFLOW, 256)
    assert error.tokens == (None if kind is Kind.LM_STUDIO else 310)


def test_llama_cpp_gives_the_numbers_as_fields() -> None:
    assert overflown(Kind.LLAMA_CPP).json == {
        "error": {
            "code": 400,
            "message": "request (310 tokens) exceeds the available context size (256 tokens), "
            "try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 310,
            "n_ctx": 256,
        }
    }
    assert overflown(Kind.LLAMA_CPP, stream=True).json == overflown(Kind.LLAMA_CPP).json


def test_llama_cpp_python_streams_nothing_and_resets_the_next_request() -> None:
    with ModelServer(
        says("Hello."), kind=Kind.LLAMA_CPP_PYTHON, window=256, strict=False
    ) as server:
        connection = connected(server)
        first = ask(server, messages=LONG, stream=True, connection=connection)
        with pytest.raises(ConnectionResetError):
            ask(server, connection=connection)
        connection.close()
        after = ask(server)

    assert (first.status, first.body) == (200, b"")
    assert after.status == 200


def test_lm_studio_reports_it_inside_the_stream() -> None:
    answer = overflown(Kind.LM_STUDIO, stream=True)

    assert (answer.status, answer.body[:13]) == (200, b"event: error\n")
    assert "context length of only 256 tokens" in answer.events[0]["error"]


def test_llamafile_is_not_heard_of_again() -> None:
    with (
        ModelServer(kind=Kind.LLAMAFILE, window=256, strict=False) as server,
        bare_socket(server, request_bytes(messages=LONG)) as sock,
    ):
        received_until(sock, b"\r\n\r\n")
        sock.close()
        server.wait_for(lambda: server.received[0].hung_up)


def test_ollama_cuts_the_front_in_silence_and_only_its_count_tells() -> None:
    native = overflown(Kind.OLLAMA, OLLAMA, body={**NATIVE, "messages": LONG, "stream": False})
    compatible = overflown(Kind.OLLAMA)

    assert (native.status, native.json["prompt_eval_count"]) == (200, 256)
    assert (compatible.status, compatible.json["usage"]["prompt_tokens"]) == (200, 256)


def test_ollama_refuses_when_it_may_not_cut() -> None:
    body = {**NATIVE, "messages": LONG, "truncate": False}
    answer = overflown(Kind.OLLAMA, OLLAMA, body=body)

    assert (answer.status, answer.json) == (
        400,
        {"error": "the input length exceeds the context length"},
    )


def test_ollama_gives_a_request_the_window_it_asks_for_and_tells_of_it() -> None:
    body = {**NATIVE, "messages": LONG, "truncate": False, "options": {"num_ctx": 2048}}
    with ModelServer(says("Hello."), kind=Kind.OLLAMA, window=256, strict=False) as server:
        before = ask(server, "GET", "/api/ps").json["models"][0]["context_length"]
        status = ask(server, path=OLLAMA, body=body).status
        after = ask(server, "GET", "/api/ps").json["models"][0]["context_length"]

    assert (before, status, after) == (256, 200, 2048)


def test_ollama_goes_on_when_the_window_is_full_unless_it_may_not() -> None:
    def said(**more: object) -> tuple[str, int]:
        with ModelServer(says("word " * 300), kind=Kind.OLLAMA, window=64, strict=False) as server:
            body = {"model": "test-model", "messages": GOOD["messages"], "stream": False, **more}
            answer = ask(server, path=OLLAMA, body=body).json
            return answer["done_reason"], answer["prompt_eval_count"] + answer["eval_count"]

    assert said() == ("stop", 312)
    assert said(shift=False) == ("length", 64)


@pytest.mark.parametrize("kind", [Kind.VLLM, Kind.ANTHROPIC])
def test_some_kinds_refuse_an_answer_that_might_not_fit(kind: Kind) -> None:
    with ModelServer(says("Hello."), kind=kind, window=256, strict=False) as server:
        answer = ask(server, path=path_of(kind), max_tokens=250)

    error = failure_of(answer.status, answer.headers, answer.body)
    assert (error.failure, error.window, error.tokens) == (Failure.OVERFLOW, 256, 11)


# --- a history that cannot be read ---------------------------------------------------------------


@pytest.mark.parametrize("arguments", ['{"path": "/', "", '{"a" 1}'])
def test_llama_cpp_fails_when_the_arguments_in_the_history_are_not_json(arguments: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    history = [
        *GOOD["messages"],
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]

    def status(kind: Kind) -> Answered:
        with ModelServer(says("Hello."), kind=kind) as server:
            return ask(server, messages=history)

    answer = status(Kind.LLAMA_CPP)
    assert answer.status == 500
    assert answer.json["error"]["message"].startswith("Failed to parse tool call arguments as JSON")
    assert status(Kind.OPENAI).status == 200


# --- by name -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_can_be_given_by_its_name(kind: Kind) -> None:
    with ModelServer(says("Hello."), kind=kind.value) as server:
        assert ask(server, path=path_of(kind)).status == 200


def test_a_kind_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        ValueError, match=r"^There is no kind 'olama' of server\. There are: "
    ) as no:
        ModelServer(kind="olama")

    assert [kind.value for kind in Kind if kind.value not in str(no.value)] == []
