"""How it stands with a server of tools: what people are told, and how patient we are with it."""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    OFF = "off"
    """Disabled, or no longer wanted."""
    STARTING = "starting"
    CONNECTED = "connected"
    WAITING = "waiting"
    """It failed, and will be started again after a pause."""
    GIVEN_UP = "given up"
    """It failed too often. A call of one of its tools, or a wish, starts it again."""


SETTLED = (State.OFF, State.CONNECTED, State.WAITING, State.GIVEN_UP)
"""States in which waiting for a server any longer is of no use: it has connected or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """For people. Holds no secret of the server."""

    server: str
    state: State
    text: str = ""
    """What happened, in a sentence or two."""
    log: str = ""
    """What the server itself said, as `level: message`; the state is as it was."""
    stderr: str = ""
    """The end of what it wrote there, where it failed."""
    tools: int = 0
    failures: int = 0
    """In a row; none once it has been up for a while."""
    pause: float = 0.0
    """Seconds until it is started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """With a server that fails."""

    first_pause: float = 1.0
    """Seconds; each pause is twice the one before, give or take a quarter."""
    longest_pause: float = 30.0
    failures: int = 6
    """In a row, then it is given up: after about a minute."""
    steady: float = 30.0
    """Seconds of being up after which its failures are forgotten."""
    call: float = 15.0
    """Seconds a call waits for a server that is not connected."""

    def pause(self, failures: int, jitter: float) -> float:
        """Before the start that follows so many failures; `jitter` is between 0 and 1, so that
        servers that fell together do not get up together."""
        pause = min(self.first_pause * 2.0 ** (failures - 1), self.longest_pause)
        return pause * (0.75 + jitter / 2)
