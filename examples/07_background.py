"""Work on several things at once, in the background, and stop one of them.

A task is a run with a number and a handle. What a stopped one did stays in its session, which can
be gone on with later.
"""

import os
import sys

import anyio

from holdfast import Agent

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")


async def main() -> None:
    async with Agent(MODEL) as agent:
        agent.tasks.notify(lambda task: print(f"task {task.number} is over"))
        await (await agent.start("Write a haiku about the sea.")).wait()
        novel = await agent.start("Write a novel about the sea.")
        rhyme = await agent.start("What rhymes with sea?", within=60)

        print((await rhyme.wait()).text)
        novel.cancel()
        await novel.wait()

        for task in agent.tasks.list():
            reason = task.result.reason.value if task.result else task.status.value
            print(f"{task.number}. {task.text} [{reason}]")


anyio.run(main)
