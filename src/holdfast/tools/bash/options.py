"""The words of a command by their kind: its name, its options, and the rest."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from holdfast.tools.bash.words import Word


def file_name(command: str) -> str:
    """`/bin/rm` is `rm`."""
    return PurePosixPath(command).name or command


def has(given: Sequence[Word], letters: str, *names: str) -> bool:
    """Whether one of these options is given: `-r`, `-fr`, `--recursive`, or `--recur`, which
    programs take as well. What is not literal may be one."""
    for word in given:
        if word.value is None:
            if not word.source.startswith(('"', "'")):
                return True
            continue
        if word.value == "--":
            return False
        if word.value.startswith("--"):
            option = word.value[2:].partition("=")[0]
            if option and any(name.startswith(option) for name in names):
                return True
        elif word.value.startswith("-") and set(letters) & set(word.value[1:]):
            return True
    return False


def operands_of(given: Sequence[Word]) -> list[Word]:
    """The words that are no options."""
    found: list[Word] = []
    for at, word in enumerate(given):
        if word.value == "--":
            return found + list(given[at + 1 :])
        if word.value is None or not word.value.startswith("-") or word.value == "-":
            found.append(word)
    return found
