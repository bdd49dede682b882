"""What went wrong with a server, in sentences: for people why it is not there, and for the model
what is known of its call. Secrets are taken out by whoever shows them.
"""

from typing import TYPE_CHECKING

from holdfast.tools.base import Form
from holdfast.tools.mcp.config import Server, Wire
from holdfast.tools.mcp.wires import CannotStart, Signs

if TYPE_CHECKING:
    from mcp import MCPError

LAST_LINE = 300
"""Characters of the last line of stderr that go into a sentence."""


def sentence(wrong: Exception | None, signs: Signs, server: Server, *, was_up: bool) -> str:
    """Why a server is not connected."""
    wrong = first(wrong)
    if isinstance(wrong, CannotStart):
        return f"{wrong}."
    return reason(wrong, signs, server, was_up=was_up) + last_words(signs)


def reason(wrong: Exception | None, signs: Signs, server: Server, *, was_up: bool) -> str:
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    if signs.refusal and not was_up:
        return f"It refused us with {signs.refusal}{check(signs.refusal)}."
    if isinstance(wrong, TimeoutError):
        return (
            f"It did not get ready within {server.start_timeout:g} seconds: "
            "see what keeps it, or give it a longer start_timeout."
        )
    closed = isinstance(wrong, MCPError) and wrong.code == CONNECTION_CLOSED
    if wrong is None or closed:
        return "It ended." if was_up else "It ended before it was ready."
    if isinstance(wrong, MCPError):
        return f"It answered: {wrong.message}."
    if isinstance(wrong, ValueError) and type(wrong).__name__ == "ValidationError":
        return "It sent what is no MCP: is it an MCP server?"
    if server.wire is not Wire.STDIO and type(wrong).__name__.startswith("Connect"):
        return "Nobody answers at its url: is it running?"
    return f"It failed: {type(wrong).__name__}: {wrong}."


def first(wrong: Exception | None) -> Exception | None:
    """Of a group of exceptions, the one inside."""
    while isinstance(wrong, ExceptionGroup):
        wrong = wrong.exceptions[0]
    return wrong


def check(refusal: str) -> str:
    match refusal[:3]:
        case "401" | "403":
            return ": check the token in its headers"
        case "404" | "405":
            return ": check its url, and whether its type is sse"
        case _:
            return ""


def last_words(signs: Signs) -> str:
    lines = [line.strip() for line in signs.stderr.splitlines() if line.strip()]
    return f" Its last words: {lines[-1][:LAST_LINE]}" if lines else ""


# --- calls ----------------------------------------------------------------------------------


def of_call(wrong: "MCPError", server: Server, tool: str) -> str:
    from mcp.types import CONNECTION_CLOSED

    if wrong.code == CONNECTION_CLOSED:
        return (
            f"The server {server.name} stopped while {tool} was running. It may or may not have "
            "taken effect: check before you try again."
        )
    return f"The server {server.name} refused {tool}: {wrong.message}"


def unreadable(server: Server, tool: str) -> str:
    return (
        f"The server {server.name} answered {tool} with something that cannot be read. It may "
        "have taken effect: check before you try again."
    )


def not_there(server: Server, tool: str, trouble: str) -> str:
    return f"The server {server.name} is not connected, so {tool} did not run. {trouble}".strip()


def forgot_us(wrong: "MCPError") -> bool:
    """The server does not know our session any more, so it did not look at the call. The SDK has
    only words for it."""
    from mcp.types import INVALID_REQUEST

    return wrong.code == INVALID_REQUEST and wrong.message == "Session terminated"


def places_to_go(wrong: "MCPError") -> list[Form]:
    """Where the person must go first, if that is what the server said."""
    from mcp.types import URL_ELICITATION_REQUIRED

    if wrong.code != URL_ELICITATION_REQUIRED or not isinstance(wrong.data, dict):
        return []
    asked = wrong.data.get("elicitations")
    return [
        Form(str(one.get("message", "")), url=str(one["url"]))
        for one in (asked if isinstance(asked, list) else [])
        if isinstance(one, dict) and "url" in one
    ]
