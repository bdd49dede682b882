"""One reply out of what real servers send, and one of five failures out of the rest."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.events import Failure, Finish, Reply, WantedCall
from holdfast.core.limits import Usage
from holdfast.models.base import ModelError, Replied, Said, Thought
from holdfast.models.chunks import EMPTY_STREAM, NO_REASON, ReplySoFar
from holdfast.models.failures import failure_in, failure_of

STOP = {"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}]}
DONE = object()
Got = tuple[list[Said | Thought], Replied]


def delta(finish: object = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def says(*texts: object) -> list[object]:
    return [delta(content=text) for text in texts]


def tool(*fragments: object) -> dict[str, object]:
    return delta(tool_calls=list(fragments))


def part(index: object, id: object, name: object, arguments: object) -> dict[str, object]:  # noqa: A002
    def there(**fields: object) -> dict[str, object]:
        return {key: value for key, value in fields.items() if value != "absent"}

    return there(index=index, id=id, function=there(name=name, arguments=arguments))


def read(*chunks: object) -> Got:
    reply = ReplySoFar()
    pieces: list[Said | Thought] = []
    for chunk in chunks:
        pieces += reply.done() if chunk is DONE else reply.feed(chunk)
    return pieces, reply.finish()


def replied(*chunks: object) -> Replied:
    return read(*chunks)[1]


def calls(*chunks: object) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in replied(*chunks, STOP).reply.calls]


def whole(message: object, finish: object = "stop", **more: object) -> Replied:
    reply = ReplySoFar()
    reply.whole({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more})
    return reply.finish()


# --- what real servers sent -----------------------------------------------------------------

LLAMA_SERVER = """\
{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"model":"qwen2.5-coder-1.5b","object":"chat.completion.chunk"}
{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"1"}}],"model":"qwen2.5-coder-1.5b","object":"chat.completion.chunk"}
{"choices":[{"finish_reason":null,"index":0,"delta":{"content":","}}],"model":"qwen2.5-coder-1.5b","object":"chat.completion.chunk"}
{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"model":"qwen2.5-coder-1.5b","object":"chat.completion.chunk"}
{"choices":[],"model":"qwen2.5-coder-1.5b","object":"chat.completion.chunk","usage":{"completion_tokens":30,"prompt_tokens":38,"total_tokens":68,"prompt_tokens_details":{"cached_tokens":24}},"timings":{"cache_n":24}}"""
CUT_CALL = """\
{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}
{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"Qirn","type":"function","function":{"name":"read_file","arguments":"{"}}]}}]}
{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\n    \\"path\\": \\"/"}}]}}]}
{"choices":[{"finish_reason":"length","index":0,"delta":{}}]}"""
LLAMAFILE = """\
{"choices":[{"delta":{"content":"How"},"finish_reason":null,"index":0}],"id":"chatcmpl-aAZt","model":"tiny"}
{"choices":[{"delta":{},"finish_reason":"length","index":0}],"id":"chatcmpl-9P9d","model":"tiny"}"""
LLAMA_CPP_PYTHON = """{"id":"chatcmpl-49e1","object":"chat.completion","model":"smol","choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"call__0","type":"function","function":{"name":"get_weather","arguments":"{ \\"city\\": \\"Oslo\\"}"}}],"role":"assistant","function_call":{"name":"get_weather","arguments":"{ \\"city\\": \\"Oslo\\"}"}},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":23,"completion_tokens":16,"total_tokens":39}}"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            LLAMA_SERVER,
            Replied(
                Reply(text="1,"),
                Usage(prompt=38, completion=30, cached=24),
                "qwen2.5-coder-1.5b",
            ),
        ),
        (
            CUT_CALL,
            Replied(
                Reply(
                    calls=(WantedCall("read_file", '{\n    "path": "/', "Qirn"),),
                    finish=Finish.LENGTH,
                ),
                None,
            ),
        ),
        (LLAMAFILE, Replied(Reply(text="How", finish=Finish.LENGTH), None, "tiny")),
    ],
)
def test_streams_of_real_servers_are_read(lines: str, expected: Replied) -> None:
    assert replied(*map(json.loads, lines.splitlines())) == expected


def test_a_call_that_comes_in_the_old_and_the_new_form_is_one_call() -> None:
    reply = ReplySoFar()
    reply.whole(json.loads(LLAMA_CPP_PYTHON))

    assert reply.finish() == Replied(
        Reply(calls=(WantedCall("get_weather", '{ "city": "Oslo"}', "call__0"),)),
        Usage(prompt=23, completion=16),
        "smol",
    )


def test_an_error_inside_a_stream_is_the_failure_it_names() -> None:
    body = '{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}'

    with pytest.raises(ModelError, match="does not match the expected") as raised:
        read(*says("half"), json.loads(body))

    assert raised.value.failure is Failure.GARBLED


# --- what is said ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 1, "delta": {"content": "the other choice"}}]},
        delta(content=None, tool_calls=None, function_call=None, refusal=None, role="assistant"),
        delta(content=[{"type": "image_url", "image_url": {"url": "x"}}, None, 5]),
        delta("", content="", refusal="", x_unknown={"a": 1}, reasoning=None),
        {"error": None, "usage": None, "model": None},
    ],
)
def test_a_chunk_with_nothing_in_it_adds_nothing(chunk: object) -> None:
    assert read(*says("a"), chunk, *says("b"), STOP) == (
        [Said("a"), Said("b")],
        Replied(Reply(text="ab"), None),
    )


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"text": "b"}, "c"]
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]

    assert read(*says(thinking, parts, {"type": "text", "text": "d"}), STOP)[0] == [
        Thought("hm", "thinking"),
        *map(Said, "abcd"),
    ]


@pytest.mark.parametrize(
    ("fields", "thoughts"),
    [
        ({"reasoning_content": "hm"}, [Thought("hm", "reasoning_content")]),
        ({"reasoning": "hm"}, [Thought("hm", "reasoning")]),
        ({"thinking": [{"type": "text", "text": "h"}, "m"]}, [Thought("hm", "thinking")]),
        ({"model_thoughts": "hm"}, [Thought("hm", "model_thoughts")]),
        (
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
            [Thought("hm", "reasoning")],
        ),
        ({"thought_signature": "aGVsbG8="}, []),
        ({"reasoning_tokens": 5, "thinking": True, "reasoning": {"effort": "low"}}, []),
    ],
)
def test_whatever_is_named_like_a_thought_is_one(
    fields: dict[str, object], thoughts: list[Thought]
) -> None:
    pieces, end = read(delta(**fields), *says("yes"), STOP)

    assert pieces == [*thoughts, Said("yes")]
    assert end.reply == Reply(text="yes", reasoning="".join(each.text for each in thoughts))


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ("\n <think>\nhm</think>\n\nyes\n", "yes\n", "\nhm"),
        ("<think>never closed </thi", "", "never closed </thi"),
        ("Write <think> first, then </think>.", "Write <think> first, then </think>.", ""),
        ("  <thi", "  <thi", ""),
    ],
)
def test_a_thought_at_the_beginning_of_the_text_is_no_answer_however_it_is_cut(
    content: str, text: str, reasoning: str
) -> None:
    for size in (1, 2, 3, 5, 8, 100):
        pieces, end = read(
            *says(*(content[i : i + size] for i in range(0, len(content), size))), STOP
        )
        assert (end.reply.text, end.reply.reasoning) == (text, reasoning)
        assert "".join(piece.text for piece in pieces if isinstance(piece, Said)) == text
        assert ("a <think> block was never closed" in end.notes) == ("never" in content)
    assert whole({"content": content}).reply == Reply(text=text, reasoning=reasoning)


def test_a_thought_without_its_beginning_is_told_as_an_answer_and_is_none_in_the_reply() -> None:
    field = {"choices": [{"delta": {"reasoning_content": "well. "}}]}
    pieces, end = read(field, *says("hm\n</th", "ink>\n\n", "yes"), STOP)

    assert pieces[1:] == [Said("hm\n</th"), Said("ink>\n\n"), Said("yes")]
    assert end.reply == Reply(text="yes", reasoning="well. hm\n")
    assert end.notes == ("a thought without its beginning",)


def test_text_is_clean_and_a_character_in_two_halves_is_one() -> None:
    pieces, end = read(*says("\ud83d", "\ude00", "\0"), STOP)

    assert end.reply.text == "😀\ufffd"
    assert all(piece.text.isprintable() for piece in pieces)


# --- calls ----------------------------------------------------------------------------------

A, B = ("f", '{"a":1}'), ("g", '{"b":2}')


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([tool(part(0, "x", "f", '{"a"')), tool(part(0, "absent", "absent", ":1}"))], [A]),
        ([tool(part(0, "x", "f", None)), tool(part(0, None, None, '{"a":1}'))], [A]),
        ([tool(part(0, "x", "f", {"a": 1}))], [A]),
        ([tool({"id": "x", "name": "f", "arguments": '{"a":1}'})], [A]),
        ([delta(tool_calls=part(0, "x", *A))], [A]),
        # an index, an id, a name for each fragment, or for none
        ([tool(part("absent", "x", "f", '{"a"')), tool(part("absent", "absent", "", ":1}"))], [A]),
        ([tool(part(None, "x", "f", '{"a"')), tool(part(None, "x", "f", ":1}"))], [A]),
        ([tool(part(None, "", "f", '{"a"')), tool(part(None, "", "f", ":1}"))], [A]),
        ([tool(part(0, "x", "f", '{"a"')), tool(part(0, "y", "f", ":1}"))], [A]),
        ([tool(part(0, "x", "f", "")), tool(part(0, "y", "", '{"a":1}'))], [A]),
        ([tool(part(0, "x", "read_", "")), tool(part(0, None, "file", "{}"))], [("read_file", "{}")]),
        ([tool(part(0, "x", "re", "")), tool(part(0, "x", "read", "{}"))], [("read", "{}")]),
        # the same call again, whole; a placeholder; a part that is meant twice
        ([tool(part(0, "x", *A)), tool(part(0, "x", *A))], [A]),
        ([tool(part(0, "x", *A)), tool(part(0, "x", "f", ""))], [A]),
        ([tool(part(0, "x", "f", "{}")), tool(part(0, None, None, '{"a":1}'))], [A]),
        ([tool(part(0, "x", "f", "{}")), tool(part(0, "x", "f", '{"a":1}'))], [A]),
        (
            [tool(part(0, "x", "f", '{"a":')), *(tool(part(0, "x", "", t)) for t in ('{"a":', "1}}"))],
            [("f", '{"a":{"a":1}}')],
        ),
        # several calls
        ([tool(part(0, "x", *A)), tool(part(1, "y", *B))], [A, B]),
        ([tool(part(0, "x", *A)), tool(part(1, "x", *B))], [A, B]),
        ([tool(part(0, "x", *A)), tool(part(0, "y", *B))], [A, B]),
        ([tool(part(0, "x", *A)), tool(part(0, "y", *A))], [A, A]),
        ([tool(part(0, "", *A)), tool(part(0, "", *B))], [A, B]),
        ([tool(part(0, "x", *A)), tool(part(0, "x", "f", '{"a":2}'))], [A, ("f", '{"a":2}')]),
        ([tool(part("absent", "x", *A)), tool(part("absent", "y", *B))], [A, B]),
        ([tool(part("absent", "x", *A), part("absent", "x", *B))], [A, B]),
        ([tool(part("absent", None, *A), part("absent", None, *A))], [A, A]),
        (
            [
                tool(part(0, "x", "f", '{"a"'), part(1, "y", "g", '{"b"')),
                tool(part(1, "absent", "absent", ":2}"), part(0, "absent", "absent", ":1}")),
            ],
            [A, B],
        ),
        (
            [
                tool(part(0, "x", "f", ""), part(0, "y", "g", "")),
                tool(part(0, "x", "", A[1]), part(0, "y", "", B[1])),
            ],
            [A, B],
        ),
        # the old form, and what is no call
        ([delta(function_call={"name": "f", "arguments": '{"a"'}), delta(function_call={"arguments": ":1}"})], [A]),
        ([tool(part(0, "x", *A)), delta(function_call={"name": "f", "arguments": "{}"})], [A]),
        ([tool(None), tool(part(0, "", "", "")), tool(5), delta(tool_calls="x")], []),
        ([tool(part(0, "x", "", '{"a":1}'))], [("", '{"a":1}')]),
        ([tool(part(0, "x", "f", '{"a": 7'))], [("f", '{"a": 7')]),
        ([tool(part(0, "x", "f", [1]))], [("f", "[1]")]),
    ],
)  # fmt: skip
def test_calls_are_put_together(chunks: list[object], expected: list[tuple[str, str]]) -> None:
    assert calls(*chunks) == expected


def test_a_message_that_came_whole_repeats_a_call_because_it_means_it() -> None:
    same = [part("absent", "x", *A), part("absent", "x", *A)]

    assert whole({"content": None, "tool_calls": same}).reply.calls == (WantedCall(*A, "x"),) * 2


def test_a_call_without_arguments_gets_an_empty_object_unless_it_was_cut() -> None:
    empty = tool(part(0, "x", "f", None))

    assert replied(empty, delta("tool_calls")) == Replied(
        Reply(calls=(WantedCall("f", "{}", "x"),)), None, notes=("a call without arguments",)
    )
    assert replied(empty, delta("length")).reply.calls == (WantedCall("f", "", "x"),)


# --- the end --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "finish", "repairs"),
    [
        ("stop", Finish.STOP, ()),
        ("tool_calls", Finish.STOP, ("calls were announced, and none came",)),
        ("length", Finish.LENGTH, ()),
        ("content_filter", Finish.REFUSED, ()),
        ("refusal", Finish.REFUSED, ()),
        ("whatever", Finish.STOP, ("unknown finish reason 'whatever'",)),
    ],
)
def test_the_finish_reason_is_translated(
    reason: str, finish: Finish, repairs: tuple[str, ...]
) -> None:
    expected = Replied(Reply(text="a", finish=finish), None, notes=repairs)

    assert replied(*says("a"), delta(reason)) == expected
    assert whole({"content": "a"}, reason) == expected


def test_a_reply_with_calls_has_them_whatever_the_finish_reason_says() -> None:
    assert calls(tool(part(0, "x", *A))) == [A]


def test_a_refusal_is_said_and_known_as_one() -> None:
    end = Replied(Reply(text="No.", finish=Finish.REFUSED), None)

    assert read(delta(refusal="No."), STOP) == ([Said("No.")], end)
    assert replied(delta(content=[{"type": "refusal", "refusal": "No."}]), STOP) == end


@pytest.mark.parametrize(
    ("chunks", "detail"),
    [
        ([], EMPTY_STREAM),
        ([DONE], EMPTY_STREAM),
        (says("half an ans"), "the stream broke off after 1 chunks"),
        ([tool(part(0, "x", *A))], "the stream broke off after 1 chunks"),
        ([delta(role="assistant"), DONE], NO_REASON),
        ([delta(reasoning="hm"), DONE], NO_REASON),
        ([tool(part(0, "x", "f", '{"a": 7')), DONE], NO_REASON),
        ([*says("a"), delta("error")], "the server gave up: error"),
        ([None], "not a chunk: null"),
        (["text"], "not a chunk: text"),
    ],
)  # fmt: skip
def test_nothing_of_a_stream_that_did_not_end_properly_is_used(
    chunks: list[object], detail: str
) -> None:
    with pytest.raises(ModelError) as raised:
        replied(*chunks)

    assert (raised.value.failure, raised.value.detail) == (Failure.GARBLED, detail)


def test_done_is_no_end_of_a_stream_that_does_not_say_why_it_ended() -> None:
    for chunks in (says("yes"), [tool(part(0, "x", *A))]):
        with pytest.raises(ModelError, match=NO_REASON):
            replied(*chunks, DONE)


def test_a_message_that_came_whole_needs_no_reason() -> None:
    assert whole({"content": "yes"}, finish=None) == Replied(
        Reply(text="yes"), None, notes=("no finish reason",)
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3}, Usage(prompt=5, completion=3)),
        ({"prompt_tokens": "5", "completion_tokens": 3.0}, Usage(prompt=5, completion=3)),
        ({"prompt_tokens": -1, "completion_tokens": 3}, Usage(completion=3)),
        ({"completion_tokens": 3, "total_tokens": 8}, Usage(prompt=5, completion=3)),
        ({"prompt_tokens": 5, "total_tokens": 8}, Usage(prompt=5, completion=3)),
        ({"input_tokens": 5, "output_tokens": 3}, Usage(prompt=5, completion=3)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(prompt=5, cached=4),
        ),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 9}, Usage(prompt=5, cached=5)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": "many", "completion_tokens": True, "total_tokens": float("nan")}, None),
        ({}, None),
        ([5], None),
    ],
)
def test_usage_is_what_can_be_believed_of_it(usage: object, expected: Usage | None) -> None:
    early = {**delta(content="a"), "usage": usage}
    inside = {"choices": [{"delta": {}, "usage": usage}]}

    assert replied(early, STOP, {"usage": None}).usage == expected
    assert replied(*says("a"), STOP, inside).usage == expected
    assert whole({"content": "a"}, usage=usage).usage == expected


# --- failures -------------------------------------------------------------------------------


def said(message: str, **more: object) -> str:
    return json.dumps({"error": {"message": message, **more}})


OVERFLOWS: list[tuple[int, str, int | None, int | None]] = [
    (400, '{"error":{"code":400,"message":"request (5030 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5030,"n_ctx":4096}}', 4096, 5030),
    (400, said("the request exceeds the available context size", n_prompt_tokens=5030, n_ctx=4096), 4096, 5030),
    (500, said("Context size has been exceeded.", type="server_error"), None, None),
    (400, '{"error":{"message":"This model\'s maximum context length is 2048 tokens. However, you requested 3127 tokens (3031 in the messages, 96 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}', 2048, 3031),
    (400, said("This model's maximum context length is 4097 tokens, however you requested 6539 tokens (6283 in your prompt; 256 for the completion)."), 4097, 6283),
    (400, said("This model's maximum context length is 4097 tokens. However, your messages resulted in 7575 tokens."), 4097, 7575),
    (400, said("Your input exceeds the context window of this model.", code="context_length_exceeded"), None, None),
    (400, said("'max_tokens' is too large: 16384. This model's maximum context length is 262144 tokens and your request has 246773 input tokens (16384 > 262144 - 246773)."), 262144, 246773),
    (400, said("This model's maximum context length is 8192 tokens. However, you requested 2048 output tokens and your prompt contains at least 6145 input tokens, for a total of at least 8193 tokens."), 8192, None),
    (400, said("You passed 16385 input tokens and requested 0 output tokens. However, the model's context length is only 16384 tokens, resulting in a maximum input length of 16384 tokens."), 16384, None),
    (400, said("The decoder prompt (length 5951) is longer than the maximum model length of 4096."), 4096, 5951),
    (400, said("This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741 tokens (1227853 of text input, 65535 in the output)."), 1048576, None),
    (400, said("The input (85050 tokens) is longer than the model's context length (32768 tokens)."), 32768, 85050),
    (400, '{"error":"Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}', 4096, None),
    (400, '{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10978 \\u003e= n_ctx: 8192)."}', 8192, None),
    (500, '{"error":"the input length exceeds the context length"}', None, None),
    (400, '{"error":"prompt too long; exceeded max context length by 4096 tokens"}', None, None),
    (400, '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}', 200000, 208310),
    (400, said("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length"), 200000, 178959),
    (400, '{"object":"error","message":"Prompt contains 40014 tokens and 0 draft tokens, too large for model with 32768 maximum context length","code":3051}', 32768, 40014),
    (400, '[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]', 1048576, 1200293),
    (422, '{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and 1024 `max_new_tokens`"}', 1512, 1000),
    (400, said("This model's maximum prompt length is 131072 but the request contains 537812 tokens."), 131072, 537812),
    (429, said("prompt token count of 9000 exceeds the limit of 8192"), 8192, 9000),
    (413, "", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "window", "tokens"), OVERFLOWS)
def test_a_request_that_is_too_long_is_known_in_each_servers_words(
    status: int, body: str, window: int | None, tokens: int | None
) -> None:
    found = [failure_of(status, {}, body.encode())]
    if body:
        with pytest.raises(ModelError) as raised:
            read(json.loads(body))
        found.append(raised.value)

    for each in found:
        assert (each.failure, each.window, each.tokens) == (Failure.OVERFLOW, window, tokens)


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (401, said("Invalid API Key", code=401), Failure.REJECTED),
        (404, said("File Not Found", type="not_found_error", code=404), Failure.REJECTED),
        (400, said("'messages' is required", type="invalid_request_error"), Failure.REJECTED),
        (402, "", Failure.REJECTED),
        (422, '{"detail":[{"loc":["body"],"msg":"field required"}]}', Failure.REJECTED),
        (501, said("This server does not support embeddings."), Failure.REJECTED),
        (503, said("Loading model", type="unavailable_error", code=503), Failure.BUSY),
        (429, said("Rate limit reached for tokens per min"), Failure.BUSY),
        (429, said("You exceeded your quota", code="insufficient_quota"), Failure.REJECTED),
        (529, said("Overloaded", type="overloaded_error"), Failure.BUSY),
        (408, "", Failure.BUSY),
        (409, "", Failure.BUSY),
        (500, said("Failed to parse tool call arguments as JSON: ..."), Failure.GARBLED),
        (500, said("", type="internal_server_error", param=None, code=None), Failure.GARBLED),
        (500, "Internal Server Error", Failure.GARBLED),
        (502, "", Failure.GARBLED),
        (504, "", Failure.GARBLED),
        (200, "<html><body>Log in</body></html>", Failure.GARBLED),
    ],
)
def test_every_other_status_is_one_of_the_kinds(status: int, body: str, failure: Failure) -> None:
    assert failure_of(status, {}, body.encode()).failure is failure


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"code": 429, "message": "slow down"}, Failure.BUSY),
        ({"code": "503", "message": "Loading model"}, Failure.BUSY),
        ({"type": "overloaded_error", "message": "Overloaded"}, Failure.BUSY),
        ({"code": "insufficient_quota", "message": "rate limit"}, Failure.REJECTED),
        ({"type": "invalid_request_error", "message": "no"}, Failure.REJECTED),
        ({"type": "server_error"}, Failure.GARBLED),
        ("something broke", Failure.GARBLED),
        (True, Failure.GARBLED),
    ],
)
def test_an_error_without_a_status_is_known_by_its_words(error: object, failure: Failure) -> None:
    assert failure_in(error).failure is failure


@pytest.mark.parametrize(
    ("status", "body", "detail"),
    [
        (503, said("Loading\nmodel"), "HTTP 503: Loading model"),
        (400, '{"detail":"no such\\ttool"}', "HTTP 400: no such tool"),
        (500, "", "HTTP 500: without a word"),
        (
            502,
            "<html>\n<head><title>502 Bad\n Gateway</title></head><body>" + "x" * 9_000,
            "HTTP 502: a page: 502 Bad Gateway",
        ),
        (200, "<!DOCTYPE html><p>Log <b>in</b></p>", "HTTP 200: a page: Log in"),
    ],
)
def test_the_detail_is_one_line_for_people(status: int, body: str, detail: str) -> None:
    assert failure_of(status, {}, body.encode()).detail == detail


def test_a_long_body_is_cut() -> None:
    assert len(failure_of(500, {}, b"word " * 1_000_000).detail) == len("HTTP 500: ") + 300


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, 37.0),
        ({"Retry-After": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0.0),
        ({"Retry-After": "Sun, 06 Nov 1994 08:49:37"}, 37.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "inf"}, None),
        ({}, None),
    ],
)
def test_a_server_may_say_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    now = 784_111_740.0  # 1994-11-06 08:49:00 UTC

    assert failure_of(429, headers, b"", now=now).retry_after == seconds


def test_a_date_means_nothing_to_who_does_not_know_the_time() -> None:
    headers = {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}

    assert failure_of(429, headers, b"").retry_after is None


# --- anything at all ------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["choices", "delta", "message", "content", "text", "type", "tool_calls", "function", "name"]
    + ["arguments", "index", "id", "function_call", "reasoning", "refusal", "usage", "error", "code"]
    + ["prompt_tokens", "finish_reason", "stop", "length", "<think>", "</think>", "{}", "object"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5)
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
DELTAS = st.dictionaries(WORDS, JSON, max_size=4)
CHUNKS = JSON | st.builds(
    lambda one, more: {"choices": [{"delta": one, "message": one, **more}]},
    DELTAS,
    st.dictionaries(st.sampled_from(["finish_reason", "index", "usage"]), LEAVES),
)


@given(st.lists(CHUNKS, max_size=4), st.booleans())
@example([delta(tool_calls=[part(0, "x", "f", {"a": float("nan")})])], True)
def test_any_json_is_a_reply_or_a_failure_of_ours(chunks: list[object], done: bool) -> None:
    try:
        pieces, end = read(*chunks, *([DONE] if done else []))
    except ModelError:
        return
    for each in (*pieces, end.reply):
        each.text.encode()


@given(CHUNKS)
def test_any_json_is_a_whole_reply_or_a_failure_of_ours(body: object) -> None:
    try:
        reply = ReplySoFar()
        reply.whole(body)
        reply.finish()
    except ModelError:
        pass


@given(st.integers(0, 999), st.text(max_size=40), st.binary(max_size=80) | JSON, st.floats())
def test_any_response_is_a_failure_of_ours(
    status: int, wait: str, body: object, now: float
) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    found = failure_of(status, {"Retry-After": wait}, raw, now=now)

    assert len(found.detail) < 400
    assert found.retry_after is None or found.retry_after >= 0


TAGGED = st.lists(st.sampled_from(["<think>", "</think>", "<", "</", "think>", " ", "\n", "a"]))


@given(TAGGED.map("".join), st.lists(st.integers(0, 60), max_size=8))
def test_how_a_text_is_cut_into_deltas_changes_nothing(text: str, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    parts = [text[a:b] for a, b in zip(places, places[1:], strict=False)]

    pieces, end = read(*says(*parts), STOP)

    assert end == read(*says(text), STOP)[1]
    told = "".join(each.text for each in pieces if isinstance(each, Said))
    assert told == (text if "a thought without its beginning" in end.notes else end.reply.text)
