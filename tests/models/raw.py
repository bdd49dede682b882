"""A server of raw bytes, for what no real one would send and what is not HTTP at all."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that gives these answers, byte for byte, and then keeps the connection open."""
    over = Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            data = b""
            for answer in answers:
                while not is_whole(data):
                    data += connection.recv(1 << 20)
                data = b""
                connection.sendall(answer)
            over.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        thread.join(20)


def is_whole(data: bytes) -> bool:
    head, found, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(found) and len(body) >= int(length[1] if length else 0)
