"""Every fault does, byte for byte, what its sentence says."""

import gzip
import json
from contextlib import suppress
from http.client import IncompleteRead
from typing import Any

import pytest
from inline_snapshot import snapshot

from holdfast.core.events import Failure, Finish
from holdfast.core.jsontext import json_object
from holdfast.models.base import ModelError, Replied
from holdfast.models.chunks import ReplySoFar
from holdfast.models.failures import failure_of
from holdfast.models.sse import Event, Events
from holdfast.testing.script import calls, says, several, wants
from holdfast.testing.server import Fault, Kind, ModelServer, Turn, faults
from holdfast.testing.server.faults import FAULTS, MAKERS, sentence
from holdfast.testing.server.mangled import AS_TEXT, BROKEN
from tests.testing.client import (
    CHAT,
    CLOCK,
    MESSAGES,
    OLLAMA,
    Answered,
    arrived,
    ask,
    bare_socket,
    connected,
    ended,
    received_until,
    received_until_closed,
    request_bytes,
)

USAGE = {"include_usage": True}
ZONE = calls("clock", zone="utc")


def answer_to(turn: Turn, *, kind: Kind = Kind.LLAMA_CPP, **fields: Any) -> Answered:
    with ModelServer(turn, kind=kind) as server:
        return ask(server, **fields)


def streamed(turn: Turn, **fields: Any) -> Answered:
    return answer_to(turn, stream=True, stream_options=USAGE, tools=[CLOCK], **fields)


def message_of(turn: Turn, **fields: Any) -> Any:
    return answer_to(turn, tools=[CLOCK], **fields).json["choices"][0]["message"]


def call_of(turn: Turn) -> Any:
    (call,) = message_of(turn)["tool_calls"]
    return call


def bytes_of(turn: Turn, sent: bytes = b"") -> bytes:
    """All that comes over the socket until the server closes it."""
    with ModelServer(turn) as server, bare_socket(server, sent or request_bytes(stream=True)) as s:
        return received_until_closed(s)


def read(body: bytes) -> Replied:
    """What our own reader makes of a stream."""
    events, reply = Events(), ReplySoFar()
    for event in events.feed(body):
        if isinstance(event, Event) and event.data != "[DONE]":
            reply.feed(json.loads(event.data))
        elif isinstance(event, Event):
            reply.done()
    return reply.finish()


# --- the server says no --------------------------------------------------------------------------


def test_http_is_any_answer() -> None:
    answer = answer_to(faults.http(418, "I am a teapot", {"X-Pot": "short"}))

    assert (answer.status, answer.body, answer.headers["x-pot"]) == (418, b"I am a teapot", "short")
    assert (answer_to(faults.http()).status, answer_to(faults.http()).body) == (500, b"")


def test_busy_says_how_long() -> None:
    with ModelServer(faults.busy(retry_after=0.5, times=2), says("Hello.")) as server:
        answers = [ask(server) for _ in range(3)]

    assert [each.status for each in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "0.5"
    assert "retry-after" not in answer_to(faults.busy(retry_after=None)).headers


@pytest.mark.parametrize("kind", Kind)
def test_busy_and_unavailable_are_said_in_the_shape_of_the_kind(kind: Kind) -> None:
    path = MESSAGES if kind is Kind.ANTHROPIC else CHAT
    for turn in (faults.busy(), faults.unavailable()):
        answer = answer_to(turn, kind=kind, path=path)
        error = failure_of(answer.status, answer.headers, answer.body)
        assert error.failure is Failure.BUSY
        assert error.detail.startswith(f"HTTP {answer.status}: ")


def test_loading_meets_every_request_until_the_model_is_there() -> None:
    with ModelServer(faults.loading(3), says("Hello.")) as server:
        health = [ask(server, "GET", "/health").status]
        chat = [ask(server).status]
        health.append(ask(server, "GET", "/health").status)
        chat.append(ask(server).status)
        health.append(ask(server, "GET", "/health").status)

    assert (health, chat) == ([503, 503, 200], [503, 200])
    error = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
    assert answer_to(faults.loading()).json == {"error": error}


@pytest.mark.parametrize("kind", [each for each in Kind if each is not Kind.LLAMAFILE])
def test_overflow_can_be_said_in_the_words_of_any_kind(kind: Kind) -> None:
    answer = answer_to(faults.overflow(kind))

    assert failure_of(answer.status, answer.headers, answer.body).failure is Failure.OVERFLOW


def test_overflow_is_said_in_the_words_of_the_own_kind_unless_told_otherwise() -> None:
    assert answer_to(faults.overflow(), kind=Kind.VLLM).json["error"]["type"] == "BadRequestError"


def test_wrong_key_and_unknown_model_are_refused() -> None:
    assert answer_to(faults.wrong_key()).status == 401
    assert answer_to(faults.unknown_model()).status == 404


def test_malformed_history_is_a_500_in_the_words_of_llama_cpp() -> None:
    error = answer_to(faults.malformed_history()).json["error"]

    assert error["code"] == 500
    assert error["message"].startswith("Failed to parse tool call arguments as JSON: [json.")


def test_html_page_is_a_page() -> None:
    answer = answer_to(faults.html_page(), stream=True)

    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.body.startswith(b"<!doctype html>")


# --- it ends too early ---------------------------------------------------------------------------


def test_close_before_answering_sends_nothing() -> None:
    assert bytes_of(faults.close_before_answering()) == b""


def test_dropped_stream_closes_after_so_many_events() -> None:
    data = bytes_of(faults.dropped_stream(says("one two three four"), after=3))

    assert data.count(b"data: ") == 3
    assert b" two" in data
    assert b" three" not in data
    assert not data.endswith(b"0\r\n\r\n")


def test_dropped_stream_closes_after_so_many_bytes() -> None:
    data = bytes_of(faults.dropped_stream(at_byte=10))

    assert data.endswith(b'\r\n\r\na\r\ndata: {"id\r\n')


def test_dropped_stream_breaks_a_whole_answer_too() -> None:
    with ModelServer(faults.dropped_stream()) as server, pytest.raises(IncompleteRead) as cut:
        ask(server)

    assert cut.value.partial.startswith(b'{"id"')
    assert cut.value.expected  # so many bytes were promised and did not come


def test_reset_stream_resets() -> None:
    with (
        ModelServer(faults.reset_stream(says("one two three"), after=2)) as server,
        bare_socket(server, request_bytes(stream=True)) as sock,
    ):
        ended(server)
        with pytest.raises(ConnectionResetError):
            received_until_closed(sock)

    assert not server.received[0].hung_up


def test_half_event_ends_properly_in_the_middle_of_an_event() -> None:
    answer = answer_to(faults.half_event(), stream=True)
    events = Events()

    assert len(events.feed(answer.body)) > 3
    assert events.end() is not None


def test_empty_stream_is_200_and_nothing_and_the_next_request_is_reset() -> None:
    with ModelServer(faults.empty_stream(), says("Hello.")) as server:
        connection = connected(server)
        empty = ask(server, stream=True, connection=connection)
        with pytest.raises(ConnectionResetError):
            ask(server, connection=connection)
        connection.close()
        assert ask(server).status == 200

    assert (empty.status, empty.body) == (200, b"")


def test_cut_json_is_half_of_it() -> None:
    whole = answer_to(faults.cut_json())
    stream = answer_to(faults.cut_json(), stream=True)

    for text in (whole.body.decode(), *unreadable_in(stream.body)):
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
    assert len(unreadable_in(stream.body)) == 1
    assert stream.body.endswith(b"data: [DONE]\n\n")


def unreadable_in(body: bytes) -> list[str]:
    data = [each.removeprefix("data: ") for each in body.decode().split("\n\n") if each]
    return [each for each in data if each != "[DONE]" and not each.endswith("}")]


# --- it does not end -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turn", "end"),
    [
        (faults.stall(), b"\r\n\r\n"),
        (faults.stall(says("one two three"), after=3), b'" two"'),
        (faults.keep_alive_only(pause=0.001), b": keep-alive\n\n\r\ne\r\n: keep-alive\n\n"),
    ],
)
def test_what_stalls_sends_its_beginning_and_then_stays_open(turn: Turn, end: bytes) -> None:
    with ModelServer(turn) as server, bare_socket(server, request_bytes(stream=True)) as sock:
        begun = received_until(sock, end)
        assert begun.startswith(b"HTTP/1.1 200 OK\r\n")
        assert not server.received[0].ended
        sock.close()
        server.wait_for(lambda: server.received[0].hung_up)


def test_silence_sends_nothing_at_all() -> None:
    with (
        ModelServer(faults.silence()) as server,
        bare_socket(server, request_bytes(stream=True)) as sock,
    ):
        arrived(server)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)


def test_a_stall_in_a_whole_answer_promises_more_than_it_sends() -> None:
    with (
        ModelServer(faults.stall(after=1)) as server,
        bare_socket(server, request_bytes()) as sock,
    ):
        head, _, body = received_until(sock, b'{"id"').partition(b"\r\n\r\n")

    length = int(head.rpartition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    assert len(body) < length


# --- it comes in an odd way, and is whole --------------------------------------------------------

TEXT = "Grüße, 你好 👋 one two."


@pytest.mark.parametrize(
    "turn",
    [
        faults.keep_alive_comments(says(TEXT)),
        faults.crlf(says(TEXT)),
        faults.trickle(says(TEXT)),
        faults.split_characters(says(TEXT)),
        faults.long_line(says(TEXT), size=100_000),
        faults.gzipped(says(TEXT)),
    ],
    ids=lambda turn: turn.name,
)
def test_what_comes_in_an_odd_way_is_whole(turn: Fault) -> None:
    assert read(answer_to(turn, stream=True).body).reply.text == TEXT
    assert message_of(turn)["content"] == TEXT


def test_keep_alive_comments_stand_before_every_event() -> None:
    body = answer_to(faults.keep_alive_comments(), stream=True).body

    assert body.count(b": keep-alive\n\n") == body.count(b"data: ") > 3


def test_crlf_leaves_no_line_that_ends_otherwise() -> None:
    body = answer_to(faults.crlf(), stream=True).body

    assert body.count(b"\n") == body.count(b"\r\n") > 3


def test_trickle_is_one_byte_a_chunk() -> None:
    _, _, body = bytes_of(
        faults.trickle(says("Hi")),
        alone(request_bytes(stream=True)),
    ).partition(b"\r\n\r\n")
    sizes = [line for line in body.split(b"\r\n")[::2] if line]

    assert set(sizes[:-1]) == {b"1"}
    assert sizes[-1] == b"0"


def test_split_characters_ends_a_chunk_in_the_middle_of_each() -> None:
    sent = alone(request_bytes(stream=True))
    data = bytes_of(faults.split_characters(says("ü👋")), sent)

    for first in (b"\xc3", b"\xf0"):
        assert data.count(first + b"\r\n") == 1


def test_gzipped_only_if_the_client_can_read_it() -> None:
    plain = answer_to(faults.gzipped(says("Hello.")))
    packed = answer_to(faults.gzipped(says("Hello.")), headers={"Accept-Encoding": "gzip, br"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.body)) == plain.json


def test_gzipped_streams_can_be_read_as_they_come() -> None:
    headers = {"Accept-Encoding": "gzip"}
    packed = answer_to(faults.gzipped(says("Hello.")), stream=True, headers=headers)

    assert read(gzip.decompress(packed.body)).reply.text == "Hello."


def test_long_line_is_as_long_as_told() -> None:
    body = answer_to(faults.long_line(size=70_000), stream=True).body

    assert max(map(len, body.split(b"\n"))) > 70_000


# --- what is in it -------------------------------------------------------------------------------


def test_utf8_garbage_cannot_be_decoded() -> None:
    for answer in (answer_to(faults.utf8_garbage()), streamed(faults.utf8_garbage())):
        with pytest.raises(UnicodeDecodeError):
            answer.body.decode()
        assert "\ufffd" in answer.body.decode("utf-8", "replace")


def test_nul_and_half_a_surrogate_pair_are_escaped() -> None:
    assert b"\\u0000" in answer_to(faults.nul()).body
    assert b"\\ud83d!" in answer_to(faults.lone_surrogate()).body
    assert message_of(faults.lone_surrogate(says("Hi")))["content"] == "Hi\ud83d!"


def test_giant_reply_is_giant_whatever_may_be_said() -> None:
    assert len(message_of(faults.giant_reply(300_000), max_tokens=5)["content"]) == 300_000
    assert len(streamed(faults.giant_reply(300_000)).text) == 300_000


def test_no_finish_reason_no_done_and_neither() -> None:
    no_reason = streamed(faults.no_finish_reason())
    no_done = streamed(faults.no_done())
    neither = streamed(faults.no_done(faults.no_finish_reason()))

    assert [reasons(each) for each in (no_reason, no_done, neither)] == [[], ["stop"], []]
    assert [each.events[-1] == "[DONE]" for each in (no_reason, no_done, neither)] == [
        True,
        False,
        False,
    ]


def reasons(answer: Answered) -> list[str]:
    choices = [
        choice for event in answer.events if event != "[DONE]" for choice in event["choices"]
    ]
    return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


def test_error_in_stream_comes_after_some_words_and_is_the_end() -> None:
    answer = streamed(faults.error_in_stream(says("Hello.")))

    assert (answer.status, answer.events[-1]) == (
        200,
        {
            "error": {
                "code": 500,
                "message": "The model produced output that does not match the expected "
                "peg-native format",
                "type": "server_error",
            }
        },
    )
    assert b"Hello" in answer.body
    assert answer_to(faults.error_in_stream()).status == 500


def test_window_full_adds_up_to_the_window() -> None:
    whole = answer_to(faults.window_full()).json

    assert (whole["usage"]["total_tokens"], whole["choices"][0]["finish_reason"]) == (
        4096,
        "length",
    )
    assert reasons(streamed(faults.window_full())) == ["length"]


def test_call_cut_by_length_is_half_of_a_call() -> None:
    whole = answer_to(faults.call_cut_by_length(ZONE)).json["choices"][0]
    (call,) = whole["message"]["tool_calls"]

    assert (call["function"]["arguments"], whole["finish_reason"]) == ('{"zone"', "length")
    reply = read(streamed(faults.call_cut_by_length(ZONE)).body).reply
    assert (reply.calls[0].arguments, reply.finish) == ('{"zone"', Finish.LENGTH)


def test_the_reason_can_lie_both_ways() -> None:
    with_calls = answer_to(faults.stop_with_calls(ZONE)).json["choices"][0]
    without = answer_to(faults.calls_announced_without_any()).json["choices"][0]

    assert (with_calls["finish_reason"], len(with_calls["message"]["tool_calls"])) == ("stop", 1)
    assert (without["finish_reason"], "tool_calls" in without["message"]) == ("tool_calls", False)


def test_ids_can_be_missing_empty_or_the_same() -> None:
    assert "id" not in call_of(faults.missing_ids(ZONE))
    assert call_of(faults.empty_ids(ZONE))["id"] == ""
    both = message_of(faults.duplicate_ids(ZONE))["tool_calls"]
    assert [each["id"] for each in both] == ["call_1", "call_1"]
    two = several(wants("a"), wants("b"))
    assert [each["id"] for each in message_of(faults.duplicate_ids(two))["tool_calls"]] == [
        "call_1",
        "call_1",
    ]
    assert b'"id":"call_' not in streamed(faults.missing_ids(ZONE)).body


def test_arguments_can_be_an_object() -> None:
    function = {"name": "clock", "arguments": {"zone": "utc"}}
    assert call_of(faults.arguments_as_object(ZONE))["function"] == function

    deltas = [
        event["choices"][0]["delta"]
        for event in streamed(faults.arguments_as_object(ZONE)).events[:-2]
    ]
    assert [delta["tool_calls"][0]["function"] for delta in deltas if "tool_calls" in delta] == [
        function
    ]


def test_arguments_can_be_broken_in_many_ways() -> None:
    written = {
        how: call_of(faults.broken_arguments(how, ZONE))["function"]["arguments"] for how in BROKEN
    }

    assert written == snapshot(
        {
            "doubled quotes": '{""zone"": ""utc""}',
            "doubled braces": '{{"zone": "utc"}}',
            "single quotes": "{'zone': 'utc'}",
            "bare keys": '{zone: "utc"}',
            "trailing comma": '{"zone": "utc",}',
            "unclosed": '{"zone": "utc"',
            "cut off": '{"zone"',
            "written twice": '{"zone": "utc"}{"zone": "utc"}',
            "in a fence": """\
```json
{"zone": "utc"}
```\
""",
            "in a string": '"{\\"zone\\": \\"utc\\"}"',
            "after some words": 'Here are the arguments: {"zone": "utc"}',
            "a raw line end": """\
{"zone": "utc", "note": "one
two"}\
""",
            "as Python": '{"zone": "utc", "really": True, "other": None}',
            "a list": '[{"zone": "utc"}]',
            "empty": "",
            "no JSON at all": "the usual ones, please",
        }
    )
    for text in written.values():
        with pytest.raises(ValueError, match="."):
            json_object(text)


def test_a_call_can_be_written_as_text_in_several_styles() -> None:
    messages = {style: message_of(faults.call_as_text(style, ZONE)) for style in AS_TEXT}

    assert {style: message["content"] for style, message in messages.items()} == snapshot(
        {
            "fenced": """\
```json
{"name": "clock", "arguments": {"zone": "utc"}}
```\
""",
            "tagged": """\
<tool_call>
{"name": "clock", "arguments": {"zone": "utc"}}
</tool_call>\
""",
            "TOOL_CALL": 'TOOL_CALL {"name": "clock", "arguments": {"zone": "utc"}}',
            "bare": '{"name": "clock", "arguments": {"zone": "utc"}}',
            "pythonic": "[clock(zone='utc')]",
        }
    )
    assert [style for style, message in messages.items() if "tool_calls" in message] == []


def test_reasoning_can_stand_in_several_fields() -> None:
    said = says("Hello.")
    fields = {
        field: message_of(faults.reasoning(field, said))
        for field in ("reasoning_content", "thinking")
    }

    assert [message[field] for field, message in fields.items()] == [
        "The user wants something. I had better say it."
    ] * 2
    assert message_of(faults.reasoning("think", said))["content"] == (
        "<think>\nThe user wants something. I had better say it.\n</think>\n\nHello."
    )
    for field in ("reasoning_content", "reasoning", "thinking", "think"):
        reply = read(streamed(faults.reasoning(field, said)).body).reply
        assert (reply.text, bool(reply.reasoning)) == ("Hello.", True)


def test_content_can_be_null_or_parts() -> None:
    assert message_of(faults.content_null())["content"] is None
    assert message_of(faults.content_as_parts(says("Hi there")))["content"] == [
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": " there"},
    ]
    assert read(streamed(faults.content_as_parts(says("Hi there"))).body).reply.text == "Hi there"


def test_choices_can_be_empty() -> None:
    assert answer_to(faults.empty_choices()).json["choices"] == []
    assert {len(each["choices"]) for each in streamed(faults.empty_choices()).events[:-1]} == {0}


def test_usage_can_be_missing_zero_or_wrong() -> None:
    assert "usage" not in answer_to(faults.no_usage()).json
    assert b'"usage"' not in streamed(faults.no_usage()).body
    zero = answer_to(faults.zero_usage()).json["usage"]
    assert (zero["prompt_tokens"], zero["completion_tokens"], zero["total_tokens"]) == (0, 0, 0)
    assert answer_to(faults.wrong_usage()).json["usage"]["prompt_tokens"] == 11 // 2


def test_another_model_can_answer() -> None:
    assert answer_to(faults.other_model()).json["model"] == "another-model"


# --- all of them ---------------------------------------------------------------------------------

ENDLESS = {"silence", "stall", "keep-alive-only", "overflow-llamafile"}


@pytest.mark.parametrize("kind", [Kind.LLAMA_CPP, Kind.OLLAMA, Kind.ANTHROPIC])
@pytest.mark.parametrize("stream", [False, True])
def test_every_fault_can_be_played_by_every_api_and_the_server_lives_on(
    kind: Kind, stream: bool
) -> None:
    path = {Kind.OLLAMA: OLLAMA, Kind.ANTHROPIC: MESSAGES}.get(kind, CHAT)
    sent = alone(request_bytes(path=path, stream=stream))
    turns = [make() for make in FAULTS.values()]
    with ModelServer(*turns, says("Still here."), kind=kind, strict=False) as server:
        for turn in turns:
            for _ in range(turn.times):
                known = len(server.received)
                with bare_socket(server, sent) as sock, suppress(ConnectionResetError):
                    if turn.name in ENDLESS:
                        arrived(server, known + 1)
                    else:
                        received_until_closed(sock)
        after = ask(server, path=path, stream=False)
        ended(server)

    assert b"Still here." in after.body
    left = [each.answer.removeprefix("200 ") for each in server.received if each.hung_up]
    assert set(left) <= ENDLESS


def alone(request: bytes) -> bytes:
    """The request as one after which the connection is closed."""
    return request.replace(b"Host: test", b"Connection: close")


def test_every_fault_has_its_name_and_a_sentence() -> None:
    assert {name: make().name for name, make in FAULTS.items()} == {name: name for name in FAULTS}
    sentences = [sentence(name) for name in MAKERS]
    assert [each for each in sentences if not each.endswith(".")] == []
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("how", ["trailing comma", "trailing-comma", "Trailing-Comma"])
def test_a_variant_is_known_by_either_spelling(how: str) -> None:
    fault = faults.broken_arguments(how, ZONE)

    assert fault.name == "broken-arguments-trailing-comma"
    assert call_of(fault)["function"]["arguments"] == '{"zone": "utc",}'
    assert faults.call_as_text("tool-call").name == faults.call_as_text("TOOL_CALL").name


def test_a_variant_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"^There is no 'trailing'\. Did you mean: trailing-comma"):
        faults.broken_arguments("trailing")
    with pytest.raises(ValueError, match=r"^There is no 'fance'\. Did you mean: fenced\?$"):
        faults.call_as_text("fance")
    with pytest.raises(
        ValueError,
        match=r"^There is no 'zzz'\. Known: fenced, tagged, tool-call, bare, pythonic\.$",
    ):
        faults.call_as_text("zzz")


def test_an_overflow_takes_its_kind_by_name() -> None:
    assert faults.overflow("vllm").name == faults.overflow(Kind.VLLM).name == "overflow-vllm"
    with pytest.raises(
        ValueError, match=r"^There is no kind 'vlm' of server\. There are: openai, "
    ):
        faults.overflow("vlm")


def test_faults_can_be_put_into_each_other() -> None:
    turn = faults.trickle(faults.no_usage(faults.missing_ids(ZONE)))
    answer = answer_to(turn)

    assert "usage" not in answer.json
    assert "id" not in answer.json["choices"][0]["message"]["tool_calls"][0]


def test_our_reader_uses_a_faulty_stream_whole_or_not_at_all() -> None:
    """What a fault makes of a stream is either the reply itself or a failure, never a part."""
    said = "one two three four five six"
    for turn in (
        faults.dropped_stream(says(said)),
        faults.half_event(says(said)),
        faults.error_in_stream(says(said)),
        faults.empty_stream(),
    ):
        with ModelServer(turn) as server, bare_socket(server, request_bytes(stream=True)) as sock:
            ended(server)
            sock.shutdown(1)
            body = unchunked(received_until_closed(sock).partition(b"\r\n\r\n")[2])
        with pytest.raises(ModelError):
            read(body)


def unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
    return body
