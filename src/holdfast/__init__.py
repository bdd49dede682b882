"""An agent loop that holds: the public names, and nothing else.

    from holdfast import Agent, tool

Each name is fetched from its module when it is first asked for, so importing this package costs
nothing and touches nothing.
"""

from importlib import import_module

# Type checkers know it by its name; importing `typing` would take longer than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agent import Agent
    from holdfast.agent.result import Result
    from holdfast.agent.watching import Happening, Stream
    from holdfast.core.events import (
        CancelAsked,
        Decided,
        Event,
        Evicted,
        ModelAsked,
        ModelFailed,
        ModelReplied,
        Nudged,
        Outcome,
        RunStopped,
        ToolFinished,
        ToolStarted,
        UserSpoke,
        Warned,
    )
    from holdfast.core.limits import Limits, StopReason
    from holdfast.journal.memory import MemoryJournal
    from holdfast.journal.sqlite import SqliteJournal
    from holdfast.models.base import Said, TakenBack, Thought, Waiting
    from holdfast.runtime.tasks import Status, Task
    from holdfast.settings import load as load_settings
    from holdfast.tools.base import Binary, Context, Filled, Form, Output, Progress, Tool, ToolError
    from holdfast.tools.builtin import builtin_tools
    from holdfast.tools.door import Answer, Question, Scope
    from holdfast.tools.function import tool

__version__ = "0.1.0.dev0"

__all__ = [
    "Agent",
    "Answer",
    "Binary",
    "CancelAsked",
    "Context",
    "Decided",
    "Event",
    "Evicted",
    "Filled",
    "Form",
    "Happening",
    "Limits",
    "MemoryJournal",
    "ModelAsked",
    "ModelFailed",
    "ModelReplied",
    "Nudged",
    "Outcome",
    "Output",
    "Progress",
    "Question",
    "Result",
    "RunStopped",
    "Said",
    "Scope",
    "SqliteJournal",
    "Status",
    "StopReason",
    "Stream",
    "TakenBack",
    "Task",
    "Thought",
    "Tool",
    "ToolError",
    "ToolFinished",
    "ToolStarted",
    "UserSpoke",
    "Waiting",
    "Warned",
    "builtin_tools",
    "load_settings",
    "tool",
]

_HOMES = {
    "agent": "Agent",
    "agent.result": "Result",
    "agent.watching": "Happening Stream",
    "core.events": (
        "CancelAsked Decided Event Evicted ModelAsked ModelFailed ModelReplied Nudged Outcome "
        "RunStopped ToolFinished ToolStarted UserSpoke Warned"
    ),
    "core.limits": "Limits StopReason",
    "journal.memory": "MemoryJournal",
    "journal.sqlite": "SqliteJournal",
    "models.base": "Said TakenBack Thought Waiting",
    "runtime.tasks": "Status Task",
    "settings": "load_settings",
    "tools.base": "Binary Context Filled Form Output Progress Tool ToolError",
    "tools.builtin": "builtin_tools",
    "tools.door": "Answer Question Scope",
    "tools.function": "tool",
}
"""Where each name is at home: what stands above, for those who run it."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_NAME_THERE = {"load_settings": "load"}


if not TYPE_CHECKING:  # a checker that saw this would take every name, also one that is misspelt

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"{__name__}.{_HOME_OF[name]}")
        value = globals()[name] = getattr(home, _NAME_THERE.get(name, name))
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
