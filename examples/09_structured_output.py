"""Get an answer as a value of a type of yours, and not as prose.

The model is told the schema. An answer that does not fit is asked for again, with what was wrong
with it. Any dataclass or pydantic model will do.
"""

import os
import sys
from dataclasses import dataclass
from datetime import date

from holdfast import Agent

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")
RECEIPT = "Blue Bottle Coffee, 2 March 2026. Two cappuccinos 9.00, one croissant 2.50. Total 11.50."


@dataclass
class Receipt:
    shop: str
    day: date
    items: list[str]
    total: float


agent = Agent(MODEL, output=Receipt)
run = agent.run_sync(f"Read this receipt: {RECEIPT}")

if run.output is None:
    sys.exit(f"No receipt could be read: {run.reason.value}")
print(f"{run.output.day:%d.%m.%Y}  {run.output.shop}  {run.output.total:.2f}")
for item in run.output.items:
    print(f"  {item}")
