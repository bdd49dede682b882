"""Texts made to be slow to read, and the check that they are not."""

import time
from collections.abc import Callable

from holdfast.models.thinking import BLOCKS
from tests.models.styles import BEGIN, CALL, EXAMPLES

UNITS = sorted(
    {
        "{", "[", "}", "'", '"', "“", "\\", "`", "``", "```", "~~~", "<", "</", "<|", " ", "\n", "\t", "\u00a0",
        "\n{", "\n[", '\n{"', '\n{"a":1}', f"{CALL} ", "{{", '{"arguments":', '{"a":"', "TOOL_CALL {",
        'TOOL_CALL {"a": 1, ', f"tool_call{' ' * 300}", f"tool_call{' ' * 90}:{' ' * 90}", "t ", "FINAL {",
        "<tool_call>", "<tool_call>{", '<tool_call>{"name": "read",', "<tool_call>read<arg_key>",
        "<function=read><parameter=a>", "<invoke name=", "</parameter> ", "```json\n", '```json\n{"a":',
        "```\n```\n", "```\n`", "[read(", "[read(a=[", "[read(a='", "[TOOL_CALLS]", "functools[{", BEGIN,
        "Action: read\nAction Input: {", f"\nAction:{' ' * 98}", "\nread\n", "\nread\n{", "✿FUNCTION✿: a\n",
        "<|channel|>x to=read", "<|start|>assistant", "<|channel|>analysis<|message|>a<|end|>", "call:read{",
        '<|"|>', '<|tool_call>call:read{a:<|"|>', "<|tool_call:begin|>a", "```tool_code\nprint(", "</think>,",
        "`</think>`", " </think> a", "<think>a</think> ", "analysisA", "assistantfinal", f"\n{'x' * 98}", "\r\n",
        *BLOCKS, *BLOCKS.values(), *(text for _, text, _ in EXAMPLES[::4]),
    }
)  # fmt: skip
"""Each mark again and again, and what looks much like one."""


def grows_no_faster_than(
    text: Callable[[int], str], work: Callable[[str], object], short: int = 6_000
) -> bool:
    """Whether four times the text takes about four times the work. Quadratic would be sixteen."""

    def seconds(length: int) -> float:
        begun = time.process_time()
        work(text(length))
        return time.process_time() - begun

    once = min(seconds(short), seconds(short))
    return any(seconds(4 * short) < 8 * once + 0.05 for _ in range(3))
