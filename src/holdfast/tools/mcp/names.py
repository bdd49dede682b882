"""What the model calls the tools of a server: `server__tool`, in letters that every provider takes.

The name of a tool is the same whenever its server lists the same tools, in whatever order, since
a session may be picked up again. How a model's spelling finds a tool is left to the core.
"""

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

LONGEST = 64
"""Characters of a name that providers take."""
PREFIX = 24
"""Characters of it that the server may use up."""
JOINT = "__"
STRANGE = re.compile(r"[^a-zA-Z0-9_-]")


def prefixes(servers: Iterable[str]) -> dict[str, str]:
    """The prefix of each server. None holds the joint, or ends with half of one: so tools of two
    servers never get the same name."""
    return unique({server: prefix(server) for server in servers}, PREFIX)


def prefix(server: str) -> str:
    bare = re.sub("_+", "_", STRANGE.sub("_", server)).strip("_")
    return shortened(server, bare or "server", PREFIX)


def names(prefix: str, tools: Iterable[str]) -> dict[str, str]:
    """The name of each tool of a server."""
    room = LONGEST - len(prefix) - len(JOINT)
    bare = {tool: shortened(tool, STRANGE.sub("_", tool) or "tool", room) for tool in tools}
    return {tool: prefix + JOINT + name for tool, name in unique(bare, room).items()}


def unique(named: dict[str, str], room: int) -> dict[str, str]:
    """The same, but where several would be called alike, all whose name was changed get a mark."""
    count = Counter(named.values())
    return {
        whole: name if count[name] == 1 or name == whole else marked(whole, name, room)
        for whole, name in named.items()
    }


def shortened(whole: str, name: str, room: int) -> str:
    return name if len(name) <= room else marked(whole, name, room)


def marked(whole: str, name: str, room: int) -> str:
    """`name` with a mark that belongs to `whole` alone, in `room` characters."""
    mark = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: room - 9].rstrip('_')}-{mark}"
