"""A stand-in for the engine: it does what is written in the file of weights, behind `GGUF`.

It is imported by the real child process, in the place of the real package.
"""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CommonParams = lambda: SimpleNamespace(  # noqa: E731
    model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
)


class Server:
    def __init__(self, given: Any) -> None:
        does = Path(given.model.path).read_text().removeprefix("GGUF")
        if does == "print":
            os.write(1, b'{"address": "http://nowhere"}\n')
        if does == "refuse":
            sys.stderr.write("0.00.1 E load: tensor is not within the file bounds\n" * 2)
            sys.stderr.write("0.00.2 E init: exiting due to model loading error\n")
            raise RuntimeError("Failed to init server, please check the input params.")
        if does == "use an instruction that is not there":
            signal.raise_signal(signal.SIGILL)
        if does == "load for ever":
            begun = Path(f"{given.model.path}.begun")
            if begun.exists():  # a pipe: somebody waits for this moment
                begun.write_text(str(os.getpid()))
            time.sleep(60)
        server = ThreadingHTTPServer((given.hostnames[0], given.port), Handler)
        Handler.given = given
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_port}"


class Handler(BaseHTTPRequestHandler):
    given: Any

    def do_GET(self) -> None:
        if self.is_known():
            everything = {"pid": os.getpid(), **plain(self.given)}
            self.answer(200, everything if self.path == "/given" else {"data": []})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.is_known():
            return
        text = asked["messages"][-1]["content"]
        if text == "Crash!":
            signal.raise_signal(signal.SIGSEGV)
        content = f"You said: {text}"
        if held := asked.get("response_format"):
            allowed = [each["properties"] for each in held["json_schema"]["schema"]["anyOf"]]
            tools = [each["tool"]["const"] for each in allowed if "tool" in each]
            content = json.dumps({"type": "final", "answer": f"I may call {tools}"})
        message = {"role": "assistant", "content": content}
        self.answer(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def is_known(self) -> bool:
        known = self.headers.get("Authorization") == f"Bearer {self.given.api_keys[0]}"
        if not known:
            self.answer(401, {"error": {"message": "Invalid API Key"}})
        return known

    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *parts: object) -> None: ...


def plain(value: Any) -> Any:
    return vars(value) | {
        key: vars(each) for key, each in vars(value).items() if isinstance(each, SimpleNamespace)
    }
