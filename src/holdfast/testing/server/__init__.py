"""A model server that misbehaves on purpose, over real HTTP, for testing clients and agents.

`faults` has the ways in which it can, `python -m holdfast.testing.server` runs it by hand.
"""

from holdfast.testing.server import faults
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.record import Received
from holdfast.testing.server.server import ModelServer
from holdfast.testing.server.turns import Fault, Turn, first_tool, helpful

__all__ = [
    "Fault",
    "Kind",
    "ModelServer",
    "Received",
    "Turn",
    "faults",
    "first_tool",
    "helpful",
]
