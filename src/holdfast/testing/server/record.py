"""What came to the server, in order, and waiting for more of it from another thread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Condition
from typing import Any


@dataclass(slots=True, eq=False)
class Received:
    """One request. What is known only later is filled in by the server."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Their names in lower case."""
    body: Any
    """The JSON in it; None if there is none."""
    raw: bytes
    complaints: tuple[str, ...] = ()
    """What the strictest of servers would not take, a sentence each."""
    is_chat: bool = False
    """It asks for a reply."""
    tokens: int = 0
    """Its size, as this server counts; 0 of a request that asks for no reply."""
    cached: int = 0
    """How many of them, from the first on, were those of the request before."""
    answer: str = ""
    """What it is answered, in a few words; empty until that is decided."""
    ended: bool = False
    """The answer is over, to its end or not."""
    hung_up: bool = False
    """The client closed the connection before the end of the answer."""


@dataclass
class Record:
    requests: list[Received] = field(default_factory=list)
    _changed: Condition = field(default_factory=Condition)

    def add(self, received: Received) -> None:
        with self._changed:
            self.requests.append(received)
            self._changed.notify_all()

    def answered(self, received: Received, answer: str) -> None:
        with self._changed:
            received.answer = answer
            self._changed.notify_all()

    def ended(self, received: Received, *, hung_up: bool) -> None:
        with self._changed:
            received.ended, received.hung_up = True, hung_up
            self._changed.notify_all()

    def wait_for(self, predicate: Callable[[], object], seconds: float) -> None:
        def holds() -> object:
            try:
                return predicate()
            except IndexError:  # the request it looks at has not come yet
                return False

        with self._changed:
            if not self._changed.wait_for(holds, seconds):
                raise TimeoutError(f"it did not come true within {seconds:g} s; {self.told()}")

    def told(self) -> str:
        lines = [told(each) + ", but it hung up" * each.hung_up for each in self.requests]
        return "\n  ".join(("the server was asked:", *lines)) if lines else "nobody asked anything"


def told(received: Received) -> str:
    """One line about a request: what came, and what it is answered."""
    size = f" ({received.tokens} tokens)" if received.tokens else ""
    return f"{received.method} {received.path}{size}: {received.answer or 'no answer yet'}"
