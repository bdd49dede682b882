"""Go on with a run whose process died in the middle of a tool.

    python examples/08_resume_after_crash.py ollama/qwen3:8b die
    python examples/08_resume_after_crash.py ollama/qwen3:8b

The first start pulls its own plug after the letter is posted, and before anybody could write that
down. The second goes on with the run. It does not post the letter again: nobody said that this is
harmless. It tells the model that the outcome is unknown, and the model can go and look.
"""

import os
import sys
from pathlib import Path

import anyio

from holdfast import Agent, tool

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")
OUTBOX = Path("outbox.txt")


@tool
def post_letter(to: str) -> str:
    "Post the letter."
    with OUTBOX.open("a") as outbox:
        outbox.write(f"letter to {to}\n")
    if sys.argv[2:] == ["die"]:
        os._exit(1)
    return "posted"


@tool(effect="read")
def read_outbox() -> str:
    "What was posted so far."
    return OUTBOX.read_text() if OUTBOX.exists() else "nothing"


async def main() -> None:
    agent = Agent(MODEL, tools=[post_letter, read_outbox])
    async with agent, agent.engine.session("letter", new=True) as session:
        run = await agent.resume_in(session)
        if run is None:
            run = await agent.run_in(session, "Post the letter to Ana, once.")
    print(run.text)
    for record in run.ledger.records:
        print(f"- {record.tool}: {record.outcome.value}")


anyio.run(main)
