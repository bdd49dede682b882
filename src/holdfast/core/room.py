"""Making room for a request: what leaves the window now, and when that is no longer enough.

`window` knows what could leave; here it is decided that it does, stage by stage.
"""

from holdfast.core import window
from holdfast.core.events import (
    About,
    EndDecided,
    Event,
    Evicted,
    ModelAsked,
    Purpose,
    TaskCut,
    Warned,
)
from holdfast.core.limits import StopReason
from holdfast.core.state import Run, State, request_size, window_of
from holdfast.core.tokens import Size
from holdfast.core.window import Frame


def ask(state: State, run: Run, purpose: Purpose) -> ModelAsked:
    size = request_size(state, run, purpose)
    return ModelAsked(state.asks + 1, purpose, state.gauge.expect(size).safe)


def make_room_and_ask(state: State, run: Run) -> Event:
    """What must leave the window before the model can be asked, and the end of the run if that is
    not enough; else the request."""
    history, settings, budget = state.history, run.settings, run.settings.budget
    if faded := window.fade_beyond_keep_last(history, run.usable):
        return faded
    frame = framed(state, run, Purpose.WORK)
    used = frame.expected(history.size)
    room = frame.left(used)
    if budget.evicts and room < budget.evict_below:
        relief = window.relief(history, frame, settings.caps)
        if relief and relief.dropped and wants_summary(state, run):
            return ask(state, run, Purpose.SUMMARISE)
        if relief:
            return relief
    if room < budget.min_round or run.evidence.overflows > settings.limits.overflows:
        hopeless = frame.room(Size()) < budget.min_round  # then nothing is destroyed in vain
        return (
            shelve_idle(run)
            or (None if hopeless else make_last_room(state, run, frame, wanted=budget.min_round))
            or EndDecided(
                StopReason.CONTEXT_EXHAUSTED,
                window.too_small(history, frame, settings.system, run.offered),
            )
        )
    if not run.told_full and used >= budget.warn_at * frame.window:
        text = f"The window is filling up: {used} of {frame.window} tokens are in use."
        return Warned(About.WINDOW, text)
    return ModelAsked(state.asks + 1, Purpose.WORK, used)


def wants_summary(state: State, run: Run) -> bool:
    """Before rounds leave the window the model may write down what it must not forget."""
    wanted = run.settings.summaries and not run.summarised
    return wanted and fits(state, run, Purpose.SUMMARISE)


def shelve_idle(run: Run) -> Evicted | None:
    """Tools that this run has not used leave the definitions, if they can be found again."""
    if not run.settings.budget.evicts:
        return None
    return window.shelved(run.offered, {record.tool for record in run.ledger.records})


def make_last_room(state: State, run: Run, frame: Frame, *, wanted: int) -> Event | None:
    """The last ways to make room: everything but the newest round, then the user's words."""
    if run.settings.budget.evicts:
        if evicted := window.squeeze(state.history, frame, run.settings.caps, wanted):
            return evicted
    to = window.task_cut(state.history, frame, wanted)
    return None if to is None else TaskCut(to)


def fits(state: State, run: Run, purpose: Purpose) -> bool:
    budget = run.settings.budget
    most = window_of(state, run) - budget.output - budget.safety
    return state.gauge.expect(request_size(state, run, purpose)).safe <= most


def framed(state: State, run: Run, purpose: Purpose) -> Frame:
    fixed = run.fixed
    if purpose is not Purpose.WORK:
        fixed = request_size(state, run, purpose) - state.history.size
    return Frame(state.gauge, run.settings.budget, window_of(state, run), fixed)
