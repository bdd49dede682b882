"""What a model is shown of something too long: a piece of it, which says that it is one.

Texts are cut by characters, never inside one, nor inside what is drawn as one. Arguments stay
the text of a JSON object however short they get, since servers refuse a history with any other.
"""

from collections.abc import Callable
from unicodedata import ucd_3_2_0  # this version is the same in every Python

from holdfast.core.jsontext import DEEPEST, NOTICE, dumped, json_object, one_line
from holdfast.core.messages import clean
from holdfast.core.tools import Keep


def cut(text: str, cap: int, keep: Keep = Keep.HEAD, more: str = "") -> str:
    """`cap` characters of `text` and a line with its whole length; `text` itself if it fits.

    `more` is a sentence for inside the notice, such as how to read the rest.
    """
    cap = max(cap, 0)
    if len(text) <= cap:
        return text
    ending = f" of {len(text)} chars{'. ' if more else ''}{more}]"
    if cap == 0:
        return f"{NOTICE}first 0{ending}"
    match keep:
        case Keep.HEAD:
            head = text[: seam(text, cap)]
            return f"{head}\n{NOTICE}first {len(head)}{ending}"
        case Keep.TAIL:
            tail = text[seam(text, len(text) - cap, step=1) :]
            return f"{NOTICE}last {len(tail)}{ending}\n{tail}"
        case Keep.ENDS:
            head = text[: seam(text, cap - cap // 2)]
            tail = text[seam(text, len(text) - cap // 2, step=1) :]
            return f"{head}\n{NOTICE}first {len(head)} and last {len(tail)}{ending}\n{tail}"


def digest_arguments(arguments: str, room: int) -> str:
    """The arguments of a call as `key=value, key=value`: one line of at most `room` characters."""
    try:
        pairs = [(one_line(key), one_line(item)) for key, item in json_object(arguments).items()]
    except ValueError:
        return clean(middle_cut(one_line(arguments), room))

    def line(longest: int) -> str:
        return ", ".join(f"{key}={middle_cut(value, longest)}" for key, value in pairs)

    if len(whole := line(room)) <= room:
        return clean(whole)
    longest = largest(lambda size: len(line(size)) <= room, 8, room)
    return clean(middle_cut(line(longest), room))


def shorten_arguments(arguments: str, cap: int) -> str:
    """`arguments` as the text of a JSON object of at most `cap` characters, and 40 in any case.

    Long strings are cut first and name their length; then what is nested gives way, and last the
    later keys. What is not the text of a JSON object becomes `{}`.
    """
    cap = max(cap, 40)
    try:
        whole = json_object(arguments)
        return arguments if len(arguments) <= cap else shortened_object(whole, cap)
    except ValueError:
        return "{}"


def shortened_object(whole: dict[str, object], cap: int) -> str:
    def nested(depth: int, longest: int) -> str:
        return dumped(shortened(whole, longest, depth))

    def flat(keys: int) -> str:
        first = {key: shortened(whole[key], 0, 0) for key in list(whole)[:keys]}
        return dumped({**first, "…": f"{len(whole) - keys} more"})

    depth = next((depth for depth in (DEEPEST, 3, 2, 1) if len(nested(depth, 0)) <= cap), 0)
    if depth:
        return nested(depth, largest(lambda longest: len(nested(depth, longest)) <= cap, 0, cap))
    return flat(largest(lambda keys: len(flat(keys)) <= cap, 0, len(whole) - 1))


def shortened(value: object, longest: int, depth: int) -> object:
    """`value` with strings of at most about `longest` characters and `depth` levels of nesting."""
    match value:
        case str():
            notice = f"[... {len(value)} chars]"
            if len(value) <= max(longest, len(notice)):
                return value
            return value[: seam(value, max(longest - len(notice), 0))] + notice
        case dict() | list() if depth == 0 and value:
            return f"[... {len(value)} {'keys' if isinstance(value, dict) else 'items'}]"
        case dict():
            return {key: shortened(item, longest, depth - 1) for key, item in value.items()}
        case list():
            return [shortened(item, longest, depth - 1) for item in value]
        case _:
            return value


# Where a text may be cut


def seam(text: str, at: int, *, step: int = -1) -> int:
    """The first place from `at` on, in steps, where a cut parts nothing that is drawn as one."""
    for place in range(at, at + 8 * step, step):
        if not is_joined(text, place):
            return place
    return at + step if is_pair(text, at) else at  # an endless pile of marks: cut it anyway


def is_joined(text: str, at: int) -> bool:
    if not 0 < at < len(text) or (after := text[at]) < "\u0300":
        return False
    return (
        is_pair(text, at)
        or ucd_3_2_0.category(after)[0] == "M"  # accents, vowel signs, variation selectors
        or "\u200d" in (text[at - 1], after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0100" <= after <= "\U000e01ef"  # more variation selectors
    )


def is_pair(text: str, at: int) -> bool:
    """Two surrogates around `at` which mean one character."""
    around = text[at - 1 : at + 1] if at > 0 else ""
    return len(around) == 2 and "\ud800" <= around[0] < "\udc00" <= around[1] <= "\udfff"


def middle_cut(text: str, room: int) -> str:
    """`text`, or both its ends with an ellipsis between, in at most `room` characters."""
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    tail = (room - 1) // 2
    head = text[: seam(text, room - 1 - tail)]
    return f"{head}…{text[seam(text, len(text) - tail, step=1) :]}"


def largest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number from `low` to `high` that fits; `low` if none does."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
