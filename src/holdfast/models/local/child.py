"""The child: llama.cpp with its own HTTP server, on this machine only, until stdin ends.

One line of JSON comes in, the order; one goes out when the model is loaded, the address. Then it
waits for the end of stdin, which comes when the parent closes it or dies, however it dies. The key
comes in the order and not on the command line, where every user of the machine could read it.
Run by its path, it imports nothing of ours.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
ERRORS = 1
"""How much the engine writes to its log: so little that it need not be bounded."""


def main() -> int:
    die_with_parent()
    # Whatever the engine prints must not be taken for our line.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.loads(sys.stdin.readline() or "{}")
    if not order or is_orphan(order["parent"]):
        return 0
    try:
        server = serve(order)
    except Exception as wrong:  # the parent tells people what is in the log
        sys.stderr.write(f"{type(wrong).__name__}: {wrong}\n")
        return 1
    told.write(json.dumps({"address": server.listening_address}) + "\n")
    told.flush()
    sys.stdin.read()
    os._exit(0)  # to end in order, the engine would first finish the reply it is writing


def serve(order: dict[str, Any]) -> Any:  # the engine has no types
    engine = importlib.import_module("xllamacpp")
    given = engine.CommonParams()
    given.model.path = order["weights"]
    given.n_ctx = order["window"]
    for threads in (given.cpuparams, given.cpuparams_batch):
        threads.n_threads = order["threads"]
        threads.poll = 0  # threads that spin while they wait take the cores from each other
    given.n_parallel = 1
    given.hostnames = ["127.0.0.1"]
    given.port = 0
    given.api_keys = [order["key"]]
    given.offline = True
    given.ui = False
    given.cache_ram_mib = 0  # it would keep the prompts of other sessions, up to 8 GB of them
    given.fit_params = False  # it would load the file twice to see what fits a graphics card
    given.verbosity = ERRORS
    return engine.Server(given)


def die_with_parent() -> None:
    """Without this the end of stdin would do, but nothing of ours runs while the engine loads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def is_orphan(parent: int) -> bool:
    """Whether the parent died before it could take us with it. Elsewhere than on Linux there may
    be a launcher between us."""
    return sys.platform == "linux" and os.getppid() != parent


if __name__ == "__main__":
    sys.exit(main())
