"""Rules that watch a run and answer with a verdict: nothing, nudge, drop a tool, tell, stop.

Each rule is a small pure function of the evidence. Evidence is kept here and not read from the
messages, so that eviction cannot blind a guard, and it is bounded, so that a long run costs no
more than a short one.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.core.copies import replace
from holdfast.core.events import Why
from holdfast.core.limits import Patience
from holdfast.core.tools import ToolSpec, not_found

REMEMBERED = 48
"""Calls that the guards look back on: enough for a cycle of four to go round twelve times."""
LONGEST_CYCLE = 4


@dataclass(frozen=True, slots=True)
class Seen:
    """One call as the guards remember it."""

    call: str
    """Fingerprint of name and arguments."""
    result: str
    """Fingerprint of what came back."""
    mutated: bool
    """It succeeded in changing something."""
    id: str = field(default="", compare=False)
    """The call, if it was really run: the model was shown its result."""


@dataclass(frozen=True, slots=True)
class Evidence:
    recent: tuple[Seen, ...] = ()
    """The newest calls of the run, oldest first."""
    known: tuple[str, ...] = ()
    """The newest different calls with their results."""
    barren: int = 0
    """Calls in a row that brought nothing new."""
    failing: tuple[tuple[str, int], ...] = ()
    """Tools that only failed lately, in the same way, and for how many rounds in a row."""
    errors: tuple[tuple[str, str], ...] = ()
    """How they failed the last time, as fingerprints."""
    missing: tuple[str, ...] = ()
    """Tools asked for in the last round that do not exist."""
    most_repeated: int = 1
    """Which time it was for the most repeated call of the last round."""
    failed_rounds: int = 0
    stale_rounds: int = 0
    told_stale: bool = False
    reasks: int = 0
    """Unusable replies in a row."""
    overflows: int = 0


@dataclass(frozen=True, slots=True)
class Nudge:
    """Say this to the model."""

    why: Why
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Take this tool away."""

    tool: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Say this to the person."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run: it makes no progress."""

    text: str


Verdict: TypeAlias = Nudge | Drop | Tell | Stop


# --- keeping the evidence -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deed:
    """One call of a finished round, as a guard needs it."""

    tool: str
    call: str
    result: str
    failed: bool
    ran: bool
    mutates: bool
    polls: bool
    exists: bool
    times: int
    id: str = ""


def remember(evidence: Evidence, deeds: tuple[Deed, ...]) -> Evidence:
    """The evidence after a round with these calls."""
    recent = evidence.recent + tuple(
        Seen(
            deed.call,
            deed.result,
            mutated=deed.mutates and not deed.failed,
            id=deed.id if deed.ran else "",
        )
        for deed in deeds
        if not deed.polls
    )
    known, barren, news = list(evidence.known), evidence.barren, False
    for deed in deeds:
        if deed.polls or (pair := deed.call + deed.result) not in known:
            barren, news = 0, True
            known += [] if deed.polls else [pair]
        else:
            barren += 1
    failing, errors = dict(evidence.failing), dict(evidence.errors)
    for tool in {deed.tool: None for deed in deeds if deed.exists and deed.ran}:
        if all(deed.failed for deed in deeds if deed.tool == tool and deed.ran):
            theirs = [deed for deed in deeds if deed.tool == tool and deed.ran]
            same = any(errors.get(tool) == deed.result for deed in theirs)
            # Five files that cannot be read are five files; one error five times is the tool.
            failing[tool] = failing.get(tool, 0) + 1 if same else 1
            errors[tool] = theirs[-1].result
        else:
            failing.pop(tool, None)
    all_failed = bool(deeds) and all(deed.failed for deed in deeds)
    return replace(
        evidence,
        recent=recent[-REMEMBERED:],
        known=tuple(known[-REMEMBERED:]),
        barren=barren,
        failing=tuple(failing.items())[-REMEMBERED:],
        errors=tuple(errors.items())[-REMEMBERED:],
        missing=tuple(deed.tool for deed in deeds if not deed.exists)[:3],
        most_repeated=max((deed.times for deed in deeds), default=1),
        failed_rounds=evidence.failed_rounds + 1 if all_failed else 0,
        stale_rounds=0 if news else evidence.stale_rounds + 1,
        told_stale=evidence.told_stale and not news,
        reasks=0,
    )


# --- before a call --------------------------------------------------------------------------


def times_before(evidence: Evidence, call: str) -> int:
    """How often this call was made with one and the same result, nothing having changed since.

    Whatever another call changed may change this one's result: older calls do not count. A
    call that changes something does not excuse its own repetition.
    """
    count, result = 0, None
    for seen in reversed(evidence.recent):
        if seen.call == call:
            if result is not None and seen.result != result:
                break
            count, result = count + 1, seen.result
        elif seen.mutated:
            break
    return count


def cycles_before(evidence: Evidence, call: str) -> int:
    """How often a cycle of two to four calls, which this call would continue, has gone round.

    Calls that undo each other (A, B, A, B …) are no repeats of one call, since each changes
    something; as a cycle with the same results they are.
    """
    best = 0
    for period in range(2, LONGEST_CYCLE + 1):
        recent = evidence.recent
        if len(recent) < period or recent[-period].call != call:
            continue
        same = 0
        while same + period < len(recent) and recent[-1 - same] == recent[-1 - same - period]:
            same += 1
        rounds = (same + period) // period
        best = max(best, rounds if rounds > 1 else 0)  # what has gone round once is no cycle yet
    return best


def shown_in(evidence: Evidence, call: str) -> tuple[str, ...]:
    """The ids under which this call's result was shown."""
    return tuple(seen.id for seen in evidence.recent if seen.call == call and seen.id)


def last_result(evidence: Evidence, call: str) -> str | None:
    """What this call brought the last time, as a fingerprint."""
    return next((seen.result for seen in reversed(evidence.recent) if seen.call == call), None)


def repeats(evidence: Evidence, call: str, tool: ToolSpec | None) -> int:
    """Which time this would be that the same thing is done with the same result."""
    if tool is not None and tool.polls:
        return 1
    return 1 + max(times_before(evidence, call), cycles_before(evidence, call))


def must_not_run(evidence: Evidence, patience: Patience, times: int, *, visible: bool) -> bool:
    """Whether the nth same call is answered without running it: if its result can still be seen,
    or if the run is about to be stopped for it. Who has lost sight of a result may ask again."""
    if times >= patience.repeat_stopped and evidence.barren + 1 >= stop_after(patience):
        return True
    first = min(patience.repeat_stopped, patience.repeat_blocked or patience.repeat_stopped)
    return times >= first and visible


def stop_after(patience: Patience) -> int:
    """Calls in a row without anything new that end a run: all but the first of the repeats."""
    return patience.repeat_stopped - 1


def too_many_twins(patience: Patience, times: int, twins: int) -> bool:
    """Whether a reply asks for the same call so often that it cannot mean it."""
    first = min(patience.repeat_stopped, patience.repeat_blocked or patience.repeat_stopped)
    return twins > 0 and times + twins >= first


def blocked(tool: str, times: int, *, visible: bool) -> str:
    often = "once" if times == 2 else f"{times - 1} times, and the result was always the same"
    where = "The result is in the conversation above. Use it, or" if visible else "Now"
    return (
        f"Not run: you already called {tool} with these exact arguments {often}. "
        f"{where} do something else."
    )


def twins(tool: str, times: int) -> str:
    return (
        f"Not run: your reply asks for the same call of {tool} {times} times at once. "
        "Use the results of the others."
    )


def repeated(times: int, patience: Patience) -> str:
    """A word on the nth same result, where it is time for one."""
    if times < patience.repeat_told:
        return ""
    return (
        f"\n[This is call number {times} with the same arguments and the same result. "
        f"At number {patience.repeat_stopped} the run is stopped: use the result, "
        "or do something else.]"
    )


# --- after a round --------------------------------------------------------------------------


def verdict(evidence: Evidence, patience: Patience, tools: tuple[ToolSpec, ...]) -> Verdict | None:
    """What the first rule that has something to say says."""
    return (
        going_in_circles(evidence, patience)
        or failing_tool(evidence, patience, tools)
        or failed_rounds(evidence, patience, tools)
        or no_progress(evidence, patience)
    )


def going_in_circles(evidence: Evidence, patience: Patience) -> Verdict | None:
    """The same call too often, and nothing else that was new. A model that lists a folder again
    after each file it reads wastes calls, but it gets somewhere: it is only blocked."""
    times = evidence.most_repeated
    if times < patience.repeat_stopped or evidence.barren < stop_after(patience):
        return None
    return Stop(f"The model made the same call {times} times and got the same result.")


def failing_tool(
    evidence: Evidence, patience: Patience, tools: tuple[ToolSpec, ...]
) -> Verdict | None:
    offered = {tool.name for tool in tools}
    for tool, rounds in evidence.failing:
        if rounds >= patience.tool_failures and tool in offered:
            return Drop(tool)
    return None


def tool_left(tool: str, rounds: int) -> str:
    return (
        f"STOP: {tool} has failed in {rounds} rounds in a row and has been removed. Do NOT call "
        "it again. Say what you know so far, or try a completely different approach."
    )


def failed_rounds(
    evidence: Evidence, patience: Patience, tools: tuple[ToolSpec, ...]
) -> Verdict | None:
    if evidence.failed_rounds < patience.failed_rounds:
        return None
    if evidence.missing:
        return Nudge(
            Why.ALL_FAILED,
            f"TOOL ERROR: {not_found(evidence.missing[0], tools)} "
            "Use ONLY tools listed in your available tools.",
        )
    return Nudge(
        Why.ALL_FAILED,
        "TOOL ERROR: All tool calls in the last rounds failed. Read the errors above, then change "
        "the tool, the arguments or the approach.",
    )


def is_stale(evidence: Evidence, patience: Patience) -> bool:
    """Nothing new for long enough that the person should know, and does not yet."""
    return evidence.stale_rounds >= patience.stale_told and not evidence.told_stale


def no_progress(evidence: Evidence, patience: Patience) -> Verdict | None:
    if evidence.stale_rounds >= patience.stale_stopped:
        return Stop(f"The last {evidence.stale_rounds} rounds brought nothing new.")
    if is_stale(evidence, patience):
        return Tell(
            f"The last {evidence.stale_rounds} rounds brought nothing new. The run goes on until "
            f"{patience.stale_stopped}; you can cancel it or tell the model something."
        )
    return None
