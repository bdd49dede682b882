"""A server of tools for 05_mcp.py, made with the official SDK of the Model Context Protocol."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

BOOKS = {
    "Invisible Cities": "Italo Calvino",
    "The Baron in the Trees": "Italo Calvino",
    "The Waves": "Virginia Woolf",
}

server = MCPServer("shelf")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def find_books(author: str) -> list[str]:
    """Titles of the books on the shelf by one author."""
    return [title for title, by in BOOKS.items() if author.lower() in by.lower()]


if __name__ == "__main__":
    server.run()
