"""Files that the user's rules bar from a call which looks through a whole folder.

A rule such as `read(.env)` refuses a call that names the file. A search names only its folder: it
gets the patterns of these rules, and leaves out what they speak of. `gateway` finds the patterns
for each call, `running` sets them; what a pattern means is `patterns`.
"""

from contextvars import ContextVar
from functools import lru_cache

from holdfast.tools.patterns import Kind, Pattern

barred: ContextVar[tuple[str, ...]] = ContextVar("barred", default=())
"""The patterns for the call on whose behalf this task runs."""


def is_barred(path: str, patterns: tuple[str, ...]) -> bool:
    """A pattern speaks of it, or of a folder that it is in."""
    if not patterns:
        return False
    return speaks_of(path, patterns) or is_folder_barred(path.rpartition("/")[0], patterns)


@lru_cache(maxsize=1024)  # a search asks for each file of a folder
def is_folder_barred(path: str, patterns: tuple[str, ...]) -> bool:
    ends = [place for place, letter in enumerate(path) if letter == "/"]
    return any(speaks_of(path[:end], patterns) for end in (*ends, len(path)) if end)


def speaks_of(path: str, patterns: tuple[str, ...]) -> bool:
    return any(Pattern(one).hits(path, Kind.PATH) for one in patterns)
