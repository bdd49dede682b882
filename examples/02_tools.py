"""Give a model tools: functions with types and a docstring.

The answer says what the model makes of it. The ledger says what really ran.
"""

import os
import sys

from holdfast import Agent, ToolError, tool

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")
PRICES = {"tea": 2.40, "cake": 3.90}


@tool(effect="read")
def price(item: str, pieces: int = 1) -> float:
    """The price of something on the menu, in euros.

    Args:
        item: What it is called on the menu.
        pieces: How many of it.
    """
    if item not in PRICES:
        raise ToolError(f"There is no {item!r} on the menu; there are: {', '.join(PRICES)}.")
    return PRICES[item] * pieces


agent = Agent(MODEL, tools=[price])
run = agent.run_sync("What do two teas and a cake cost?")

print(run.text)
for record in run.ledger.records:
    print(f"- {record.tool} {record.what} {record.outcome.value}: {record.detail}")
