"""Sentences about numbers, with the origin of each number added.

The heart says which numbers contradict each other and does not know who gave them; whoever has to
put it right needs to know which file to open.
"""

import re
from collections.abc import Mapping

from holdfast.settings.kinds import GROUPS, KEYS
from holdfast.settings.origins import DEFAULT, Origin

NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
MENTIONED = re.compile(
    rf"a window of (?P<window>\d+)"
    rf"|(?:(?P<group>{'|'.join(sorted(GROUPS))})\.)?(?P<name>[a-z_]+) "
    rf'(?:\((?P<value>{NUMBER})\)|is (?:{NUMBER}|"[a-z-]+"))'
)


def with_origins(
    sentence: str, origins: Mapping[str, Origin], derived: Mapping[str, str] | None = None
) -> str:
    """The sentence of a contradiction. `derived` has words for numbers nobody gave."""
    group = ""

    def source(key: str) -> str:
        if derived and key in derived:
            return derived[key]
        return f"from {origins.get(key, DEFAULT)}"

    def named(match: re.Match[str]) -> str:
        nonlocal group
        if match["window"] is not None:
            return f"{match[0]} ({source('budget.window')})"
        group = match["group"] or group
        key = f"{group}.{match['name']}"
        if key not in KEYS:
            return match[0]
        if match["value"] is not None:
            return f"{match[0][:-1]}, {source(key)})"
        return f"{match[0]} ({source(key)})"

    return MENTIONED.sub(named, sentence)
