"""The embedded model, `local/…`: no server to install, no network. An extra of the package.

The engine, llama.cpp, is C++ with threads of its own, and may crash or meet a processor it was not
built for. So it runs in a process of its own (`child`), which `engine` starts and ends. `weights` finds the file it
loads, and `model` is what all others see.
"""

from holdfast.models.local.model import Local, opened_local

__all__ = ["Local", "opened_local"]
