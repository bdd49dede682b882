"""What a round of the whole library costs beside a loop without any features.

    python lab/bench/round_cost.py

A round is one request, one streamed reply with a call, and its result. Ours has its journal on
disk, its guards and its gateway on, and is up already; the server counts no tokens. The bare loop posts all messages with `aiohttp`, puts the call
together from the deltas, runs the function and appends the result; it forgets everything, and
breaks at the first surprise. Processor time of this process, all its threads; the server is a
process of its own. Both are measured in turns in one run, and only the ratios mean something.
"""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeAlias

import aiohttp
import anyio

from holdfast.agent import Agent
from holdfast.core.limits import Limits
from holdfast.journal.sqlite import SqliteJournal
from holdfast.models.chat import Chat
from holdfast.tools.function import tool

TURNS = 7
ROUNDS = (10, 400)
GOAL = 3.0
RESULT = '{"id": "INV-20417", "path": "/home/ana/receipts/scan 14.txt", "total": 1284.50}\n' * 6
WINDOW = 400_000
"""So that nothing is evicted: the bare loop could not."""


Way: TypeAlias = Callable[[int], Awaitable[None]]


def main() -> None:
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            ratios = anyio.run(compared, port)
        finally:
            server.kill()
    broken = [rounds for rounds, ratio in ratios.items() if ratio > GOAL]
    for rounds in broken:
        print(f"{rounds} rounds: {ratios[rounds]:.2f}x is above {GOAL}x")
    sys.exit(bool(broken))


async def compared(port: int) -> dict[int, float]:
    ratios: dict[int, float] = {}
    with TemporaryDirectory() as folder:
        journal = SqliteJournal(Path(folder) / "journal.sqlite")
        for rounds in ROUNDS:
            base = f"http://127.0.0.1:{port}/{rounds}/v1"
            async with agent(base, journal, folder) as up:
                ratios[rounds] = await ratio(rounds, partial(ours, up), partial(bare, base))
        await journal.aclose()
    return ratios


async def ratio(rounds: int, ours: Way, bare: Way) -> float:
    costs: dict[str, list[float]] = {"ours": [], "bare": []}
    for turn in range(TURNS + 1):
        for name, way in [("ours", ours), ("bare", bare)][:: 1 if turn % 2 else -1]:
            before = process_time()
            await way(rounds)
            costs[name].append((process_time() - before) / rounds)
    kept = {name: each[1:] for name, each in costs.items()}  # the first one warms up
    found = median(our / other for our, other in zip(kept["ours"], kept["bare"], strict=True))
    shown = "   ".join(f"{name} {median(each) * 1e3:.2f} ms" for name, each in kept.items())
    print(f"{rounds:4} rounds  {shown} a round   {found:.2f}x of bare", flush=True)
    return found


def read(path: str) -> str:
    """Read a file."""
    return RESULT


def agent(base: str, journal: SqliteJournal, folder: str) -> Agent:
    return Agent(
        Chat(base, "m", window=WINDOW),
        tools=[tool(read, effect="read")],
        journal=journal,
        limits=Limits(rounds=max(ROUNDS) + 1, tokens=10**9),
        workspace=folder,
    )


async def ours(agent: Agent, rounds: int) -> None:
    run = await agent.run("Read all the receipts.")
    assert (run.usage.calls, run.text) == (rounds, "Done."), run.text


async def bare(base: str, rounds: int) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    function = {"name": "read", "description": "Read a file.", "parameters": schema}
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read all the receipts."}]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout()) as session:
        while True:
            body = {
                "model": "m",
                "stream": True,
                "messages": messages,
                "tools": [{"type": "function", "function": function}],
            }
            text, name, arguments = "", "", ""
            async with session.post(f"{base}/chat/completions", json=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        delta = json.loads(line[6:])["choices"][0]["delta"]
                        text += delta.get("content") or ""
                        for call in delta.get("tool_calls", ()):
                            name += call["function"].get("name", "")
                            arguments += call["function"].get("arguments", "")
            if not name:
                assert text == "Done."
                return
            call = {
                "id": "1",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            messages.append({"role": "assistant", "content": text, "tool_calls": [call]})
            result = read(**json.loads(arguments))
            messages.append({"role": "tool", "tool_call_id": "1", "content": result})


# --- the server


def serve() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """A call as long as the request has fewer results than wanted, then an answer."""
    with connection, connection.makefile("rb") as incoming:
        while line := incoming.readline():
            length = 0
            while (header := incoming.readline().strip()) != b"":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            body = incoming.read(length)
            if not line.startswith(b"POST"):
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            rounds = int(line.split(b"/")[1])
            results = body.count(b'"tool_call_id"')
            send(connection, results + 1, last=results == rounds)


def send(connection: socket.socket, number: int, *, last: bool) -> None:
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    if last:
        deltas.append({"content": "Done."})
    else:
        call = {"index": 0, "id": f"call_{number}", "type": "function"}
        deltas.append({"tool_calls": [{**call, "function": {"name": "read", "arguments": ""}}]})
        for part in ('{"path"', ': "receipts/', f"scan {number}", '.txt"}'):
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [{**chunk, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    finish = "stop" if last else "tool_calls"
    events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = data.encode()
    connection.sendall(head.encode() + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
