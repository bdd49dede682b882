"""A client for the tests that trusts nobody: `http.client` where the answer is HTTP in order, and
a bare socket where it is not.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from holdfast.testing.server import ModelServer

CHAT, OLLAMA, MESSAGES = "/v1/chat/completions", "/api/chat", "/v1/messages"
HEADERS = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
GOOD: dict[str, Any] = {
    "model": "test-model",
    "messages": [{"role": "user", "content": "Hello?"}],
    "max_tokens": 100,
}
"""A request that nobody can complain of."""
CLOCK = {
    "type": "function",
    "function": {
        "name": "clock",
        "description": "The time.",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"type": "string"}, "exact": {"type": "boolean"}},
            "required": ["zone"],
        },
    },
}


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The documents of an event stream; `[DONE]` stays a text."""
        found = [each for each in self.body.decode().split("\n\n") if each]
        data = [each.rpartition("data: ")[2] for each in found]
        return [each if each == "[DONE]" else json.loads(each) for each in data]

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def text(self) -> str:
        """The text in a stream of OpenAI's API."""
        choices = [event["choices"] for event in self.events if event != "[DONE]"]
        deltas = [choice["delta"] for each in choices for choice in each]
        return "".join(delta.get("content") or "" for delta in deltas)


def ask(
    server: ModelServer,
    method: str = "POST",
    path: str = CHAT,
    body: object = None,
    headers: dict[str, str] | None = None,
    connection: HTTPConnection | None = None,
    **fields: Any,
) -> Answered:
    """One request, a good one with these fields unless a body is given, and the whole answer."""
    sent = json.dumps({**GOOD, **fields} if body is None else body) if method == "POST" else None
    using = connection or connected(server)
    try:
        using.request(method, path, sent, {**HEADERS, **(headers or {})})
        answer = using.getresponse()
        lower = {name.lower(): value for name, value in answer.getheaders()}
        return Answered(answer.status, lower, answer.read())
    finally:
        if connection is None:
            using.close()


def arrived(server: ModelServer, count: int = 1) -> None:
    """Wait until so many requests have come."""
    server.wait_for(lambda: len(server.received) >= count)


def ended(server: ModelServer, count: int = 1) -> None:
    """Wait until so many requests have come, and the answers to all of them are over."""
    server.wait_for(
        lambda: len(server.received) >= count and all(each.ended for each in server.received)
    )


def connected(server: ModelServer) -> HTTPConnection:
    return HTTPConnection(server.url.removeprefix("http://"), timeout=10)


def request_bytes(body: object = None, path: str = CHAT, **fields: object) -> bytes:
    sent = json.dumps({**GOOD, **fields} if body is None else body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


@contextmanager
def bare_socket(server: ModelServer, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        sock.sendall(sent)
        yield sock


def received_until_closed(sock: socket.socket) -> bytes:
    data = b""
    while more := sock.recv(65_536):
        data += more
    return data


def received_until(sock: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        more = sock.recv(65_536)
        assert more, f"closed after {data!r}"
        data += more
    return data
