"""Ask a person before something is done that cannot be undone.

A no goes back to the model, with the reason; the run goes on.
"""

import os
import sys

from holdfast import Agent, Answer, Question, Scope, tool

MODEL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HOLDFAST_MODEL", "ollama/qwen3:8b")


@tool(approve=True)
def send_mail(to: str, text: str) -> str:
    "Send a mail."
    return f"sent to {to}"


def ask(question: Question) -> Answer:
    print(f"{question.tool.name} {question.call.arguments}")
    match input("Do it? [y]es, [a]lways in this session, or why not: "):
        case "y":
            return Answer(allowed=True)
        case "a":
            return Answer(allowed=True, scope=Scope.SESSION)
        case why:
            return Answer(allowed=False, words=why)


agent = Agent(MODEL, tools=[send_mail], approve=ask)
run = agent.run_sync("Tell ana@example.org and ben@example.org that dinner is at eight.")

print()
print(run.text)
for record in run.ledger.records:
    print(f"- {record.tool}: {record.outcome.value}")
