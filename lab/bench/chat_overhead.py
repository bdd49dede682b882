"""What the `chat` client costs beside a bare call of the HTTP client it uses.

    python lab/bench/chat_overhead.py

Processor time of this process only; the server is a plain socket in a process of its own. All are
measured in turns in one run, and only the ratios mean something.

The bare call is what a loop without a library would do: encode the request, post it, parse the
answer (a line and its JSON at a time, if it is a stream) and take the text out. `bytes` is less
than anybody can do: it posts what was encoded before and looks at nothing that comes back. Ours
also keeps reasoning and calls apart, looks for calls in the text, watches for silence, and tells
every delta.

The last line is what it costs to make a request from a history of 10 and of 400 rounds, when the
last round is new. The bytes are not put together there, since they must be sent anyway.
"""

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from statistics import median
from time import process_time, sleep

import aiohttp
import anyio

from holdfast.core.effects import Request
from holdfast.core.history import Entry
from holdfast.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from holdfast.core.tokens import size_of
from holdfast.core.tools import ToolSpec
from holdfast.core.trail import Trail
from holdfast.models.base import Piece
from holdfast.models.chat import Chat

TURNS = 9
REPEATS = 12
"""Requests in a turn."""
DELTAS = 200
NEW_ROUNDS = 64
"""Rounds that are added to a history: as many entries as two blocks of it hold."""
PAUSE = 0.0005
"""Seconds between two writes, so that the client reads each delta alone. A model is slower still,
but waiting costs no processor time."""
BOUNDS = {"whole": 1.3, "stream": 1.5, "request": 1.5}
RESULT = '{"id": "INV-20417", "path": "/home/ana/receipts/scan 14.txt", "total": 1284.50}\n' * 6
SCHEMA = '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
TOOLS = (ToolSpec(name="read", description="Read a file.", parameters=SCHEMA),)


def main() -> None:
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            ratios = {name: anyio.run(compared, port, name) for name in ("whole", "stream")}
        finally:
            server.kill()
    ratios["request"] = requests()
    broken = {name: ratio for name, ratio in ratios.items() if ratio > BOUNDS[name]}
    for name, ratio in broken.items():
        print(f"{name}: {ratio:.2f}x is above {BOUNDS[name]}x")
    sys.exit(bool(broken))


# --- replies


async def compared(port: int, name: str) -> float:
    base = f"http://127.0.0.1:{port}/{name}"
    chat = Chat(base, "m", streams=name == "stream")
    request = history(10)
    body = chat.body(request, streams=name == "stream")
    value = json.loads(body)
    url = f"{base}/chat/completions"
    told: list[Piece] = []
    connector, jar = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=jar, headers=headers, timeout=aiohttp.ClientTimeout()
    ) as session:

        async def only_bytes() -> None:
            async with session.post(url, data=body) as response:
                while await response.content.readany():
                    pass

        async def bare_whole() -> None:
            async with session.post(url, data=json.dumps(value).encode()) as response:
                answer = json.loads(await response.read())
            assert answer["choices"][0]["message"]["content"].startswith("word 0 ")

        async def bare_stream() -> None:
            text = ""
            async with session.post(url, data=json.dumps(value).encode()) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        choice = json.loads(line[6:])["choices"][0]
                        text += choice["delta"].get("content", "")
            assert text.startswith("word 0 ")

        async def ours() -> None:
            replied = await chat.reply(request, told.append)
            assert replied.reply.text.startswith("word 0 ")

        bare = bare_stream if name == "stream" else bare_whole
        ways = [("bytes", only_bytes), ("bare", bare), ("ours", ours)]
        costs: dict[str, list[float]] = {who: [] for who, _ in ways}
        for turn in range(TURNS):
            for who, call in ways[:: 1 if turn % 2 else -1]:
                costs[who].append(await cost(call))
    await chat.aclose()

    def ratio(to: str) -> float:
        return median(ours / other for ours, other in zip(costs["ours"], costs[to], strict=True))

    shown = "   ".join(f"{who} {median(each) * 1e3:.2f} ms" for who, each in costs.items())
    print(f"{name:7}  {shown}   {ratio('bare'):.2f}x of bare, {ratio('bytes'):.2f}x of bytes")
    return ratio("bare")


async def cost(call: Callable[[], Awaitable[None]]) -> float:
    await call()
    before = process_time()
    for _ in range(REPEATS):
        await call()
    return (process_time() - before) / REPEATS


# --- requests


def requests() -> float:
    costs: dict[int, list[float]] = {10: [], 400: []}
    for _ in range(TURNS):
        for rounds, times in costs.items():
            chat, request = Chat("http://127.0.0.1:1/v1", "m"), history(rounds)
            chat.pieces(request)
            taken = 0.0
            for number in range(NEW_ROUNDS):
                request = grown(request, rounds + number)
                start = process_time()
                chat.pieces(request)
                taken += process_time() - start
            times.append(taken / NEW_ROUNDS)
    few, many = map(median, costs.values())
    print(
        f"request  10 rounds {few * 1e6:.0f} us   400 rounds {many * 1e6:.0f} us   {many / few:.2f}x"
    )
    return many / few


def history(rounds: int) -> Request:
    request = Request("You are an agent.", TOOLS, (), Trail(), (), 1_000)
    request = adding(request, UserMessage("Put the receipts into a table."))
    for number in range(rounds):
        request = grown(request, number)
    return request


def grown(request: Request, number: int) -> Request:
    call = ToolCall(f"c{number:08d}", "read", json.dumps({"path": f"scan {number}.txt"}))
    reply = AssistantMessage(f"I read number {number}.", (call,))
    return adding(request, reply, ToolMessage(call.id, "read", f"{number}\n{RESULT}"))


def adding(request: Request, *messages: Message) -> Request:
    entries = (Entry(message, size_of(message)) for message in messages)
    body = request.body.adding(*entries)
    return Request(request.system, request.tools, (), body, (), request.output)


# --- the server


def serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    data = b""
    while more := connection.recv(1 << 20):
        data += more
        head, found, rest = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not found or length is None or len(rest) < int(length[1]):
            continue
        data = rest[int(length[1]) :]
        (stream if b" /stream/" in head else whole)(connection)


def whole(connection: socket.socket) -> None:
    message = {"role": "assistant", "content": "".join(f"word {n} " for n in range(DELTAS))}
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3_000, "completion_tokens": DELTAS},
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    connection.sendall(head.encode() + b"\r\n\r\n" + body)


def stream(connection: socket.socket) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
    connection.sendall(head.encode() + b"\r\n\r\n")
    for number in range(DELTAS):
        send_event(connection, [{"index": 0, "delta": {"content": f"word {number} "}}])
        sleep(PAUSE)
    send_event(connection, [{"index": 0, "delta": {}, "finish_reason": "stop"}])
    connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def send_event(connection: socket.socket, choices: list[dict[str, object]]) -> None:
    event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    data = f"data: {json.dumps({**event, 'choices': choices})}\n\n".encode()
    connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
