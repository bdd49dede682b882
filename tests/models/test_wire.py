"""HTTP at its edges: what the library below us does not do by itself. Real sockets, raw bytes."""

import socket
from math import inf
from threading import Event, Thread

import anyio
import pytest
from anyio import to_thread

from holdfast.core.events import Failure
from holdfast.models.base import ModelError
from holdfast.models.chat import Chat
from holdfast.models.names import BadName, named
from holdfast.models.wire import Waits, Wire
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import says
from holdfast.testing.server import faults
from tests.models.asking import outcome, request
from tests.models.raw import HEAD, answering


async def posted(base: str, body: bytes = b"{}") -> bytes:
    wire = Wire(base)
    try:
        with anyio.fail_after(10):
            async with wire.post("/x", body) as answer:
                return await answer.rest()
    finally:
        await wire.aclose()


async def test_nonsense_in_the_framing_of_a_stream_is_noticed_at_once() -> None:
    heard = Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 20)
            connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
            heard.wait(10)
            connection.sendall(b"no number\r\n")
            connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        wire = Wire(f"http://127.0.0.1:{listener.getsockname()[1]}")
        async with wire.post("/x", b"{}") as answer:
            assert await answer.read() == b"hi"
            heard.set()
            with pytest.raises(ModelError, match="broke off") as failed, anyio.fail_after(10):
                await answer.read()
        await wire.aclose()
        thread.join(10)

    assert failed.value.failure is Failure.GONE


async def test_an_answer_that_is_not_http_is_a_failure() -> None:
    with answering(b"SSH-2.0-OpenSSH_9.2\r\n") as base, pytest.raises(ModelError) as failed:
        await posted(base)

    assert failed.value.failure is Failure.GONE


async def test_a_large_request_is_sent_and_nobody_is_warned() -> None:
    with answering(HEAD + b"Content-Length: 2\r\n\r\nok") as base:
        assert await posted(base, b"x" * 3_000_000) == b"ok"


async def test_long_headers_are_read() -> None:
    long = b"X-Trace: " + b"y" * 20_000 + b"\r\n"

    with answering(HEAD + long + b"Content-Length: 2\r\n\r\nok") as base:
        assert await posted(base) == b"ok"


async def test_a_redirect_is_not_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"

    with answering(moved) as base:
        wire = Wire(base)
        async with wire.post("/x", b"{}") as answer:
            assert answer.status == 302
        await wire.aclose()


async def test_a_proxy_is_not_asked_for_what_runs_on_this_machine(
    monkeypatch: pytest.MonkeyPatch, model_server: StartsServers
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server = model_server(says("Hi."))

    wire = Wire(server.url)
    models = await wire.get_json("/v1/models")
    await wire.aclose()

    assert isinstance(models, dict)


async def test_a_proxy_is_asked_for_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with answering(HEAD + b"Content-Length: 2\r\n\r\nok") as proxy:
        monkeypatch.setenv("http_proxy", proxy)

        assert await posted("http://models.example.org") == b"ok"


async def test_a_cancelled_request_is_not_sent_to_its_end() -> None:
    received = 0
    over = Event()

    def serve() -> None:
        nonlocal received
        connection, _ = listener.accept()
        with connection:
            received += len(connection.recv(1000))
            begun.set()
            over.wait(20)
            try:
                while data := connection.recv(1 << 20):
                    received += len(data)
            except ConnectionError:
                pass

    begun = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        wire = Wire(f"http://127.0.0.1:{listener.getsockname()[1]}")
        async with anyio.create_task_group() as group:

            async def send() -> None:
                async with wire.post("/x", b"x" * 30_000_000):
                    pass

            group.start_soon(send)
            await to_thread.run_sync(begun.wait, 10)
            group.cancel_scope.cancel()
        await wire.aclose()
        over.set()
        await to_thread.run_sync(thread.join, 20)

    assert received < 30_000_000


@pytest.mark.parametrize("base", ["", "127.0.0.1:80", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused_at_once(base: str) -> None:
    with pytest.raises(ValueError, match="no address of a server"):
        Wire(base)


async def test_a_name_that_nobody_knows_is_a_sentence() -> None:
    with pytest.raises(ModelError, match="the name no.such.host.invalid is not known"):
        await posted("http://no.such.host.invalid")


async def test_an_error_that_is_not_told_to_its_end_is_still_that_error() -> None:
    refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 90\r\n\r\nInvalid API Key"
    wire_waits = Waits(soon=0.1)

    with answering(refused) as base:
        chat = Chat(base, "m", waits=wire_waits)
        assert await outcome(chat, request()) == "FAILED rejected: HTTP 401: Invalid API Key"
        await chat.aclose()


async def test_a_reply_that_has_said_why_it_ended_need_not_close_its_stream() -> None:
    event = b'data: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\n'
    stream = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event

    with answering(stream) as base:
        chat = Chat(base, "m", waits=Waits(soon=0.1))
        assert await outcome(chat, request()) == "'Hi.'"
        await chat.aclose()


async def test_a_wait_without_end_is_no_end_of_waiting() -> None:
    event = b'data: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\n'
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    length = f"Content-Length: {len(event)}\r\n\r\n".encode()

    with answering(whole + length + event) as base:
        chat = Chat(base, "m", waits=Waits(between=inf))
        assert await outcome(chat, request()) == "'Hi.'"
        await chat.aclose()


async def test_a_client_that_is_closed_while_it_waits_fails_like_any_other(
    model_server: StartsServers,
) -> None:
    server = model_server(then=faults.silence())
    chat = Chat(f"{server.url}/v1", "m")
    lines: list[str] = []

    async def ask() -> None:
        lines.append(await outcome(chat, request()))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await to_thread.run_sync(server.wait_for, lambda: server.chats)
        await chat.aclose()
    await chat.aclose()

    assert lines[0].startswith("FAILED gone:")


async def test_neither_key_nor_password_is_ever_shown(model_server: StartsServers) -> None:
    server = model_server(faults.http(401, "the key s3cret-key is wrong"))
    chat = Chat(f"{server.url}/v1", "m", key="s3cret-key")
    told = [await outcome(chat, request())]
    await chat.aclose()
    for address in ("http://user:s3cret@h:99999/v1#m", "http://user:s3cret@/#m"):
        with pytest.raises(BadName) as wrong:
            named(address, {})
        told.append(str(wrong.value))
    told.append(repr(named("http://user:s3cret@127.0.0.1:9/v1#m", {})))

    assert not [line for line in told if "s3cret" in line]
    assert told[0] == "FAILED rejected: HTTP 401: the key [a key] is wrong"
