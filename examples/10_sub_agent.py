"""Let one agent work for another.

The one that is asked has its own tools and its own session, and so a window of its own: what it
read on the way does not fill that of the one who asked. It may spend half of what the other has
left, and what it spends is on the other's bill.
"""

import os
import sys

from holdfast import Agent, tool

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")
MINUTES = {"March": "Ana pays the rent. " * 200, "April": "Ben pays the rent. " * 200}


@tool(effect="read")
def read_minutes(month: str) -> str:
    "The minutes of the meeting in one month."
    return MINUTES.get(month, "There was no meeting.")


archivist = Agent(MODEL, tools=[read_minutes], instructions="Answer in one short sentence.")
agent = Agent(
    MODEL,
    tools=[archivist.as_tool("archivist", "Looks things up in the minutes.", share=0.5)],
)
run = agent.run_sync("Who pays the rent, and since when?")

print(run.text)
for record in run.ledger.records:
    print(f"- {record.tool} {record.what}: {record.detail}")
