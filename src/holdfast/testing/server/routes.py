"""Where a kind of server listens for requests that ask for a reply."""

from collections.abc import Mapping

from holdfast.testing.server.anthropic import ANTHROPIC
from holdfast.testing.server.asked import Api
from holdfast.testing.server.kinds import Kind
from holdfast.testing.server.ollama import OLLAMA
from holdfast.testing.server.openai import OPENAI
from holdfast.testing.server.record import Received

PATHS: Mapping[str, Api] = {
    "/v1/chat/completions": OPENAI,
    "/api/chat": OLLAMA,
    "/v1/messages": ANTHROPIC,
}
SPOKEN: Mapping[Kind, tuple[Api, ...]] = {
    **dict.fromkeys(Kind, (OPENAI,)),
    Kind.LLAMA_CPP: (OPENAI, ANTHROPIC),
    Kind.OLLAMA: (OPENAI, OLLAMA),
    Kind.ANTHROPIC: (ANTHROPIC,),
}


def api_of(kind: Kind, received: Received) -> Api | None:
    """The API by which a reply is asked for; None if it is not asked for one."""
    api = PATHS.get(received.path) if received.method == "POST" else None
    return api if api in SPOKEN[kind] else None
