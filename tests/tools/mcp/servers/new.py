"""A server made with the official SDK, which speaks the newest protocol. Over pipes; with a port,
over HTTP on loopback."""

import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("new")


class Weather(BaseModel):
    city: str
    degrees: float


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def weather(city: str) -> Weather:
    return Weather(city=city, degrees=21.5)


@server.tool()
async def walk(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half way")
    return "there"


@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(lambda: "here", name="grown")
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def crash() -> None:
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        port = int(sys.argv[2])
        if sys.argv[1] == "sse":
            server.run("sse", host="127.0.0.1", port=port)
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run()
