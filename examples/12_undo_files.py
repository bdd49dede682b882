"""Let a model change files, and take it back.

What was in a file is kept before it is changed, so a whole run can be undone, and here everything
is allowed. Files that somebody else has changed since are left alone.
"""

import os
import sys
from pathlib import Path

import anyio

from holdfast import Agent, builtin_tools

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")
FOLDER = Path("recipes")


async def main() -> None:
    agent = Agent(MODEL, tools=builtin_tools(), workspace=FOLDER, approve=lambda question: True)

    run = await agent.run("Double the recipe in bread.txt, and write a shopping list.")
    print(run.text)
    show()

    for file in await agent.undo(run.session_id):
        print(f"{file.path.name}: {file.fate.value}")
    show()


def show() -> None:
    for path in sorted(FOLDER.iterdir()):
        print(f"  {path.name}: {path.read_text().strip()}")


FOLDER.mkdir(exist_ok=True)
(FOLDER / "bread.txt").write_text("500 g flour, 350 g water, salt\n")
anyio.run(main)
