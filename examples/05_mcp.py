"""Use the tools of an MCP server: here the small one in shelf_server.py, started as a child.

The configuration is the one that other programs read too; a path to such a file will do as well.
Without "trust" a person is asked before any tool of a server runs.
"""

import os
import sys
from pathlib import Path

from holdfast import Agent

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")
SERVERS = {
    "mcpServers": {
        "shelf": {
            "command": sys.executable,
            "args": [str(Path(__file__).with_name("shelf_server.py"))],
            "trust": True,
        }
    }
}

agent = Agent(MODEL, mcp=SERVERS)
run = agent.run_sync("Which books by Calvino do I have?")

print(run.text)
for record in run.ledger.records:
    print(f"- {record.tool} {record.what}")
