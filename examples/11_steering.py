"""Say something while a run is under way.

It does not stop what is being done. The model hears it with the results it is waiting for.
"""

import os
import sys

import anyio

from holdfast import Agent, ToolFinished, ToolStarted, tool

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")


@tool
async def paint(wall: str, colour: str) -> str:
    "Paint one wall. It takes a moment."
    await anyio.sleep(1)
    return f"the {wall} wall is {colour}"


async def main() -> None:
    agent = Agent(MODEL, tools=[paint])
    said = False
    async with agent.stream("Paint the north wall red, then the south wall.") as events:
        async for event in events:
            match event:
                case ToolStarted() if not said:
                    said = True
                    events.driver.say("The south wall in blue, please.")
                case ToolFinished(text=text):
                    print(text)
        run = await events.result()
    print(run.text)


anyio.run(main)
