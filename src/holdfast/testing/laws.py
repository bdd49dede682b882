"""The laws as an oracle, all but the tenth: it watches a session step by step and says which law was broken.

The simulation and the property tests share it, so that a law is written down once. It judges
only what can be seen from outside: events, effects and the requests a model would get.
"""

from collections import Counter
from dataclasses import dataclass, field

from holdfast.core.answers import not_an_answer
from holdfast.core.claims import UNVERIFIED
from holdfast.core.effects import CallModel, Request, RunTools, StopWork
from holdfast.core.events import (
    CancelAsked,
    EndDecided,
    Event,
    Evicted,
    Failure,
    FollowedUp,
    ModelFailed,
    Purpose,
    RunStopped,
    Steered,
    TaskCut,
    ToolDropped,
    ToolFinished,
    ToolsChanged,
    ToolsFound,
    UserSpoke,
)
from holdfast.core.limits import StopReason
from holdfast.core.machine import Step, replay
from holdfast.core.messages import AssistantMessage, Message, ToolMessage, UserMessage, clean
from holdfast.core.state import NEW, Run, State
from holdfast.core.tokens import Size, size_of, size_of_system, size_of_tools
from holdfast.core.tools import SideEffect, ToolSpec

INVENTED = "invented_"
"""Whatever begins like this was made up by a lying model; no tool ever returns it."""
NOTICE = 420
"""Characters that the notices on a cut or repeated result may take beside its cap."""


class Broken(AssertionError):
    """A law was broken. Always a bug."""

    def __init__(self, law: int, what: str) -> None:
        super().__init__(f"law {law}: {what}")
        self.law = law


def holds(condition: bool, law: int, what: str) -> None:
    if not condition:
        raise Broken(law, what)


@dataclass
class Laws:
    """Watches one session."""

    history: list[tuple[tuple[Event, ...], State]] = field(default_factory=list)
    """Each step's events and the state after it."""
    lengths: dict[str, int] = field(default_factory=dict)
    """Characters of the whole result of each call."""
    caps: dict[str, int] = field(default_factory=dict)
    """What the model may see of it, by the settings of its run."""
    largest_cap: int = 0
    text_cap: int = 0
    argument_cap: int = 40
    """The largest so far: a message keeps its size when a later run has smaller caps."""
    ran: Counter[str] = field(default_factory=Counter)
    """How often the world really ran each call."""
    concluded: int = 0
    worked: set[str] = field(default_factory=set)
    """Calls that the run has had done."""
    spoken: str = ""
    task: str = ""
    waiting_words: list[str] = field(default_factory=list)
    refused: list[Request] = field(default_factory=list)
    last: Request | None = None
    broke_prefix: bool = False
    forced: bool = False
    running: bool = False
    was_cut: bool = False
    """The user's words were too long in this run, and the user was told."""

    def saw(self, before: State, step: Step, *, recovered: bool = False) -> None:
        """Check everything that can be checked after one step."""
        run = step.state.run
        for event in step.events:
            self.happened(before, event, step.state)
        for effect in step.effects:
            match effect:
                case CallModel(_, purpose, request):
                    holds(run is not None, 5, "a model is asked without a run")
                    assert run is not None
                    self.asked(run, purpose, request, step.state, again=recovered)
                case RunTools(calls):
                    holds(
                        run is not None and not run.waiting, 1, "tools run while a model is asked"
                    )
                    self.worked |= {call.id for call in calls}
                    assert run is not None
                    most = run.settings.limits.calls
                    holds(len(self.worked) <= most, 5, f"{len(self.worked)} calls, {most} allowed")
                    for call in calls:
                        holds(
                            call.id not in self.lengths, 1, f"{call.id} runs though it is answered"
                        )
                case StopWork():
                    pass
        if any(isinstance(event, CancelAsked) for event in step.events):
            self.cancelled(before, step)
        self.history.append((step.events, step.state))

    def happened(self, before: State, event: Event, after: State) -> None:
        run = after.run
        match event:
            case UserSpoke(text) if before.run is None or before.run.stopped:
                self.task = self.spoken = words(text)
                self.begun()
                assert run is not None
                self.text_cap = max(self.text_cap, run.settings.caps.text)
                self.largest_cap = max(self.largest_cap, run.settings.caps.result)
                self.argument_cap = max(self.argument_cap, run.settings.caps.arguments)
            case UserSpoke(text):
                self.waiting_words.append(words(text))
            case FollowedUp():
                self.task = self.spoken = "\n\n".join(self.waiting_words)
                self.begun()
            case Steered():
                self.spoken = "\n\n".join(self.waiting_words)
                self.waiting_words.clear()
            case ToolFinished(call_id, _, text):
                self.lengths.setdefault(call_id, len(clean(text)))
                self.note_cap(before, call_id)
            case TaskCut():
                self.broke_prefix = self.was_cut = True
            case Evicted() | ToolDropped() | ToolsChanged() | ToolsFound():
                self.broke_prefix = True
            case EndDecided():
                holds(not self.forced, 5, "a run begins to end twice")
                self.forced = True
            case ModelFailed(ask, Failure.OVERFLOW) if self.last and before.asks == ask:
                self.refused.append(self.last)
            case RunStopped(reason, text):
                assert run is not None
                holds(self.running, 5, "a run stops twice")
                self.running = False
                holds(text == clean(text), 4, "a text that cannot be written down")
                holds(bool(text.strip()), 5, "the run ends without a text")
                holds(not not_an_answer(text), 5, f"this is no answer: {text[:80]!r}")
                holds(not run.unanswered, 1, "the run ends with a call that has no result")
                self.honest(text)
                if reason is StopReason.CANCELLED:
                    self.waiting_words.clear()

    def begun(self) -> None:
        self.waiting_words.clear()
        self.refused.clear()
        self.concluded, self.forced, self.worked = 0, False, set()
        self.running, self.was_cut = True, False

    def asked(
        self, run: Run, purpose: Purpose, request: Request, state: State, *, again: bool
    ) -> None:
        messages = list(request.messages)
        self.paired(run, messages)
        self.user_is_heard(run, request, messages)
        self.fits(run, purpose, request, state, again=again)
        self.capped(messages)
        self.written(messages)
        self.pins_are_there(state, messages)
        self.bounded(run, purpose, request, again=again)
        self.prefixed(purpose, request)

    def paired(self, run: Run, messages: list[Message]) -> None:
        holds(not run.unanswered, 1, "the model is asked while a call has no result")
        owed: list[str] = []
        seen: set[str] = set()
        for message in messages:
            if isinstance(message, ToolMessage):
                holds(owed[:1] == [message.call_id], 1, f"{message.call_id} is not the result owed")
                owed.pop(0)
                continue
            holds(not owed, 1, f"{owed} have no result")
            if isinstance(message, AssistantMessage):
                owed = [call.id for call in message.calls]
                holds(not seen & set(owed) and len(owed) == len(set(owed)), 1, "an id twice")
                seen |= set(owed)
        holds(not owed, 1, f"{owed} have no result")

    def user_is_heard(self, run: Run, request: Request, messages: list[Message]) -> None:
        holds(request.system == run.settings.system, 2, "another system prompt")
        said = [message.text for message in messages if isinstance(message, UserMessage)]
        for whole in {self.task, self.spoken}:
            cut = any(f"of {len(whole)} chars" in each and "truncated" in each for each in said)
            holds(
                whole in said or (cut and self.was_cut),
                2,
                f"the user's words are missing: {whole[:60]!r}",
            )

    def fits(
        self, run: Run, purpose: Purpose, request: Request, state: State, *, again: bool
    ) -> None:
        assert run.waiting is not None
        budget = run.settings.budget
        window = min(budget.window, state.window or budget.window)
        room = window - budget.output - budget.safety - run.waiting.expected
        holds(run.waiting.size == size_sent(request), 3, "the request is not what was measured")
        holds(room >= 0, 3, f"the request does not fit by {-room} tokens")
        if not again:
            holds(
                not any(same(request, old) for old in self.refused),
                3,
                "the same request is sent again after it was refused",
            )
        overflows = run.evidence.overflows
        holds(overflows <= run.settings.limits.overflows + 2, 3, "overflows without end")

    def capped(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, ToolMessage):
                cap = self.caps.get(message.call_id, self.largest_cap)
                holds(len(message.text) <= cap + NOTICE, 4, "a result above its cap")
                whole = self.lengths[message.call_id]
                shown = str(whole) in message.text or f"{whole:,}" in message.text
                holds(shown or len(message.text) >= whole, 4, "a cut result hides its length")
            elif isinstance(message, AssistantMessage):
                holds(len(message.text) <= self.text_cap + NOTICE, 4, "a reply above its cap")
                for call in message.calls:
                    holds(len(call.arguments) <= self.argument_cap, 4, "arguments above their cap")

    def bounded(self, run: Run, purpose: Purpose, request: Request, *, again: bool) -> None:
        limits = run.settings.limits
        spent, rounds = run.spent, run.spent.rounds
        if purpose is Purpose.WORK and not again:
            holds(spent.prompt + spent.completion < limits.tokens, 5, "the tokens are spent")
            holds(spent.cost < limits.cost, 5, "the money is spent")
        holds(rounds <= limits.rounds, 5, f"{rounds} rounds, {limits.rounds} allowed")
        if self.forced:
            holds(purpose is Purpose.CONCLUDE, 5, "work goes on after the end")
            holds(not request.tools, 5, "a conclusion offers tools")
            self.concluded += not again
            holds(self.concluded <= 1, 5, "a run concludes twice")

    def pins_are_there(self, state: State, messages: list[Message]) -> None:
        for key, text in state.pins:
            shown = any(text in message.text for message in messages)
            holds(shown, 2, f"the pinned fact {key!r} is missing")

    def written(self, messages: list[Message]) -> None:
        for message in messages:
            holds(message.text == clean(message.text), 4, "a text that no server would take")

    def note_cap(self, before: State, call_id: str) -> None:
        for run in (before.run,) if before.run else ():
            for each in run.open:
                if each.call.id == call_id:
                    self.caps.setdefault(call_id, run.settings.cap_of(each.tool))

    def prefixed(self, purpose: Purpose, request: Request) -> None:
        if purpose is not Purpose.WORK:
            return
        if self.last is not None and not self.broke_prefix:
            old, new = list(self.last.messages), list(request.messages)
            holds(new[: len(old)] == old, 7, "the request does not begin with the one before")
        self.last, self.broke_prefix = request, False

    def cancelled(self, before: State, step: Step) -> None:
        run = step.state.run
        if before.run is None or before.run.stopped:
            holds(not step.effects, 9, "a cancel out of nothing causes work")
            return
        assert run is not None
        holds(run.stopped is not None, 9, "the run goes on after a cancel")
        holds(step.effects in ((), (StopWork(),)), 9, "work is owed after a cancel")

    def honest(self, text: str) -> None:
        """What a lying model invented stands only on lines that are marked."""
        for line in text.splitlines():
            if self.forced and INVENTED in line:
                holds(line.endswith(UNVERIFIED), 8, f"an invented claim is not marked: {line!r}")

    def tool_ran(self, call_id: str, tool: ToolSpec | None) -> None:
        """The world ran a tool: twice only where that is harmless."""
        self.ran[call_id] += 1
        safe = tool is not None and tool.effect is not SideEffect.UNSAFE
        holds(safe or self.ran[call_id] == 1, 6, f"{call_id} ran {self.ran[call_id]} times")

    def crashed(self, kept: int) -> State:
        """The process died and `kept` events of its last step were on disk: the state they make."""
        events, _ = self.history.pop() if self.history else ((), NEW)
        state = replay(events[:kept], self.history[-1][1] if self.history else NEW)
        if kept:
            self.history.append((events[:kept], state))
        self.forget()
        return state

    def forget(self) -> None:
        """What was only in the memory of the dead process; the rest is in the log."""
        steps, ran = self.history, self.ran
        self.__init__()  # type: ignore[misc]
        self.ran, before = ran, NEW
        for events, after in steps:
            for event in events:
                self.happened(before, event, after)
            before = after
        self.history = steps

    def end(self) -> None:
        """After the session: the log alone makes every one of its states again."""
        state = NEW
        for events, after in self.history:
            state = replay(events, state)
            holds(state == after, 6, "the log does not make the state")


def words(text: str) -> str:
    """What the model must be shown of the user's words."""
    return clean(text) if text.strip() else "(The user sent an empty message.)"


def size_sent(request: Request) -> Size:
    """What a request really holds, measured from its messages."""
    size = size_of_system(request.system) + size_of_tools(request.tools)
    for message in request.messages:
        size = size + size_of(message)
    return size


def same(one: Request, other: Request) -> bool:
    return (one.system, one.tools, list(one.messages)) == (
        other.system,
        other.tools,
        list(other.messages),
    )
