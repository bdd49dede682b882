"""Watch a run while it happens: words as they come, and every event that is written down.

A connection that breaks in the middle of a reply is no catastrophe: what was shown of it is taken
back, and the model is asked again.
"""

import os
import sys

import anyio

from holdfast import Agent, RunStopped, Said, TakenBack, Thought

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")


async def main() -> None:
    agent = Agent(MODEL)
    async with agent.stream("Tell me in one sentence why the sky is blue.") as events:
        async for event in events:
            match event:
                case Thought(text):
                    print(text, end="", flush=True, file=sys.stderr)
                case Said(text):
                    print(text, end="", flush=True)
                case TakenBack():
                    print(" ... (broke off, asking again)")
                case RunStopped(reason):
                    print(f"\n[{reason.value}]")


anyio.run(main)
