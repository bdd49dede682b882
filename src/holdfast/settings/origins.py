"""Where a value comes from, and the sentences that say so."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Layer(IntEnum):
    """Who may say something, the strongest last."""

    DEFAULT = 0
    PROFILE = 1
    USER = 2
    PROJECT = 3
    ENVIRONMENT = 4
    FLAG = 5


@dataclass(frozen=True, slots=True)
class Origin:
    layer: Layer
    where: str = ""
    """The file, the variable, the profile or the flag."""
    line: int | None = None
    also: tuple["Origin", ...] = ()
    """The weaker ones, of a list to which every layer adds."""

    def __str__(self) -> str:
        words = {
            Layer.DEFAULT: "the default",
            Layer.PROFILE: f"the profile {self.where}",
            Layer.USER: f"the user file {self.where}",
            Layer.PROJECT: f"the project file {self.where}",
            Layer.ENVIRONMENT: f"the variable {self.where}",
            Layer.FLAG: f"the flag {self.where}",
        }
        line = "" if self.line is None else f", line {self.line}"
        return " and ".join((words[self.layer] + line, *map(str, self.also)))


DEFAULT = Origin(Layer.DEFAULT)


class BadSettings(ValueError):
    """Settings that cannot be used: a sentence for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
