"""What each kind of server tells of itself, and where.

All of it comes from elsewhere: whatever does not have the expected shape counts as not said.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import quote

import anyio

from holdfast.models.discovery.http import STRANGE, NoAnswer, json_at
from holdfast.models.discovery.offers import Kind, Offered, Server
from holdfast.models.discovery.places import Place

MOST_MODELS = 2_000
"""Of one server. Real lists have some hundreds, hostile ones as many as fit into an answer."""
MOST_SHOWN = 32
"""Models of one Ollama that are asked about one by one; newer ones tell of all in their list."""
LARGEST_WINDOW = 1_000_000_000
LONGEST_NAME = 300
OWNERS = {
    "library": Kind.OLLAMA,
    "organization_owner": Kind.LM_STUDIO,
    "llamacpp": Kind.LLAMA_CPP,
    "vllm": Kind.VLLM,
    **dict.fromkeys(("openai", "system"), Kind.OTHER),
    "koboldcpp": Kind.OTHER,  # it also plays Ollama
}
"""How a server gives itself away in its list of models."""

Fields: TypeAlias = Mapping[str, object]


class Sighting:
    """One place while it is asked. It may end at any step, and keeps what is known so far."""

    def __init__(self, place: Place, model: str = "", key: str = "") -> None:
        self.place, self.model, self.key = place, model, key
        self.server: Server | None = None

    async def ask(self, path: str, body: Fields | None = None) -> object:
        return await json_at(self.place, path, body, self.key)

    async def ask_for_list(self, path: str, key: str) -> list[Fields]:
        answer = await self.ask(path)
        # An empty list is null where a server was written in Go.
        if not isinstance(answer, dict) or not isinstance(answer.get(key, 0), list | None):
            raise NoAnswer(STRANGE)
        return objects(answer, key)

    def take(self, kind: Kind, models: Iterable[Offered | None], version: str = "") -> None:
        self.server = Server(
            kind=kind,
            url=self.place.url,
            api=self.place.url + self.place.api,
            version=version,
            models=tuple(filter(None, models)),
        )

    @property
    def models(self) -> tuple[Offered, ...]:
        return self.server.models if self.server else ()

    def put(self, name: str, model: Offered | None) -> None:
        """Instead of what was known of it; None leaves it out."""
        if server := self.server:
            models = (model if each.name == name else each for each in server.models)
            self.take(server.kind, models, server.version)


# --- any server ---------------------------------------------------------------------------------


async def models(seen: Sighting) -> Kind | None:
    """Takes the list that all servers have. The kind of the server, if that gives it away."""
    entries = await seen.ask_for_list(f"{seen.place.api}/models", "data")
    kind = next((OWNERS[by] for each in entries if (by := text(each, "owned_by")) in OWNERS), None)
    seen.take(kind or Kind.OTHER, map(listed, entries))
    return kind


def listed(entry: Fields) -> Offered | None:
    """A model in a list such as OpenAI's, with what some servers add to it."""
    name = text(entry, "id")
    if not name or re.search("embed|rerank", name.lower()):
        return None
    meta, state = inner(entry, "meta"), text(inner(entry, "status"), "value")
    window = size(entry, "max_model_len") or size(meta, "n_ctx")
    return Offered(
        name=name,
        loaded=state == "loaded" if state else True if window else None,
        window=window,
        trained=size(meta, "n_ctx_train") or size(entry, "context_length"),
        tools=among(entry, "supported_parameters", "tools"),
        vision=among(inner(entry, "architecture"), "input_modalities", "image"),
    )


# --- Ollama -------------------------------------------------------------------------------------


async def ollama(seen: Sighting) -> None:
    version = text(await seen.ask("/api/version"), "version")
    if not version:
        raise NoAnswer(STRANGE)
    running = await seen.ask_for_list("/api/ps", "models")
    windows = {text(each, "name"): size(each, "context_length") for each in running}
    entries = await seen.ask_for_list("/api/tags", "models")
    seen.take(Kind.OLLAMA, (in_tags(each, windows) for each in entries), version)
    said = {text(each, "name") for each in entries if "capabilities" in each}
    unsaid = [each for each in seen.models if each.name not in said]
    if seen.model:
        unsaid = [each for each in unsaid if each.name in (seen.model, f"{seen.model}:latest")]
    async with anyio.create_task_group() as group:
        for each in sorted(unsaid, key=lambda model: not model.loaded)[:MOST_SHOWN]:
            group.start_soon(show, seen, each)


def in_tags(entry: Fields, windows: Mapping[str, int | None]) -> Offered | None:
    name, details = text(entry, "name"), inner(entry, "details")
    if not name or "bert" in text(details, "family"):  # those only embed
        return None
    return able(
        Offered(
            name=name,
            loaded=name in windows,
            window=windows.get(name),
            trained=size(details, "context_length"),
        ),
        entry,
    )


async def show(seen: Sighting, model: Offered) -> None:
    with suppress(NoAnswer):
        answer = await seen.ask("/api/show", {"model": model.name})
        info = inner(answer, "model_info")
        sizes = [size(info, key) for key in info if key.endswith(".context_length")]
        trained = next(filter(None, sizes), model.trained)
        seen.put(model.name, able(replace(model, trained=trained), answer))


def able(model: Offered, entry: object) -> Offered | None:
    """With what the capabilities in `entry` say; None if the model is not for chatting."""
    if among(entry, "capabilities", "completion") is False:
        return None
    return replace(
        model,
        tools=among(entry, "capabilities", "tools"),
        vision=among(entry, "capabilities", "vision"),
        reasoning=among(entry, "capabilities", "thinking"),
    )


# --- LM Studio ----------------------------------------------------------------------------------


async def lm_studio(seen: Sighting) -> None:
    try:
        entries = await seen.ask_for_list("/api/v1/models", "models")
        seen.take(Kind.LM_STUDIO, (model for each in entries for model in instances(each)))
    except NoAnswer:  # before version 0.4
        entries = await seen.ask_for_list("/api/v0/models", "data")
        if not entries or not all("state" in each for each in entries):
            raise NoAnswer(STRANGE) from None
        seen.take(Kind.LM_STUDIO, map(in_old_list, entries))


def instances(entry: Fields) -> list[Offered]:
    """A model once for each time it is loaded, or once if it is not."""
    if text(entry, "type") == "embedding" or not (name := text(entry, "key")):
        return []
    abilities = inner(entry, "capabilities")
    model = Offered(
        name=name,
        loaded=False,
        trained=size(entry, "max_context_length"),
        tools=flag(abilities, "trained_for_tool_use"),
        vision=flag(abilities, "vision"),
    )
    loaded = [
        replace(model, name=id_, loaded=True, window=size(inner(each, "config"), "context_length"))
        for each in objects(entry, "loaded_instances")
        if (id_ := text(each, "id"))
    ]
    return loaded or [model]


def in_old_list(entry: Fields) -> Offered | None:
    if text(entry, "type") == "embeddings" or not (name := text(entry, "id")):
        return None
    return Offered(
        name=name,
        loaded=text(entry, "state") == "loaded",
        window=size(entry, "loaded_context_length"),
        trained=size(entry, "max_context_length"),
        tools=among(entry, "capabilities", "tool_use"),
        vision=text(entry, "type") == "vlm",
    )


# --- llama.cpp ----------------------------------------------------------------------------------


async def llama_cpp(seen: Sighting) -> None:
    props = await seen.ask("/props")
    if text(props, "role") == "router":
        seen.take(Kind.LLAMA_CPP, seen.models)
        async with anyio.create_task_group() as group:
            for each in seen.models:
                if each.loaded:
                    group.start_soon(routed, seen, each)
        return
    if not inner(props, "default_generation_settings"):
        raise NoAnswer(STRANGE)
    model = next(iter(seen.models), Offered(name=text(props, "model_alias") or "default"))
    seen.take(Kind.LLAMA_CPP, [with_props(model, props)], text(props, "build_info"))


async def routed(seen: Sighting, model: Offered) -> None:
    with suppress(NoAnswer):
        # Only asking must not make the server load anything.
        props = await seen.ask(f"/props?model={quote(model.name, safe='')}&autoload=false")
        seen.put(model.name, with_props(model, props))


def with_props(model: Offered, props: object) -> Offered:
    return replace(
        model,
        loaded=True,
        window=size(inner(props, "default_generation_settings"), "n_ctx") or model.window,
        tools=flag(inner(props, "chat_template_caps"), "supports_tools"),
        vision=flag(inner(props, "modalities"), "vision"),
    )


Way: TypeAlias = Callable[[Sighting], Awaitable[None]]
WAYS: Mapping[Kind, Way] = {
    Kind.OLLAMA: ollama,
    Kind.LM_STUDIO: lm_studio,
    Kind.LLAMA_CPP: llama_cpp,
}


def ways(kind: Kind | None) -> list[Way]:
    """How to ask for more than a list, if the kind is known; else all ways, to be tried in turn.
    A way ends with `NoAnswer` if the server is not of its kind."""
    return [way for of, way in WAYS.items() if kind in (None, of)]


# --- values of the expected shape ---------------------------------------------------------------


def field(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def objects(value: object, key: str) -> list[Fields]:
    values = field(value, key)
    most = values[:MOST_MODELS] if isinstance(values, list) else []
    return [each for each in most if isinstance(each, dict)]


def inner(value: object, key: str) -> Fields:
    found = field(value, key)
    return found if isinstance(found, dict) else {}


def text(value: object, key: str) -> str:
    """Only what can be shown as it is: these come from others, and end up on a terminal."""
    found = field(value, key)
    if not isinstance(found, str) or len(found) > LONGEST_NAME or not found.isprintable():
        return ""
    return found


def size(value: object, key: str) -> int | None:
    found = field(value, key)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 < found <= LARGEST_WINDOW else None


def flag(value: object, key: str) -> bool | None:
    found = field(value, key)
    return found if isinstance(found, bool) else None


def among(value: object, key: str, word: str) -> bool | None:
    found = field(value, key)
    return word in found if isinstance(found, list) else None
