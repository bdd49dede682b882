"""The names of faults and of their variants, and which one is meant by a name that is nearly one."""

from collections.abc import Iterable
from difflib import get_close_matches


def dashed(*words: str) -> str:
    """As it is written on the command line."""
    return "-".join(words).replace("_", "-").replace(" ", "-").lower()


def meant(given: str, names: Iterable[str]) -> str:
    """The one of `names` that is given, with blanks or with dashes; else a `ValueError`."""
    known = {dashed(name): name for name in names}
    if dashed(given) not in known:
        close = get_close_matches(dashed(given), known)
        way_out = f"Did you mean: {', '.join(close)}?" if close else f"Known: {', '.join(known)}."
        raise ValueError(f"There is no {given!r}. {way_out}")
    return known[dashed(given)]
