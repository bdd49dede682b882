"""What was found: servers, and the models they offer."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a server is; the value is the provider in the name of a model."""

    OLLAMA = "ollama"
    LM_STUDIO = "lmstudio"
    LLAMA_CPP = "llamacpp"
    VLLM = "vllm"
    OTHER = "other"
    """Something that speaks OpenAI's API."""

    @property
    def title(self) -> str:
        return TITLES[self]


TITLES = {
    Kind.OLLAMA: "Ollama",
    Kind.LM_STUDIO: "LM Studio",
    Kind.LLAMA_CPP: "llama.cpp",
    Kind.VLLM: "vLLM",
    Kind.OTHER: "The server",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A model that can be asked. None: the server does not say."""

    name: str
    loaded: bool | None = None
    window: int | None = None
    """The tokens it was loaded with: what a request may have. Never what it was trained for."""
    trained: int | None = None
    tools: bool | None = None
    """Whether its chat template has a place for tools."""
    vision: bool | None = None
    reasoning: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    kind: Kind
    url: str
    api: str
    """Where it speaks OpenAI's API: `url` and mostly `/v1`."""
    version: str = ""
    models: tuple[Offered, ...] = ()


@dataclass(frozen=True, slots=True)
class Silent:
    """A place where no model server was found, and why in a few words."""

    kind: Kind
    """Who was expected there."""
    url: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    servers: tuple[Server, ...] = ()
    providers: tuple[str, ...] = ()
    """Hosted ones, for which there is a key."""
    silent: tuple[Silent, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences for people. That nothing runs on a port which we only guessed is none."""

    @property
    def choices(self) -> tuple[tuple[Server, Offered], ...]:
        """What can be picked, the likeliest first: loaded, able to call tools, a larger window."""
        offers = [(server, model) for server in self.servers for model in server.models]
        return tuple(sorted(offers, key=lambda offer: rank(offer[1]), reverse=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one server says, and what it says of one of its models."""

    server: Server | None = None
    model: Offered | None = None
    problem: str = ""
    """A sentence; empty if all is well."""


def rank(model: Offered) -> tuple[bool, int, int]:
    able = {True: 2, None: 1, False: 0}[model.tools]
    return bool(model.loaded), able, model.window or model.trained or 0
