"""Servers that speak the Model Context Protocol, as a source of tools.

`config` reads which servers there are, `Servers` keeps them connected.
"""

from holdfast.tools.mcp.config import ConfigError, Loaded, Server, Wire, load, read
from holdfast.tools.mcp.servers import Servers
from holdfast.tools.mcp.status import Patience, ServerStatus, State

__all__ = [
    "ConfigError",
    "Loaded",
    "Patience",
    "Server",
    "ServerStatus",
    "Servers",
    "State",
    "Wire",
    "load",
    "read",
]
