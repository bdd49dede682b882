"""The ways to go wrong: one function for each, and what it makes is a turn of a script.

    ModelServer(faults.busy(retry_after=0), faults.dropped_stream(says("Hello."), after=1))

A fault spoils the turn `of` it, which is some words or a call of the first tool unless you say
otherwise; that turn may be a fault itself. `FAULTS` has all of them by name.
"""

from collections.abc import Callable, Mapping
from functools import partial

from holdfast.testing.server.faults.connections import (
    close_before_answering,
    crlf,
    cut_json,
    dropped_stream,
    empty_stream,
    gzipped,
    half_event,
    keep_alive_comments,
    keep_alive_only,
    long_line,
    reset_stream,
    silence,
    split_characters,
    stall,
    trickle,
    utf8_garbage,
)
from holdfast.testing.server.faults.names import dashed
from holdfast.testing.server.faults.refusals import (
    busy,
    html_page,
    http,
    loading,
    malformed_history,
    overflow,
    unavailable,
    unknown_model,
    wrong_key,
)
from holdfast.testing.server.faults.replies import (
    arguments_as_object,
    broken_arguments,
    call_as_text,
    call_cut_by_length,
    calls_announced_without_any,
    content_as_parts,
    content_null,
    duplicate_ids,
    empty_choices,
    empty_ids,
    error_in_stream,
    giant_reply,
    lone_surrogate,
    missing_ids,
    no_done,
    no_finish_reason,
    no_usage,
    nul,
    other_model,
    reasoning,
    stop_with_calls,
    window_full,
    wrong_usage,
    zero_usage,
)
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.mangled import AS_TEXT, BROKEN
from holdfast.testing.server.turns import Fault as Fault

__all__ = [
    "http",
    "busy",
    "unavailable",
    "loading",
    "wrong_key",
    "unknown_model",
    "malformed_history",
    "html_page",
    "overflow",
    "close_before_answering",
    "silence",
    "stall",
    "dropped_stream",
    "reset_stream",
    "half_event",
    "empty_stream",
    "keep_alive_only",
    "keep_alive_comments",
    "trickle",
    "split_characters",
    "crlf",
    "gzipped",
    "long_line",
    "cut_json",
    "utf8_garbage",
    "nul",
    "lone_surrogate",
    "giant_reply",
    "no_finish_reason",
    "no_done",
    "error_in_stream",
    "window_full",
    "call_cut_by_length",
    "stop_with_calls",
    "calls_announced_without_any",
    "missing_ids",
    "empty_ids",
    "duplicate_ids",
    "arguments_as_object",
    "content_null",
    "content_as_parts",
    "empty_choices",
    "no_usage",
    "zero_usage",
    "wrong_usage",
    "other_model",
    "broken_arguments",
    "call_as_text",
    "reasoning",
]

MAKERS: Mapping[str, Callable[..., Fault]] = {dashed(name): globals()[name] for name in __all__}
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "overflow": tuple(kind.value for kind in Kind),
    "broken-arguments": tuple(BROKEN),
    "call-as-text": tuple(AS_TEXT),
    "reasoning": ("reasoning_content", "reasoning", "thinking", "think"),
}
"""Of those that come in several: what their maker may be told. It takes the first unless it is."""
FAULTS: Mapping[str, Callable[[], Fault]] = {
    **{name: make for name, make in MAKERS.items() if name not in VARIANTS},
    "overflow": overflow,  # which is none of its variants, but the server's own
    **{
        dashed(name, variant): partial(MAKERS[name], variant)
        for name, variants in VARIANTS.items()
        for variant in variants
    },
}
"""Every fault by the name it has on the command line."""


def sentence(name: str) -> str:
    """What the faults of this maker do."""
    return " ".join((MAKERS[name].__doc__ or "").split())
