"""Ask a model something.

    python examples/01_hello.py ollama/qwen3:8b

A model is named by who serves it and what it is called, or by an address:
http://127.0.0.1:8080/v1#name. Whatever happens on the way, a run ends with a text and a reason.
"""

import os
import sys

from holdfast import Agent

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")

agent = Agent(MODEL, instructions="You are friendly, and brief.")
first = agent.run_sync("Hello! My name is Ana.")
second = agent.run_sync("What is my name?", session=first.session_id)

print(first.text)
print(second.text)
print(f"[{second.reason.value}]")
