"""The bytes are in order, and the reply in them is not: something is missing, or not true."""

import json
from collections.abc import Callable
from dataclasses import replace

from holdfast.core.limits import Usage
from holdfast.testing.server.draft import Call, Content, Draft, Ending
from holdfast.testing.server.faults.names import dashed, meant
from holdfast.testing.server.mangled import AS_TEXT, BROKEN
from holdfast.testing.server.turns import SOME_WORDS, Fault, Scene, Turn, first_tool

LARGEST = 64 * 1024 * 1024
NOT_IN_FORMAT = "The model produced output that does not match the expected peg-native format"
"""What llama.cpp reports when its parser cannot read what the model wrote."""


def spoiled(name: str, of: Turn, spoil: Callable[[Draft], Draft]) -> Fault:
    return Fault(name, of, lambda draft, _: spoil(draft))


def with_calls(name: str, of: Turn, change: Callable[[Call], Call]) -> Fault:
    return spoiled(
        name, of, lambda draft: replace(draft, calls=tuple(change(call) for call in draft.calls))
    )


# --- how it ends ---------------------------------------------------------------------------------


def no_finish_reason(of: Turn = SOME_WORDS) -> Fault:
    """The reason why the model stopped is missing."""
    return spoiled("no-finish-reason", of, lambda draft: replace(draft, ending=None))


def no_done(of: Turn = SOME_WORDS) -> Fault:
    """The stream ends without its `[DONE]`, or what the API has in its place."""
    return spoiled("no-done", of, lambda draft: replace(draft, ends=False))


def error_in_stream(of: Turn = SOME_WORDS, message: str = NOT_IN_FORMAT) -> Fault:
    """The stream began with 200, and ends with an error in place of the ending: no `[DONE]`."""
    return spoiled("error-in-stream", of, lambda draft: replace(draft, error=message))


def window_full(of: Turn = SOME_WORDS) -> Fault:
    """The window was full before the model was done: `length`, and the tokens add up to it."""

    def spoil(draft: Draft, scene: Scene) -> Draft:
        prompt = draft.usage.prompt if draft.usage else 0
        usage = Usage(prompt=prompt, completion=scene.window - prompt)
        return replace(draft, ending=Ending.LENGTH, usage=usage)

    return Fault("window-full", of, spoil)


def call_cut_by_length(of: Turn = first_tool) -> Fault:
    """`length`, in the middle of the arguments of a call: they are half of a JSON object."""

    def halved(call: Call) -> Call:
        written = str(call.arguments)
        return replace(call, arguments=written[: max(1, len(written) // 2)])

    def spoil(draft: Draft, _: Scene) -> Draft:
        calls = (*draft.calls[:-1], *(halved(call) for call in draft.calls[-1:]))
        return replace(draft, calls=calls, ending=Ending.LENGTH)

    return Fault("call-cut-by-length", of, spoil)


def stop_with_calls(of: Turn = first_tool) -> Fault:
    """There are calls, but the model is said to have stopped as if there were none."""
    return spoiled("stop-with-calls", of, lambda draft: replace(draft, ending=Ending.STOP))


def calls_announced_without_any(of: Turn = SOME_WORDS) -> Fault:
    """The model is said to have stopped for its calls, and there are none."""
    return spoiled(
        "calls-announced-without-any",
        of,
        lambda draft: replace(draft, calls=(), ending=Ending.CALLS),
    )


# --- its calls -----------------------------------------------------------------------------------


def missing_ids(of: Turn = first_tool) -> Fault:
    """Calls have no id."""
    return with_calls("missing-ids", of, lambda call: replace(call, id=None))


def empty_ids(of: Turn = first_tool) -> Fault:
    """The id of every call is empty."""
    return with_calls("empty-ids", of, lambda call: replace(call, id=""))


def duplicate_ids(of: Turn = first_tool) -> Fault:
    """All calls have the same id; there are at least two."""

    def spoil(draft: Draft) -> Draft:
        calls = draft.calls * 2 if len(draft.calls) == 1 else draft.calls
        return replace(draft, calls=tuple(replace(call, id="call_1") for call in calls))

    return spoiled("duplicate-ids", of, spoil)


def arguments_as_object(of: Turn = first_tool) -> Fault:
    """The arguments of a call are a JSON object, and not the text of one."""
    return with_calls(
        "arguments-as-object",
        of,
        lambda call: replace(call, arguments=json.loads(str(call.arguments))),
    )


def broken_arguments(how: str = "doubled quotes", of: Turn = first_tool) -> Fault:
    """The arguments of a call are not a JSON object, in one of many ways."""
    name = meant(how, BROKEN)
    way = BROKEN[name]

    def change(call: Call) -> Call:
        # There are ways in which an empty object cannot be got wrong.
        right = '{"note": "example"}' if call.arguments == "{}" else str(call.arguments)
        return replace(call, arguments=way(right))

    return with_calls(dashed("broken-arguments", name), of, change)


def call_as_text(style: str = "fenced", of: Turn = first_tool) -> Fault:
    """A call is written into the text, where no server looks for it, in one of several styles."""
    name = meant(style, AS_TEXT)
    way = AS_TEXT[name]

    def spoil(draft: Draft) -> Draft:
        text = "\n".join(filter(None, (draft.text, *map(way, draft.calls))))
        return replace(draft, text=text, calls=(), ending=Ending.STOP)

    return spoiled(dashed("call-as-text", name), of, spoil)


# --- its text ------------------------------------------------------------------------------------


def reasoning(field: str = "reasoning_content", of: Turn = SOME_WORDS) -> Fault:
    """The model thinks aloud first: in the field of this name, or in a `<think>` block."""
    thought = "The user wants something. I had better say it."

    def spoil(draft: Draft) -> Draft:
        if field == "think":
            return replace(draft, text=f"<think>\n{thought}\n</think>\n\n{draft.text}")
        return replace(draft, thought=draft.thought or thought, thought_field=field)

    return spoiled(dashed("reasoning", field), of, spoil)


def nul(of: Turn = SOME_WORDS) -> Fault:
    """There is a NUL in the text."""
    return spoiled("nul", of, lambda draft: replace(draft, text=f"{draft.text}\0!"))


def lone_surrogate(of: Turn = SOME_WORDS) -> Fault:
    """There is half a surrogate pair in the text, escaped as JSON allows and UTF-8 does not."""
    return spoiled("lone-surrogate", of, lambda draft: replace(draft, text=f"{draft.text}\ud83d!"))


def giant_reply(size: int = 4 * 1024 * 1024) -> Fault:
    """The text is so many characters long, whatever the request allows."""
    size = min(size, LARGEST)
    text = ("All work and no play makes a dull reply. " * (size // 41 + 1))[:size]
    return spoiled("giant-reply", SOME_WORDS, lambda draft: replace(draft, text=text))


def content_null(of: Turn = SOME_WORDS) -> Fault:
    """The content is null."""
    return spoiled("content-null", of, lambda draft: replace(draft, content=Content.NULL))


def content_as_parts(of: Turn = SOME_WORDS) -> Fault:
    """The content is a list of parts, and not a text."""
    return spoiled("content-as-parts", of, lambda draft: replace(draft, content=Content.PARTS))


# --- what stands around it -----------------------------------------------------------------------


def empty_choices(of: Turn = SOME_WORDS) -> Fault:
    """The list of choices is empty, so there is no reply."""
    return spoiled("empty-choices", of, lambda draft: replace(draft, has_choice=False))


def no_usage(of: Turn = SOME_WORDS) -> Fault:
    """The tokens are not counted."""
    return spoiled("no-usage", of, lambda draft: replace(draft, usage=None))


def zero_usage(of: Turn = SOME_WORDS) -> Fault:
    """The tokens are counted, and all the counts are zero."""
    return spoiled("zero-usage", of, lambda draft: replace(draft, usage=Usage()))


def wrong_usage(of: Turn = SOME_WORDS) -> Fault:
    """The prompt is counted at half its size, as if the rest had been cut off in silence."""

    def spoil(draft: Draft) -> Draft:
        counted = draft.usage or Usage()
        return replace(draft, usage=replace(counted, prompt=counted.prompt // 2, cached=0))

    return spoiled("wrong-usage", of, spoil)


def other_model(of: Turn = SOME_WORDS, model: str = "another-model") -> Fault:
    """Another model answered than the one that was asked."""
    return spoiled("other-model", of, lambda draft: replace(draft, model=model))
