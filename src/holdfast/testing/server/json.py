"""JSON as the server writes it: UTF-8 as it is, and half a surrogate pair as its escape."""

import json


def encoded(value: object, *, spaced: bool = False) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    return text.encode("utf-8", "backslashreplace")  # which JSON happens to write the same way


def unwrapped(arguments: object) -> object:
    """The object in the text of one; what holds none stays as it is."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments
