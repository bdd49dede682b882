"""`replace` for the values of the heart, four times as fast as that of `dataclasses`.

A round makes some thirty changed copies of values with up to thirty fields. The standard one reads
every field by name and builds the value anew, checks and all; this one copies the slots with code
that is made once for each class. Classes that check themselves go the long way.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dataclasses import replace as replace  # so that the names and types of fields are checked
else:

    def replace(value, /, **changes):
        made = MADE.get(type(value)) or made_for(type(value))
        if made is None:
            return dataclasses.replace(value, **changes)
        copy, slots = made
        new = copy(value)
        for name, change in changes.items():
            slots[name](new, change)
        return new


Slots: TypeAlias = dict[str, Callable[[object, object], None]]
MADE: dict[type, tuple[Callable[[Any], Any], Slots]] = {}


def made_for(kind: type) -> tuple[Callable[[Any], Any], Slots] | None:
    """A function that copies a value of this class, and one for each field that sets it."""
    if hasattr(kind, "__post_init__") or "__slots__" not in vars(kind):
        return None
    slots: Slots = {each.name: vars(kind)[each.name].__set__ for each in dataclasses.fields(kind)}
    lines = [f"    set_{name}(new, old.{name})" for name in slots]
    code = "\n".join(["def copy(old):", "    new = make(kind)", *lines, "    return new"])
    scope: dict[str, Any] = {f"set_{name}": slot for name, slot in slots.items()}
    scope |= {"make": object.__new__, "kind": kind}
    exec(code, scope)
    MADE[kind] = scope["copy"], slots
    return MADE[kind]
