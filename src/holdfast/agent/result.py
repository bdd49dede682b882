"""What came of a run, for those who asked for it."""

from dataclasses import dataclass
from typing import Generic

from typing_extensions import TypeVar

from holdfast.core.ledger import Ledger
from holdfast.core.limits import Spent, StopReason

T = TypeVar("T", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T]):
    text: str
    reason: StopReason
    ledger: Ledger
    """What really ran."""
    usage: Spent
    session_id: str
    output: T | None = None
    """The answer in the shape that was asked for; None if it could not be had."""
    warnings: tuple[str, ...] = ()
    """What the user should know of how it was made."""

    @property
    def answered(self) -> bool:
        """Whether the model answered of its own accord, and was not stopped."""
        return self.reason is StopReason.ANSWERED
