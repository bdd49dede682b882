"""What a request to a model costs with each HTTP client that could make it (see ADR 0009).

    pip install aiohttp httpx2
    python lab/bench/http_clients.py

takes two to three minutes. A client that is not installed is left out, and a sentence says so.

The server is a plain socket in a process of its own. What is counted is the processor time of the
process of the client, so neither the server nor waiting counts. Only the ratios mean something:
all clients are measured in one run, in turns, and each turn in another order. A ratio is that to
the cheapest client of the same turn; the median of the turns is shown, and beside it the median
of the times themselves. `by hand` is a socket of anyio that understands no HTTP: a client of our
own on anyio could hardly cost less.
"""

import json
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import anyio

TURNS = 7
SMALL, LARGE = b" " * 40_000, b" " * 1_000_000
DELTAS = 200
TOGETHER = 8
"""Deltas in one write, where several come at once."""
PAUSE = 0.001
"""Seconds between two writes of the server, so that each delta is read alone. A model takes its
time, too; without the pause a slow client would read several at once and look cheap."""
END = b"the end"

Tell: TypeAlias = Callable[[bytes], object]
Exchange: TypeAlias = Callable[[str, bytes, Tell], Coroutine[Any, Any, None]]
"""Posts a body to a path, and tells the bytes of the answer as they come, until its end."""
Client: TypeAlias = Callable[[int], AbstractAsyncContextManager[Exchange]]
"""Opens a client for a port of this machine."""
Measure: TypeAlias = Callable[[str, int], Coroutine[Any, Any, float]]
"""The seconds that something takes with the client of this name and the server at this port."""


# --- the clients


HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


def load(name: str) -> Any:
    return import_module(name)


@asynccontextmanager
async def by_hand(port: int) -> AsyncIterator[Exchange]:
    stream = await anyio.connect_tcp("127.0.0.1", port)

    async def exchange(path: str, body: bytes, tell: Tell) -> None:
        nonlocal stream
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        await stream.send(head.encode() + body)
        start, _, data = (await stream.receive()).partition(b"\r\n\r\n")
        tell(data)
        length = re.search(rb"Content-Length: (\d+)", start)
        missing = int(length[1]) - len(data) if length else None
        while missing or missing is None and not data.endswith(b"0\r\n\r\n"):
            data = await stream.receive()
            tell(data)
            missing = missing and missing - len(data)
        if b"Connection: close" in start:
            await stream.aclose()
            stream = await anyio.connect_tcp("127.0.0.1", port)

    try:
        yield exchange
    finally:
        await stream.aclose()


@asynccontextmanager
async def by_aiohttp(port: int) -> AsyncIterator[Exchange]:
    aiohttp = load("aiohttp")

    async def exchange(path: str, body: bytes, tell: Tell) -> None:
        url = f"http://127.0.0.1:{port}{path}"
        async with session.post(url, data=body, allow_redirects=False) as response:
            while data := await response.content.readany():
                tell(data)

    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(), headers=HEADERS, timeout=aiohttp.ClientTimeout()
    ) as session:
        yield exchange


@asynccontextmanager
async def by_httpcore2(port: int) -> AsyncIterator[Exchange]:
    headers = {"Host": f"127.0.0.1:{port}", **HEADERS}

    async def exchange(path: str, body: bytes, tell: Tell) -> None:
        url = f"http://127.0.0.1:{port}{path}"
        async with pool.stream("POST", url, headers=headers, content=body) as response:
            async for data in response.aiter_stream():
                tell(data)

    async with load("httpcore2").AsyncConnectionPool() as pool:
        yield exchange


@asynccontextmanager
async def by_httpx2(port: int) -> AsyncIterator[Exchange]:
    async def exchange(path: str, body: bytes, tell: Tell) -> None:
        url = f"http://127.0.0.1:{port}{path}"
        async with client.stream("POST", url, content=body) as response:
            async for data in response.aiter_raw():
                tell(data)

    async with load("httpx2").AsyncClient(headers=HEADERS, timeout=None, trust_env=False) as client:
        yield exchange


BY_HAND = "by hand"
CLIENTS: Mapping[str, Client] = {
    BY_HAND: by_hand,
    "aiohttp": by_aiohttp,
    "httpcore2": by_httpcore2,
    "httpx2": by_httpx2,
}


# --- the server


CLOSED: queue.Queue[float] = queue.Queue()
"""When the server saw a connection close that it had left open, by the clock of the machine."""


def serve() -> None:
    """Serve until the process that started us closes our input."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            threading.Thread(target=talk, args=listener.accept()[:1], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


def talk(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while (path := path_of_next_request(connection)) and answer(path, connection):
            pass


def path_of_next_request(connection: socket.socket) -> str | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65_536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    missing = int(length[1]) - len(body) if length else 0
    while missing:
        missing -= len(connection.recv(missing))
    return head.split()[1].decode()


def answer(path: str, connection: socket.socket) -> bool:
    """Answer one request. Whether the connection can be used again."""
    if path == "/answer":
        connection.sendall(whole(ANSWER))
    elif path == "/once":
        connection.sendall(whole(ANSWER, b"Connection: close\r\n"))
        return False
    elif path == "/closed":
        connection.sendall(whole(str(CLOSED.get(timeout=10)).encode()))
    elif path == "/hang":
        connection.sendall(STREAM + delta(0))
        with suppress(ConnectionError):
            connection.recv(1)
        CLOSED.put(time.monotonic())
        return False
    else:
        together = TOGETHER if path == "/bursts" else 1
        connection.sendall(STREAM)
        for first in range(0, DELTAS, together):
            time.sleep(PAUSE)
            connection.sendall(b"".join(map(delta, range(first, first + together))))
        connection.sendall(b"0\r\n\r\n")
    return True


def whole(body: bytes, more: bytes = b"") -> bytes:
    kind = b"Content-Type: application/json\r\n"
    return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (OK, kind, more, len(body), body)


def delta(number: int) -> bytes:
    text = END.decode() if number == DELTAS - 1 else f" word {number}"
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    chunk = {"id": "chatcmpl-8f14e45fceea167a5a36dedd4bea2543", "object": "chat.completion.chunk"}
    more = {"created": 1_794_744_000, "model": "qwen3:8b", "choices": [choice]}
    data = b"data: %b\n\n" % json.dumps(chunk | more).encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


OK = b"HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sun, 15 Nov 2026 12:00:00 GMT\r\n"
STREAM = OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = json.dumps({"choices": [{"message": {"content": "word " * 280 + END.decode()}}]}).encode()


@contextmanager
def server() -> Iterator[int]:
    """The port of a server in a process of its own."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


# --- what is measured


def nothing(data: bytes) -> None: ...


async def again(path: str, body: bytes, times: int, name: str, port: int) -> float:
    """Processor time of a request, with a client that has made one before."""
    heard: list[bytes] = []
    async with CLIENTS[name](port) as exchange:
        await exchange(path, body, heard.append)
        assert END in b"".join(heard)
        began = time.process_time()
        for _ in range(times):
            await exchange(path, body, nothing)
        return (time.process_time() - began) / times


async def first(name: str, port: int) -> float:
    """Processor time of opening a client, its only request, and closing it."""
    times = 10
    began = time.process_time()
    for _ in range(times):
        async with CLIENTS[name](port) as exchange:
            await exchange("/answer", SMALL, nothing)
    return (time.process_time() - began) / times


async def cancelled(name: str, port: int) -> float:
    """Time by the clock from cancelling until the server sees the connection closed."""
    begun = anyio.Event()
    seen: list[bytes] = []
    async with CLIENTS[name](port) as exchange:
        async with anyio.create_task_group() as group:
            group.start_soon(exchange, "/hang", SMALL, lambda _: begun.set())
            await begun.wait()
            at = time.monotonic()
            group.cancel_scope.cancel()
    async with CLIENTS[name](port) as exchange:
        await exchange("/closed", b"", seen.append)
    return float(b"".join(seen)) - at


OPENED = {"aiohttp": "ClientSession", "httpcore2": "AsyncConnectionPool", "httpx2": "AsyncClient"}
COLD = """
import anyio, json, re, time
async def start():
    began = time.process_time()
    import {0}
    async with {0}.{1}():
        print(time.process_time() - began)
anyio.run(start)
"""


async def cold(name: str, _: int) -> float:
    """Processor time of the import and of opening a client, in a new process that has anyio."""
    if name == BY_HAND:
        return 0.0
    command = [sys.executable, "-c", COLD.format(name, OPENED[name])]
    return float((await anyio.run_process(command)).stdout)


MEASURES: Mapping[str, Measure] = {
    "40 kB, answered at once": partial(again, "/answer", SMALL, 100),
    "40 kB, 200 deltas": partial(again, "/deltas", SMALL, 5),
    "40 kB, 200 deltas by eights": partial(again, "/bursts", SMALL, 10),
    "1 MB, answered at once": partial(again, "/answer", LARGE, 20),
    "1 MB, 200 deltas": partial(again, "/deltas", LARGE, 5),
    "40 kB, on a new connection": partial(again, "/once", SMALL, 50),
    "40 kB, with a new client": first,
    "from cancel to closed (clock)": cancelled,
    "import and open, new process": cold,
}


def packages(name: str) -> set[str]:
    """The distribution of this name, and those it needs that are installed."""
    found: set[str] = set()
    wanted = [name]
    while wanted:
        name = re.split(r"[^\w.-]", wanted.pop())[0].lower().replace("_", "-")
        with suppress(PackageNotFoundError):
            needs = distribution(name).requires or ()
            if name not in found:
                found.add(name)
                wanted += [need for need in needs if "extra ==" not in need]
    return found


def megabytes(names: set[str]) -> float:
    files = [Path(str(each.locate())) for name in names for each in distribution(name).files or ()]
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc") / 1e6


# --- the table


def taken(names: list[str]) -> dict[str, dict[str, list[float]]]:
    """Under each title, for each client, the seconds of each turn."""
    rows: dict[str, dict[str, list[float]]] = {
        title: {name: [] for name in names} for title in MEASURES
    }
    with server() as port:
        for turn in range(TURNS):
            start = turn % len(names)
            for title, measure in MEASURES.items():
                for name in names[start:] + names[:start]:
                    rows[title][name].append(anyio.run(measure, name, port))
    return rows


def cell(seconds: list[float], rivals: list[list[float]]) -> str:
    least = [min(turn) for turn in zip(*rivals, strict=True)]
    ratio = median(each / best for each, best in zip(seconds, least, strict=True))
    return f"{ratio:.2f}x {median(seconds) * 1e3:6.2f} ms" if any(seconds) else "-"


def main() -> None:
    installed = [name for name in OPENED if find_spec(name)]
    for name in OPENED:
        if name not in installed:
            print(f"{name} is not installed and is left out; `pip install {name}` brings it.")
    if not installed:
        return
    names = [BY_HAND, *installed]
    print(f"{'':30}" + "".join(f"{name:>20}" for name in names))
    for title, row in taken(names).items():
        rivals = [row[name] for name in installed]
        print(f"{title:30}" + "".join(f"{cell(row[name], rivals):>20}" for name in names))
    more = [packages(name) - packages("anyio") for name in installed]
    print(f"{'packages beside anyio':50}" + "".join(f"{len(each):>20}" for each in more))
    print(f"{'their size':50}" + "".join(f"{megabytes(each):>17.1f} MB" for each in more))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
