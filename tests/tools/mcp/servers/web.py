"""A server over HTTP as most speak it, by hand: it wants a token, and it can forget its clients."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sessions: list[str] = []
SCHEMA = {"type": "object"}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in ("forget", "hello", "mirror")]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer open-sesame":
            return self.answer(401)
        if message["method"] == "initialize":
            sessions.append(f"session-{len(sessions)}")
            here = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return self.answer(200, message, {**here, "serverInfo": {"name": "w", "version": "1"}})
        if message["method"] == "server/discover":
            return self.answer(400)
        if self.headers["mcp-session-id"] not in sessions[-1:]:
            return self.answer(404)
        match message["method"]:
            case "tools/list":
                self.answer(200, message, {"tools": TOOLS})
            case "tools/call":
                name = message["params"]["name"]
                if name == "forget":
                    sessions.append("nobody's")
                text = f"{name} from {self.headers['mcp-session-id']}"
                if name == "mirror":
                    text = f"you said {self.headers['authorization']}"
                self.answer(200, message, {"content": [{"type": "text", "text": text}]})
            case _:
                self.answer(202)

    def do_GET(self) -> None:
        self.answer(405)

    def do_DELETE(self) -> None:
        self.answer(405)

    def answer(self, status: int, asked: object = None, result: object = None) -> None:
        number = asked.get("id") if isinstance(asked, dict) else None
        body = {"jsonrpc": "2.0", "id": number, "result": result}
        data = json.dumps(body).encode() if result is not None else b""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if sessions:
            self.send_header("mcp-session-id", sessions[-1])
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
