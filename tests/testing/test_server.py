"""The server itself: its script, its connections, its record, its end."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from inline_snapshot import snapshot

from holdfast.core.events import Finish, Reply
from holdfast.core.limits import Usage
from holdfast.testing.script import Says, calls, says, several, wants
from holdfast.testing.server import Kind, ModelServer, Received, Turn, faults, first_tool, helpful
from tests.testing.client import (
    CHAT,
    CLOCK,
    GOOD,
    MESSAGES,
    OLLAMA,
    arrived,
    ask,
    bare_socket,
    connected,
    ended,
    received_until,
    received_until_closed,
    request_bytes,
)

# --- the script ----------------------------------------------------------------------------------


def test_a_script_is_played_in_order() -> None:
    with ModelServer(says("One."), calls("clock", zone="utc"), Reply(text="Three.")) as server:
        messages = [ask(server).json["choices"][0]["message"] for _ in range(3)]

    assert messages == snapshot(
        [
            {"role": "assistant", "content": "One."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "call_2_0",
                        "type": "function",
                        "function": {"name": "clock", "arguments": '{"zone": "utc"}'},
                    }
                ],
            },
            {"role": "assistant", "content": "Three."},
        ]
    )


def test_a_script_that_has_ended_says_so() -> None:
    with ModelServer(says("One.")) as server:
        ask(server)
        answer = ask(server)

    assert (answer.status, answer.json["error"]["message"]) == (
        500,
        "The script of this server has ended: its 1 turns are played.",
    )


def test_what_comes_after_the_script_can_be_said_for_ever() -> None:
    with ModelServer(says("One."), then=says("More.")) as server:
        texts = [ask(server).json["choices"][0]["message"]["content"] for _ in range(4)]

    assert texts == ["One.", "More.", "More.", "More."]


def test_a_turn_can_be_decided_when_the_request_is_there() -> None:
    def echo(received: Received) -> Says:
        assert isinstance(received.body, dict)
        return says(f"You said {received.body['messages'][0]['content']}")

    with ModelServer(echo) as server:
        answer = ask(server)

    assert answer.json["choices"][0]["message"]["content"] == "You said Hello?"


def test_a_decided_turn_can_be_a_fault() -> None:
    with ModelServer(lambda received: faults.busy(retry_after=7)) as server:
        answer = ask(server)

    assert (answer.status, answer.headers["retry-after"]) == (429, "7")


def test_a_mistake_in_a_function_of_the_script_reaches_the_test() -> None:
    def wrong(received: Received) -> Says:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"), ModelServer(wrong) as server:
        answer = ask(server)

    assert (answer.status, answer.json["error"]["message"]) == (
        500,
        "A function of the script raised LookupError('no such thing').",
    )


def test_what_is_no_turn_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"a script is made of says\(\), .* not 'hi'"):
        ModelServer("hi")  # type: ignore[arg-type]


def test_the_helpful_turn_calls_the_first_tool_and_then_says_what_it_returned() -> None:
    with ModelServer(then=helpful) as server:
        wanted = ask(server, tools=[CLOCK]).json["choices"][0]["message"]
        (call,) = wanted["tool_calls"]
        result = {"role": "tool", "tool_call_id": call["id"], "content": "12:00"}
        said = ask(server, tools=[CLOCK], messages=[*GOOD["messages"], wanted, result])
        plain = ask(server)

    assert call["function"] == {"name": "clock", "arguments": '{"zone":"example"}'}
    assert server.complaints == []
    texts = [answer.json["choices"][0]["message"]["content"] for answer in (said, plain)]
    assert texts == ["The tool returned: 12:00", "You said: Hello?"]


def test_the_helpful_turn_helps_in_every_api() -> None:
    tool = {"name": "clock", "input_schema": {"type": "object", "required": ["zone"]}}
    with ModelServer(then=helpful, kind=Kind.ANTHROPIC) as server:
        blocks = ask(server, path=MESSAGES, tools=[tool]).json["content"]
        back = {"type": "tool_result", "tool_use_id": blocks[0]["id"], "content": "12:00"}
        history = [
            *GOOD["messages"],
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [back]},
        ]
        (said,) = ask(server, path=MESSAGES, tools=[tool], messages=history).json["content"]
    with ModelServer(then=helpful, kind=Kind.OLLAMA) as server:
        body = {"model": "test-model", "tools": [CLOCK], "stream": False}
        wanted = ask(server, path=OLLAMA, body={**body, "messages": GOOD["messages"]}).json
        history = [*GOOD["messages"], wanted["message"], {"role": "tool", "content": "12:00"}]
        answer = ask(server, path=OLLAMA, body={**body, "messages": history}).json

    assert blocks[0]["input"] == {"zone": "example"}
    assert said == {"type": "text", "text": "The tool returned: 12:00"}
    assert wanted["message"]["tool_calls"][0]["function"]["arguments"] == {"zone": "example"}
    assert answer["message"]["content"] == "The tool returned: 12:00"


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {}),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {}),
        (
            {
                "properties": {
                    "a": {"type": "integer"},
                    "b": {"type": "number"},
                    "c": {"enum": ["x", "y"]},
                    "d": {"type": "array", "items": {"type": "boolean"}},
                    "e": {"const": 5},
                    "f": {"type": "object", "required": ["g"]},
                    "h": {"type": "null"},
                    "i": {"type": ["string", "null"]},
                },
                "required": ["a", "b", "c", "d", "e", "f", "h", "i"],
            },
            {
                "a": 1,
                "b": 1.5,
                "c": "x",
                "d": [True],
                "e": 5,
                "f": {"g": "example"},
                "h": None,
                "i": "example",
            },
        ),
    ],
)
def test_the_arguments_of_the_first_tool_fit_its_schema(schema: object, arguments: object) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    with ModelServer(first_tool, strict=False) as server:
        (call,) = ask(server, tools=[tool]).json["choices"][0]["message"]["tool_calls"]

    assert json.loads(call["function"]["arguments"]) == arguments


# --- a stream ------------------------------------------------------------------------------------


def test_a_stream_comes_in_deltas_and_ends_with_usage_and_done() -> None:
    with ModelServer(says("Well, hello.")) as server:
        answer = ask(server, stream=True, stream_options={"include_usage": True})

    *chunks, usage, done = answer.events
    assert answer.headers["content-type"] == "text/event-stream"
    assert [(chunk["choices"][0]["delta"]) for chunk in chunks] == snapshot(
        [
            {"role": "assistant", "content": None},
            {"content": "Well"},
            {"content": ","},
            {"content": " hello"},
            {"content": "."},
            {},
        ]
    )
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "stop"]
    assert (usage["choices"], usage["usage"]["completion_tokens"], done) == ([], 4, "[DONE]")


def test_usage_is_not_streamed_unless_asked_for() -> None:
    with ModelServer(says("Hello.")) as server:
        answer = ask(server, stream=True)

    assert [event for event in answer.events if "usage" in event] == []


def test_calls_are_streamed_in_fragments() -> None:
    with ModelServer(several(wants("clock", zone="utc"), wants("stop"), text="Now")) as server:
        answer = ask(server, stream=True)

    deltas = [event["choices"][0]["delta"] for event in answer.events[:-1]]
    fragments = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert [each for each in fragments if "id" in each] == snapshot(
        [
            {
                "index": 0,
                "id": "call_1_0",
                "type": "function",
                "function": {"name": "clock", "arguments": "{"},
            },
            {
                "index": 1,
                "id": "call_1_1",
                "type": "function",
                "function": {"name": "stop", "arguments": "{"},
            },
        ]
    )
    written = [
        "".join(each["function"]["arguments"] for each in fragments if each["index"] == index)
        for index in (0, 1)
    ]
    assert written == ['{"zone": "utc"}', "{}"]
    assert answer.events[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_usage_that_the_script_gives_is_the_one_that_is_sent() -> None:
    with ModelServer(says("Hi.", usage=Usage(prompt=70, completion=5, cached=60))) as server:
        answer = ask(server)

    assert answer.json["usage"] == {
        "prompt_tokens": 70,
        "completion_tokens": 5,
        "total_tokens": 75,
        "prompt_tokens_details": {"cached_tokens": 60},
    }


@pytest.mark.parametrize(
    ("finish", "word"),
    [(Finish.STOP, "stop"), (Finish.LENGTH, "length"), (Finish.REFUSED, "content_filter")],
)
def test_why_the_model_stopped_is_said(finish: Finish, word: str) -> None:
    with ModelServer(says("Hi.", finish)) as server:
        assert ask(server).json["choices"][0]["finish_reason"] == word


def test_a_reply_longer_than_it_may_be_is_cut_and_says_so() -> None:
    clock = calls("clock", zone="utc")
    with ModelServer(says("one two three four five"), clock, clock) as server:
        text = ask(server, max_tokens=3).json
        call = ask(server, max_tokens=6).json
        name = ask(server, max_tokens=1).json["choices"][0]

    assert text["choices"][0]["message"]["content"] == "one two three"
    assert text["choices"][0]["finish_reason"] == "length"
    assert text["usage"]["completion_tokens"] == 3
    (wanted,) = call["choices"][0]["message"]["tool_calls"]
    assert (wanted["function"]["arguments"], call["choices"][0]["finish_reason"]) == (
        '{"zone":',
        "length",
    )
    # A call that is cut in its name is no call.
    assert name["message"] == {"role": "assistant", "content": ""}
    assert name["finish_reason"] == "length"


def test_the_reply_ends_where_the_window_does() -> None:
    with ModelServer(says("word " * 500), window=64, strict=False) as server:
        answer = ask(server, max_tokens=1000).json

    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] == 64


# --- connections ---------------------------------------------------------------------------------


def test_a_connection_is_used_again() -> None:
    with ModelServer(then=says("Hello.")) as server:
        connection = connected(server)
        connection.connect()
        sock = connection.sock
        texts = [ask(server, connection=connection, stream=True).text for _ in range(3)]
        assert connection.sock is sock
        connection.close()

    assert texts == ["Hello."] * 3


def test_a_request_may_come_byte_by_byte() -> None:
    with ModelServer(says("Hello.")) as server, bare_socket(server) as sock:
        for byte in request_bytes():
            sock.sendall(bytes((byte,)))
        answer = received_until(sock, b"}}")

    assert b"Hello." in answer
    assert server.received[0].body == GOOD


def test_two_requests_may_come_at_once() -> None:
    with (
        ModelServer(says("One."), says("Two.")) as server,
        bare_socket(server, request_bytes() * 2) as sock,
    ):
        answer = received_until(sock, b"Two.")

    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_a_body_may_be_chunked() -> None:
    sent = json.dumps(GOOD).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = b"".join(b"%x;ignored=1\r\n%b\r\n" % (len(part), part) for part in (sent[:9], sent[9:]))
    with (
        ModelServer(says("Hello.")) as server,
        bare_socket(server, head + parts + b"0\r\nTrailer: x\r\n\r\n") as sock,
    ):
        answer = received_until(sock, b"}}")

    assert b"Hello." in answer
    assert server.received[0].raw == sent


def test_a_client_that_asks_whether_to_go_on_is_told_to() -> None:
    head, _, body = request_bytes().partition(b"\r\n\r\n")
    with (
        ModelServer(says("Hello.")) as server,
        bare_socket(server, head + b"\r\nExpect: 100-continue\r\n\r\n") as sock,
    ):
        assert received_until(sock, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert b"Hello." in received_until(sock, b"}}")


def test_a_client_of_http_1_0_gets_a_stream_that_ends_with_the_connection() -> None:
    old = request_bytes(stream=True).replace(b"HTTP/1.1", b"HTTP/1.0")
    with ModelServer(says("Hello.")) as server, bare_socket(server, old) as sock:
        head, _, body = received_until_closed(sock).partition(b"\r\n\r\n")

    assert b"Transfer-Encoding" not in head
    assert (body[:6], body[-16:]) == (b"data: ", b"\n\ndata: [DONE]\n\n")


def test_a_client_that_wants_no_second_request_gets_the_connection_closed() -> None:
    last = request_bytes().replace(b"Host: test", b"Connection: close")
    with ModelServer(says("Hello.")) as server, bare_socket(server, last) as sock:
        assert b"Connection: close" in received_until_closed(sock)


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET / SPDY/3\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"x" * 100_000,
    ],
)
def test_what_is_not_http_gets_a_400_and_the_server_lives_on(sent: bytes) -> None:
    with ModelServer(says("Hello.")) as server:
        with bare_socket(server, sent) as sock:
            first = sock.recv(12)
        after = ask(server)

    assert (first, after.status) == (b"HTTP/1.1 400", 200)
    assert server.complaints[0].startswith("This is not HTTP: ")


def test_a_client_that_leaves_in_the_middle_of_its_request_is_forgotten() -> None:
    with ModelServer(says("Hello.")) as server:
        with bare_socket(server, request_bytes()[:-5]):
            pass
        assert ask(server).status == 200

    assert len(server.received) == 1


def test_many_clients_are_answered_at_once() -> None:
    def count(received: Received) -> Says:
        assert isinstance(received.body, dict)
        return says(received.body["messages"][0]["content"] * 9)

    with ModelServer(then=count, strict=False) as server:

        def one(number: int) -> bool:
            said = f"I am {number}. "
            messages = [{"role": "user", "content": said}]
            return ask(server, messages=messages, stream=True).text == said * 9

        with ThreadPoolExecutor(40) as pool:
            assert all(pool.map(one, range(200)))

    assert len(server.received) == 200


def test_a_client_that_stalls_holds_up_nobody() -> None:
    with (
        ModelServer(faults.stall(), says("Hello.")) as server,
        bare_socket(server, request_bytes(stream=True)) as stalled,
    ):
        received_until(stalled, b"\r\n\r\n")
        assert ask(server).status == 200


# --- the record ----------------------------------------------------------------------------------


def test_what_came_is_on_record() -> None:
    with ModelServer(says("Hello.")) as server:
        ask(server, headers={"X-Test": "yes"})
        ask(server, "GET", "/v1/models")

    chat, models = server.received
    assert (chat.method, chat.path, chat.body) == ("POST", CHAT, GOOD)
    assert (chat.headers["x-test"], json.loads(chat.raw)) == ("yes", GOOD)
    assert (chat.tokens, chat.complaints, chat.hung_up) == (11, (), False)
    assert (models.method, models.path, models.body, models.tokens) == (
        "GET",
        "/v1/models",
        None,
        0,
    )
    assert server.chats == [chat]


def test_what_was_answered_is_on_record_too() -> None:
    with ModelServer(says("Hello."), faults.trickle(faults.no_usage())) as server:
        ask(server)
        ask(server)
        ask(server, "GET", "/health")
        ended(server)

    assert [each.answer for each in server.received] == snapshot(
        ["200 'Hello.'", "200 trickle, no-usage", '200 {"status":"ok"}']
    )


def test_a_client_that_hangs_up_is_noticed() -> None:
    with ModelServer(faults.stall(says("Hello there."), after=2), says("More.")) as server:
        with bare_socket(server, request_bytes(stream=True)) as sock:
            received_until(sock, b"Hello")
            assert not server.received[0].hung_up
        server.wait_for(lambda: server.received[0].hung_up)
        ask(server)
        ended(server, 2)

    assert [each.hung_up for each in server.received] == [True, False]


def test_a_client_that_hangs_up_on_a_server_that_only_keeps_alive_is_noticed() -> None:
    with ModelServer(faults.keep_alive_only()) as server:
        with bare_socket(server, request_bytes(stream=True)) as sock:
            received_until(sock, b"keep-alive")
        server.wait_for(lambda: server.received[0].hung_up)


def test_a_client_that_closes_after_the_last_event_has_not_hung_up() -> None:
    with ModelServer(then=says("Hello.")) as server:
        for _ in range(50):
            with bare_socket(server, request_bytes(stream=True)) as sock:
                received_until(sock, b"[DONE]")
        ended(server, 50)

    assert not any(each.hung_up for each in server.received)


def test_a_client_that_reads_nothing_of_a_giant_reply_can_leave() -> None:
    with ModelServer(faults.giant_reply()) as server:
        with bare_socket(server, request_bytes(stream=True)) as sock:
            sock.recv(1)
        server.wait_for(lambda: server.received[0].hung_up)


def test_waiting_has_a_bound_and_says_what_came_instead() -> None:
    with ModelServer(says("Hello."), kind=Kind.OPENAI) as server:
        ask(server)
        ended(server)
        with pytest.raises(TimeoutError) as late:
            server.wait_for(lambda: False, seconds=0.01)

    assert str(late.value) == snapshot(
        """\
it did not come true within 0.01 s; the server was asked:
  POST /v1/chat/completions (11 tokens): 200 'Hello.'\
"""
    )


def test_a_question_about_a_request_that_has_not_come_is_not_a_mistake() -> None:
    with ModelServer(says("Hello.")) as server, ThreadPoolExecutor() as pool:
        waiting = pool.submit(server.wait_for, lambda: server.received[0].answer)
        ask(server)
        waiting.result(5)


def test_what_two_requests_share_from_the_first_token_on_is_counted_as_cached() -> None:
    longer = [
        *GOOD["messages"],
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Well?"},
    ]
    edited = [{"role": "user", "content": "Bye?"}, *longer[1:]]
    with ModelServer(then=says("Hello.")) as server:
        cached = [
            ask(server, messages=messages).json["usage"]["prompt_tokens_details"]["cached_tokens"]
            for messages in (GOOD["messages"], longer, edited)
        ]

    assert cached == [each.cached for each in server.received]
    assert cached == [0, 11, 3]  # up to where the next message begins, or the edited one


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "turn", [faults.stall(), faults.silence(), faults.keep_alive_only(), faults.stall(after=2)]
)
def test_closing_ends_what_is_open(turn: Turn) -> None:
    with ModelServer(turn) as server, bare_socket(server, request_bytes(stream=True)) as sock:
        arrived(server)
        server.__exit__(None, None, None)
        received_until_closed(sock)  # else it times out

        with pytest.raises(ConnectionRefusedError):
            ask(server)


def test_closing_ends_connections_that_only_wait() -> None:
    with ModelServer() as server, bare_socket(server) as sock:
        ask(server, "GET", "/health")
        server.__exit__(None, None, None)
        assert received_until_closed(sock) == b""


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    for _ in range(5):
        with ModelServer(faults.stall()) as server, bare_socket(server, request_bytes()):
            arrived(server)
    assert threading.active_count() == before


def test_a_port_can_be_chosen_and_is_free_again_afterwards() -> None:
    with ModelServer(says("One.")) as server:
        ask(server)
    with ModelServer(says("Two."), port=server.port) as again:
        assert again.url == server.url
        assert ask(again).status == 200


def test_a_server_that_is_not_started_has_no_address() -> None:
    with pytest.raises(RuntimeError, match="The server is not started.* Use it with `with`"):
        _ = ModelServer(says("One.")).url


def test_a_port_that_is_taken_is_said_at_once() -> None:
    with ModelServer() as server, pytest.raises(OSError, match="Address already in use"):
        ModelServer(port=server.port).__enter__()


def test_it_serves_a_client_in_an_event_loop_of_its_own() -> None:
    async def client(server: ModelServer) -> bytes:
        async with await anyio.connect_tcp("127.0.0.1", server.port) as stream:
            await stream.send(request_bytes())
            return await stream.receive(65_536)

    async def main() -> bytes:
        with ModelServer(says("Hello.")) as server, anyio.fail_after(5):
            return await client(server)

    assert anyio.run(main).startswith(b"HTTP/1.1 200 OK")


# --- the key -------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer s3cret"}, {"x-api-key": "s3cret"}])
def test_the_right_key_opens(headers: dict[str, str]) -> None:
    with ModelServer(says("Hello."), key="s3cret") as server:
        assert ask(server, headers=headers).status == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}, {"x-api-key": ""}])
def test_a_wrong_key_gets_a_401_and_costs_no_turn(headers: dict[str, str]) -> None:
    with ModelServer(says("Hello."), key="s3cret") as server:
        refused = [ask(server, headers=headers), ask(server, "GET", "/props", headers=headers)]
        right = ask(server, headers={"Authorization": "Bearer s3cret"})

    error = {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}
    assert [(each.status, each.json) for each in refused] == [(401, {"error": error})] * 2
    assert right.status == 200
