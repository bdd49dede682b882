"""How calls written as text look: the table of styles, and the patterns of their parts.

`dialects` goes through a text from one `MARK` to the next and reads what stands there; `veil` looks
only for where one may begin. Nothing here decides whether it is a call. All patterns are verbose,
and none of them can take longer than the text is long.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.models.thinking import BLOCKS


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.VERBOSE | re.MULTILINE)


# --- markup ---------------------------------------------------------------------------------

NAME = r"[A-Za-z_][\w.-]*"
FAMILY = r"(?:\w{1,20}:|[|｜]DSML[|｜])?"
"""What some models write before the name of each tag: `<minimax:tool_call>`."""
SEPARATOR = r"(?:<[|｜]tool[▁_]sep[|｜]>|<tool_sep>)"
OPEN = rf"""(?:<{FAMILY}(?:start_|longcat_|dots_)?(?:tool_call|function_call)s?> | <TOOLCALL>
    | \[TOOL_CALLS\] | \[TOOL_REQUEST\] | <\|tool_call> | <[|｜]tool[▁_]calls?[▁_]begin[|｜]>
    | <\|(?:tool_call|tool_call_start|tool_calls_section_begin|function_call|python_tag|python_start
        |tools_prefix|action_start|plugin|START_ACTION|content_invoke_tool_json)\|>
    | <\|tool_call:begin\|>[\w-]{{0,99}}<\|tool_call:name\|>)"""
CLOSE = rf"""(?:</{FAMILY}(?:longcat_|dots_)?(?:(?:tool_call|function_call)s?|function|invoke)>
    | </TOOLCALL> | <end_function_call> | \[/TOOL_CALLS\] | \[END_TOOL_REQUEST\]
    | <tool_call\|> | <turn\|> | <\|tool_response> | <[|｜]tool[▁_]calls?[▁_]end[|｜]>
    | <\|(?:/tool_call|tool_call_end|tool_calls_section_end|tool_call:end|python_end|tools_suffix
        |action_end|END_ACTION|end_message|end|return|call|eom_id|eot_id|im_end)\|>)"""
END = rf"</{FAMILY}(?:function|invoke|tool_call)>"
FUNCTION = rf"""<{FAMILY}(?:function|invoke)(?:=|\s++name=)["']?(?P<name>[^"'>\s]+)["']?\s*+>\s*+"""

# --- where a call may begin -----------------------------------------------------------------

UNQUOTED = r"""(?<![`"'])"""
"""Markup right after a quote is spoken of, not used."""
ALONE = r"""(?<![\w`"'])"""
"""The same for a word, which must also not be the end of another one."""
OBJECT = r"""[ \t]*+:?+\s{0,99}+(?=\{+\s{0,99}["'“])"""
LIKE_AN_OBJECT = r"[ \t]{0,99}+:?+\s{0,99}+\{{0,9}+\s{0,99}+"
"""What `OBJECT` looks like while it is being written."""


def begun(word: str) -> str:
    """A pattern for the word and for each beginning of it."""
    return "(?:".join(map(re.escape, word)) + ")?+" * (len(word) - 1)


@dataclass(frozen=True, slots=True)
class Style:
    mark: str
    """How a call in this style begins."""
    begun: str
    """What such a mark may look like while it is still being written."""


STYLES: Mapping[str, Style] = {
    # ```json {"name": …, "arguments": {…}} ```, and Command R's `Action:` before it
    "fence": Style(
        r"(?:^[ \t]*+Action:\s{0,99}+)? (?P<ticks>`{3,}+|~{3,}+) [ \t]*+(?P<language>[\w.+-]*+)",
        r"""(?:^[ \t]{0,99}+Action:\s{0,99}+)?
        (?:`{1,2}+|~{1,2}+|(?:`{3,}+|~{3,}+)[ \t]{0,99}+[\w.+-]*+)""",
    ),
    # <think>: nothing in it is a call
    "think": Style("|".join(map(re.escape, BLOCKS)), "(?!)"),
    # <tool_call>{"name": …, "arguments": {…}}</tool_call>
    "markup": Style(
        rf"{UNQUOTED}(?:{OPEN}\s*+)++",
        UNQUOTED
        + r"""(?:<[^\s<>]{0,99}+ | \[[A-Z_]{0,12}+
        | <\|tool_call:begin\|>[\w-]{0,99}+(?:<[^\s<>]{0,30}+)?)""",
    ),
    # <function=read><parameter=path>a.md</parameter></function>
    "function": Style(
        UNQUOTED + FUNCTION,
        UNQUOTED + r"<[^\s<>]{0,30}(?:function|invoke)\s{1,99}+[^<>\n]{0,99}+",
    ),
    # <|channel|>commentary to=functions.read <|constrain|>json<|message|>{…}<|call|>
    "harmony": Style(
        UNQUOTED
        + r"""(?:<\|start\|>assistant|<\|channel\|>\w+|<\|start\|>assistant<\|channel\|>\w+)
        [ ]to=(?:functions\.)?(?P<to>[\w.-]+) [^{}\n]{0,99}<\|message\|>\s*+""",
        UNQUOTED + r"<\|(?:start|channel)\|>[^{}\n]{0,199}+",
    ),
    # TOOL_CALL {"tool": …, "input": {…}}
    "action": Style(
        rf"{ALONE}(?i:tool_call){OBJECT}",
        rf"{ALONE}(?i:{begun('tool_call')}){LIKE_AN_OBJECT}",
    ),
    # FINAL {"answer": …}
    "final": Style(
        rf"{ALONE}(?:FINAL|^[ \t]*+(?i:final)){OBJECT}",
        rf"{ALONE}(?i:{begun('final')}){LIKE_AN_OBJECT}",
    ),
    # functools[{"name": …, "arguments": {…}}]
    "functools": Style(
        ALONE + r"functools(?=\[\s{0,99}\{)",
        rf"{ALONE}{begun('functools[')}{LIKE_AN_OBJECT}",
    ),
    # Action: read ⏎ Action Input: {…}
    "lines": Style(
        rf"""{ALONE}^[ \t]*+(?:Tool|Action|✿FUNCTION✿)[ \t]*+:[ \t]*+(?P<of>{NAME})[ \t]*+\n
        [ \t]*+(?:Arguments|Action\ Input|✿ARGS✿)[ \t]*+:\s{{0,99}}+(?=\{{)""",
        rf"{ALONE}^[ \t]{{0,99}}+(?:{begun('Tool')}|{begun('Action')}|{begun('✿FUNCTION✿')})"
        + r"""(?:[ \t]{0,99}+:[ \t]{0,99}+[\w.-]{0,99}+[ \t]{0,99}+
        (?:\n[ \t]{0,99}+[\w ✿]{0,20}+:?+\s{0,99}+)?)?""",
    ),
    # read ⏎ {…}
    "heading": Style(
        rf"""{ALONE}^(?:>>>)?(?P<above>{NAME})[ \t]*+\n(?=[ \t]*+\{{\s{{0,99}}["'“}}])""",
        ALONE + r"^(?:>{1,3}+|(?=\w))[\w.-]{0,99}+[ \t]{0,99}+(?:\n\s{0,99}+\{?+\s{0,99}+)?",
    ),
    # [read(path="a.md")]
    "python": Style(
        rf"{ALONE}(?=\[[ \t]*+{NAME}\()",
        ALONE + r"\[[ \t]{0,99}+[\w.-]{0,99}+",
    ),
    # {"name": …, "arguments": {…}}
    "bare": Style(
        ALONE + r"""^[ \t]*+(?=(?:\[\s{0,99}+)?\{{1,2}\s{0,99}["'“])""",
        ALONE + r"^[ \t]{0,99}+(?:\[\s{0,99}+)?+(?:\{{1,2}+\s{0,99}+)?+",
    ),
}
"""The ways in which models begin a call, the more telling ones first."""

FIRST = r"(?=[`~<\[◁] | (?<!\w)[TtFf] | ^)"
"""What every mark begins with. A look at this alone makes going through prose five times faster."""
MARK = pattern(
    FIRST + "(?:" + "|".join(f"(?P<{name}>{style.mark})" for name, style in STYLES.items()) + ")"
)

CALL_FENCES = ("tool_call", "tool_calls", "tool_code", "tool_use")
"""Fences of these languages hold calls, whatever is named in them."""
FENCES = ("", "json", *CALL_FENCES)
"""Fences of other languages are examples."""

# --- where it ends --------------------------------------------------------------------------

TAIL = pattern(rf"(?:[\s}}]*+(?:{CLOSE}|{SEPARATOR}))++")
STOPS = pattern(rf"(?=[<\[`])(?:{OPEN}|{CLOSE}|```)")
"""What shows that a call has ended, also where its own brackets do not."""
NEAR = 64
"""How far before a stop a broken call may break off and still be mended."""
LINE_END = pattern(r"[ \t]*(?:\n|\Z)")

# --- what stands in it ----------------------------------------------------------------------

SPACE = pattern(r"\s*")
BETWEEN = pattern(r"\s*[;,]?\s*")
NAMED = pattern(
    rf"""(?:{FUNCTION}
    | (?:function{SEPARATOR}|functions\.|call:)? (?P<bare>{NAME}) (?::\d+)? \s*+
      (?:<\|tool_call_argument_begin\|> | {SEPARATOR} | <\|tool_call:args\|>
      | (?:\[CALL_ID\]\w+)?\[ARGS\])? \s*+)
    (?P<ticks>```(?:json)?\s*+)? (?=\{{ | <{FAMILY}param | <arg_key> | {END})"""
)
"""A name, and behind it the arguments."""
PARAMETER = pattern(
    rf"""\s*+(?:<{FAMILY}param(?:eter)?(?:=|\s++name=)["']?(?P<xml>[^"'>\n]++)["']?
        (?:\s++string="(?P<is_text>true|false)")?\s*+>
    | <arg_key>(?P<glm>[^<>]++)</arg_key>\s*+<arg_value>)"""
)
FUNCTION_ENDS = pattern(rf"\s*{END}")
VALUE_ENDS = pattern(
    rf"""</{FAMILY}(?:param(?:eter)?|arg_value)>
    (?=\s*(?:<{FAMILY}param|<arg_key>|{END}))"""
)
PYTHON_CALL = pattern(rf"\s*(?P<print>print\(\s*)?(?:default_api\.)?(?P<name>{NAME})\(\s*")
KEYWORD = pattern(r"(?P<key>[A-Za-z_]\w*)\s*=\s*")
NEXT_KEYWORD = pattern(r"\s*(?:,\s*|(?=\)))")
FINE_IN_PYTHON = ("single quotes", "True, False or None as in Python")

FIRST_NAME = pattern(
    r"""[\[{\s]*["'“](?:name|tool|function|action|type)["'”]\s*:\s*["'“]([^"'”]*)"""
)
