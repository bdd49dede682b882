"""Ask another model when the first gives no answer.

    python examples/04_fallback.py ollama/qwen3:8b llamacpp/qwen3

Each is tried again while there is hope, and then the next is asked. What had to be done is written
down with the reply.
"""

import os
import sys

import anyio

from holdfast import Agent, ModelReplied

MODELS = sys.argv[1:] or os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b ollama/qwen3:4b").split()


async def main() -> None:
    agent = Agent(MODELS)
    async with agent.stream("What is the capital of Portugal?") as events:
        async for event in events:
            if isinstance(event, ModelReplied):
                print(f"answered by the {'fallback' if event.by else 'first'}")
                for note in event.notes:
                    print(f"- {note}")
        run = await events.result()
    print(run.text)


anyio.run(main)
