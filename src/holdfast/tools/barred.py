"""Files that the user's rules bar from a call which looks through a whole folder.

A rule such as `read(.env)` refuses a call that names the file. A search names only its folder: it
gets the patterns of these rules, and leaves out what they speak of. `gateway` finds the patterns
for each call, `running` sets them; what a pattern means is `patterns`.
"""

from contextvars import ContextVar

from holdfast.tools.patterns import Kind, Pattern

barred: ContextVar[tuple[str, ...]] = ContextVar("barred", default=())
"""The patterns for the call on whose behalf this task runs."""


def is_barred(path: str, patterns: tuple[str, ...]) -> bool:
    """A pattern speaks of it, or of a folder that it is in."""
    if not patterns:
        return False
    parts = path.rstrip("/").split("/")
    folders = ["/".join(parts[: place + 1]) for place in range(len(parts))]
    return any(Pattern(one).hits(each, Kind.PATH) for one in patterns for each in folders if each)
