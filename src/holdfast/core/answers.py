"""Whether a text is an answer: small models write calls as text, repeat errors of their server, or say
nothing at all.
"""

import re

CALL_MARKUP = re.compile(
    r"""\s*(?:
        <\|?/?tool_call | <function[=_\s>] | \[TOOL_CALLS?\] | <\|python_tag\|>
      | <[|｜]tool▁calls? | <invoke\ name= | <\|channel\|>\s*commentary\ to=
      | \{\s*"type"\s*:\s*"function"\s*,\s*"function"\s*:\s*\{ | \{\s*"tool_calls"\s*:\s*\[
      | TOOL_CALL\s*[{:] | ```(?:tool_code|tool_call)\b
      | (?:```(?:json)?\s*)?\{\s*
        "(?:name|tool|function|tool_calls?)"\s*:[^{}]*"(?:arguments|parameters|input)"\s*:
    )""",
    re.VERBOSE | re.IGNORECASE,
)
CALL_LINE = re.compile(
    r"^(?:<tool_call>\s*\{|<\|tool_call|\[TOOL_CALLS\]\s*\[|<function=\w|TOOL_CALL\s*\{)",
    re.MULTILINE,
)
"""What no sentence begins with, also below an introduction."""
THINKING = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
INVISIBLE = re.compile("[\0\u200b-\u200f\u2060\ufeff\ufffd]")
PROVIDER_ERROR = re.compile(
    r"""\s*(?:
        \{\s*"error"\s*:\s*(?:\{[^{}]*"(?:message|code|type)"\s*: | "[^"]*"\s*\}\s*$)
      | Error\ code:\s*\d{3}(?:\ -|\s*$)
      | (?:<!DOCTYPE\ html[^>]*>\s*)?<html[^>]*>\s*(?:<head>)?\s*<title>\s*[45]\d\d\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def not_an_answer(text: str) -> str:
    """What is wrong with this text as an answer, in words for the model; empty if nothing is."""
    text = THINKING.sub("", INVISIBLE.sub("", text))
    if not text.strip():
        return "You returned an empty response."
    if CALL_MARKUP.match(text) or CALL_LINE.search(text):
        return (
            "Your reply looks like a tool call written as text, which cannot be run and is no "
            "answer. Call the tool through the tool interface, or answer in plain words."
        )
    if PROVIDER_ERROR.match(text):
        return "Your reply was an error message of the server, which is no answer."
    return ""
