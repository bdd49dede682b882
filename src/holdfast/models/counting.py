"""Counting with a tokenizer on this machine, where the server counts nothing and one is installed.

It knows the texts and not the template around them, so it comes near and is not exact. The only
tokenizer that is looked for is `toktok` (`pip install toktok-rs`): it has its vocabularies built
in, while others would download them in the middle of a run.
"""

import re
from importlib.util import find_spec

from holdfast.core.effects import Request
from holdfast.core.messages import AssistantMessage
from holdfast.models.base import Count

VOCABULARIES = (
    (re.compile(r"gpt-oss"), "o200k_harmony"),
    (re.compile(r"gpt-(?:4o|4\.1|4\.5|5|6)|chatgpt-4o|(?:^|/)o[1-9]"), "o200k_base"),
    (re.compile(r"gpt-4|gpt-3\.5"), "cl100k_base"),
    (re.compile(r"qwen-?3\.5|qwen-?3\.6"), "qwen3.5"),
)
"""Which vocabulary a model has, the first that fits."""
AROUND = 4
"""Tokens of a template around one message."""


def counted_here(model: str, request: Request) -> Count | None:
    """About how many tokens a request has; None without a tokenizer for this model."""
    name = next((name for pattern, name in VOCABULARIES if pattern.search(model.lower())), None)
    if name is None or find_spec("toktok") is None:
        return None
    from importlib import import_module

    texts = texts_of(request)
    counts = import_module("toktok").batch_count(texts, name)
    return Count(sum(counts) + AROUND * len(texts), f"the tokenizer {name}", exact=False)


def texts_of(request: Request) -> list[str]:
    texts = [request.system]
    texts += (f"{tool.name} {tool.description} {tool.parameters}" for tool in request.tools)
    for message in request.messages:
        calls = message.calls if isinstance(message, AssistantMessage) else ()
        texts.append(" ".join([message.text, *(f"{each.name}{each.arguments}" for each in calls)]))
    return texts
