"""A server of the protocol as most servers speak it, by hand: so it can also break it.

Its first argument says how it misbehaves: `well`, `babble`, `flood`, `die`, `never`, `late`,
`strict`.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TypeAlias

BEHAVIOUR = sys.argv[1] if len(sys.argv) > 1 else "well"
PIXEL = "iVBORw0KGgo="
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object"}
LOOKS = {"readOnlyHint": True, "openWorldHint": False}
SHAPE = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": TEXT, "annotations": LOOKS},
    {"name": "crash", "inputSchema": NONE, "annotations": {"idempotentHint": True}},
    {"name": "hang", "inputSchema": NONE},
    {"name": "ask", "inputSchema": NONE},
    {"name": "visit", "inputSchema": NONE},
    {"name": "must visit", "inputSchema": NONE},
    {"name": "picture", "inputSchema": NONE},
    {"name": "weather", "inputSchema": TEXT, "outputSchema": SHAPE},
    {"name": "fail", "inputSchema": NONE},
    {"name": "walk", "inputSchema": NONE},
    {"name": "grow", "inputSchema": NONE},
    {"name": "where", "inputSchema": NONE, "annotations": {"readOnlyHint": True}},
    {"name": "think", "inputSchema": NONE},
    {"name": "environment", "inputSchema": NONE},
    {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": 7}}}},
]
Message: TypeAlias = dict[str, Any]
cancelled: list[object] = []
visited = False


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def received() -> Message:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: Message = json.loads(line)
    return message


def asked(method: str, params: Message) -> Message:
    """What the client answers."""
    send(id="q", method=method, params=params)
    while (message := received()).get("id") != "q":
        pass
    return message.get("result") or {"error": message.get("error")}


def text(said: object) -> Message:
    said = said if isinstance(said, str) else json.dumps(said)
    return {"content": [{"type": "text", "text": said}]}


def call(name: str, arguments: Message, meta: Message) -> Message:
    global visited
    match name:
        case "echo":
            return text(arguments["text"])
        case "crash":
            sys.stderr.write("the disk is on fire\n")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            send(method="notifications/message", params={"level": "info", "data": "hanging"})
            while True:
                message = received()
                if message.get("method") == "notifications/cancelled":
                    cancelled.append(message["params"]["requestId"])
                    send(method="notifications/message", params={"level": "info", "data": "let go"})
                    return {}
        case "ask":
            schema = {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "size": {"type": "integer", "default": 7},
                },
            }
            params: Message = {"message": "Who are you?", "requestedSchema": schema}
            return text(asked("elicitation/create", params))
        case "visit":
            url = "http://127.0.0.1:1/sign-in"
            params = {"mode": "url", "message": "Sign in", "url": url, "elicitationId": "e1"}
            return text(asked("elicitation/create", params))
        case "must visit":
            if visited:
                return text("welcome")
            visited = True
            url = "http://127.0.0.1:1/sign-in"
            one = {"mode": "url", "message": "Sign in", "url": url, "elicitationId": "e2"}
            return {"error": {"code": -32042, "message": "go", "data": {"elicitations": [one]}}}
        case "picture":
            return {
                "content": [
                    {"type": "text", "text": "A pixel:"},
                    {"type": "image", "data": PIXEL, "mimeType": "image/png"},
                    {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
                    {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "inside"}},
                ]
            }
        case "weather":
            degrees = arguments["text"]
            value = {"degrees": float(degrees) if degrees != "warm" else degrees}
            return {**text(value), "structuredContent": value}
        case "fail":
            return {**text("no such city"), "isError": True}
        case "walk":
            for step in (1, 2):
                params = {"progressToken": meta["progressToken"], "progress": step, "total": 2}
                send(method="notifications/progress", params={**params, "message": f"step {step}"})
            return text("there")
        case "grow":
            TOOLS.append({"name": "grown", "inputSchema": NONE})
            send(method="notifications/tools/list_changed")
            return text("grown")
        case "where":
            return text(asked("roots/list", {}))
        case "think":
            said = {"role": "user", "content": {"type": "text", "text": "2 + 2?"}}
            return text(asked("sampling/createMessage", {"messages": [said], "maxTokens": 9}))
        case "environment":
            return text(sorted(os.environ))
        case _:
            return {"error": {"code": -32602, "message": f"Unknown tool: {name}"}}


def answered(message: Message) -> None:
    number, params = message["id"], message.get("params") or {}
    match message["method"]:
        case "initialize":
            here: Message = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            send(id=number, result={**here, "serverInfo": {"name": "old", "version": "1"}})
        case "tools/list":
            begin = int(params.get("cursor") or 0)
            more = {"nextCursor": str(begin + 5)} if begin + 5 < len(TOOLS) else {}
            send(id=number, result={"tools": TOOLS[begin : begin + 5], **more})
        case "tools/call":
            result = call(params["name"], params.get("arguments") or {}, params.get("_meta") or {})
            if number not in cancelled:
                send(id=number, **(result if "error" in result else {"result": result}))
        case method:
            send(id=number, error={"code": -32601, "message": f"no {method} here"})


def main() -> None:
    if BEHAVIOUR == "die":
        sys.exit("no license found for " + os.environ.get("LICENSE", "anyone"))
    if BEHAVIOUR == "flood":
        sys.stderr.write("x" * 1_000_000 + "\nflooded\n")
        sys.stderr.flush()
    if BEHAVIOUR == "never":
        time.sleep(600)
    if BEHAVIOUR == "late":  # once the file is there
        while not Path(sys.argv[2]).exists():
            time.sleep(0.01)
    while True:
        if BEHAVIOUR == "babble":
            sys.stdout.buffer.write(b"Listening on stdio \xff\xfe { not json\n\n")
        message = received()
        if BEHAVIOUR == "strict" and message["method"] == "server/discover":
            sys.exit("expected initialize")
        if "id" in message and "method" in message:
            answered(message)


main()
