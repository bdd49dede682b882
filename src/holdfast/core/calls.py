"""Which calls of a reply are run, which are answered without running them, and what becomes of
those that nobody waits for any longer. Every call gets exactly one result, whatever happens.
"""

from holdfast.core import guards, instructions
from holdfast.core.events import CallsAdmitted, Event, Outcome, ToolFinished
from holdfast.core.history import OpenCall
from holdfast.core.limits import StopReason, limit_sentence
from holdfast.core.messages import ToolMessage
from holdfast.core.state import Run, State
from holdfast.core.tools import SideEffect, not_found

MOST_CRASHES = 3
"""How often a call may be under way when the process dies before it is given up."""


def admission(state: State, run: Run) -> Event:
    """Answer the calls that must not be run, then let the others run."""
    for each in run.unanswered:
        if refusal := refused(state, run, each):
            return ToolFinished(each.call.id, Outcome.NOT_RUN, refusal, now(state))
    return CallsAdmitted(tuple(each.call.id for each in run.unanswered))


def refused(state: State, run: Run, each: OpenCall) -> str:
    """Why this call is not run, in words for the model; empty if it is."""
    limits = run.settings.limits
    place = run.open.index(each)
    calls_before = run.spent.calls - (len(run.open) - len(run.unanswered))
    if each.problem:
        return each.problem
    if each.tool is None:
        return not_found(each.call.name, run.offered)
    if calls_before + place >= limits.calls:
        return f"Not run: {limit_sentence(StopReason.OUT_OF_CALLS, limits).lower()}"
    return repeated_too_often(state, run, each)


def repeated_too_often(state: State, run: Run, each: OpenCall) -> str:
    patience, evidence, name = run.settings.patience, run.evidence, each.call.name
    times = guards.repeats(evidence, each.fingerprint, each.tool)
    visible = (
        can_be_seen(state, guards.shown_in(evidence, each.fingerprint)) if times > 1 else False
    )
    if guards.must_not_run(evidence, patience, times, visible=visible):
        return guards.blocked(name, times, visible=visible)
    earlier = run.open[: run.open.index(each)]
    twins = sum(one.fingerprint == each.fingerprint for one in earlier)
    polls = each.tool is not None and each.tool.polls
    if not polls and guards.too_many_twins(patience, times, twins):
        return guards.twins(name, twins + 1)
    return ""


def can_be_seen(state: State, call_ids: tuple[str, ...]) -> bool:
    return any(
        isinstance(entry.message, ToolMessage)
        and entry.message.call_id in call_ids
        and not entry.faded
        for entry in state.history.body
    )


def given_up(state: State, run: Run) -> ToolFinished:
    """The first call nobody waits for any longer. It gets a result all the same, and of one that
    was under way nobody may say that it did not happen."""
    each = run.unanswered[0]
    outcome, text = Outcome.NOT_RUN, instructions.TIME_WAS_UP
    if run.cancelled:
        outcome, text = Outcome.CANCELLED, instructions.CANCELLED
    if each.started and not only_reads(each):
        outcome = Outcome.UNKNOWN
        text = instructions.LATE_UNDER_WAY
        if run.cancelled:
            text = instructions.CANCELLED_UNDER_WAY
    return ToolFinished(each.call.id, outcome, text, now(state))


def left_open(each: OpenCall, at: float) -> ToolFinished:
    """The result of a call that a crash left open, and that is not run now."""
    if each.started and not only_reads(each):
        return ToolFinished(each.call.id, Outcome.UNKNOWN, instructions.CRASHED, at)
    return ToolFinished(each.call.id, Outcome.NOT_RUN, instructions.LEFT_OPEN, at)


def only_reads(each: OpenCall) -> bool:
    return each.tool is not None and each.tool.effect is SideEffect.READ


def may_run_again(each: OpenCall) -> bool:
    """It is safe to repeat, and it is not what keeps killing the process."""
    safe = each.tool is not None and each.tool.effect is not SideEffect.UNSAFE
    return safe and each.crashes < MOST_CRASHES


def now(state: State) -> float:
    """The time of an event that follows from others: theirs."""
    return state.now or 0.0
