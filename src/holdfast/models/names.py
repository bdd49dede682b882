"""From the name of a model to someone who answers.

A name is `provider/model`, such as `ollama/qwen3:8b`, or the address of a server with the model
behind a `#`: `http://127.0.0.1:8080/v1#qwen`. Where the server can be asked it is: what it has
loaded (`discovery`) counts more than what is written anywhere (`catalog`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum

from holdfast.models.base import Model
from holdfast.models.catalog import Known, Rules, WindowFrom, doubt, lookup
from holdfast.models.discovery import Kind, Look, look
from holdfast.models.discovery.places import ollama_at, place_of
from holdfast.models.spoken import Dialect
from holdfast.models.wire import Waits

OLLAMA_WINDOW = 16_384
"""What Ollama is asked to load a model with, if nobody says otherwise. Its own default, 4,096 on
most machines, does not hold the definitions of twenty tools."""
PROGRESS: Mapping[str, object] = {"return_progress": True}
"""llama.cpp then says how far it has read the prompt."""


class Api(Enum):
    CHAT = "chat"
    OLLAMA = "ollama"
    ANTHROPIC = "anthropic"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Provider:
    base: str
    key: tuple[str, ...] = ()
    """Where in the environment its key may stand. Without one, it needs none."""
    api: Api = Api.CHAT
    moved: str = ""
    """What in the environment names another address."""
    fields: Mapping[str, object] = field(default_factory=dict)


PROVIDERS: Mapping[str, Provider] = {
    # on this machine
    "ollama": Provider("http://127.0.0.1:11434", api=Api.OLLAMA, moved="OLLAMA_HOST"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", fields=PROGRESS),
    "vllm": Provider("http://127.0.0.1:8000/v1"),
    "local": Provider("", api=Api.LOCAL),
    # hosted
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",), moved="OPENAI_BASE_URL"),
    "anthropic": Provider(
        "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), Api.ANTHROPIC, "ANTHROPIC_BASE_URL"
    ),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "moonshot": Provider("https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
}


class BadName(ValueError):
    """A name that means no model, in a sentence that says what would."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name, taken apart."""

    name: str
    model: str
    provider: Provider
    base: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A model that can be asked, and what is known of it."""

    model: Model
    known: Known
    warnings: tuple[str, ...] = ()
    """What people must be told, in sentences."""


def named(name: str, env: Mapping[str, str]) -> Named:
    """Who is meant, where they are, and with which key."""
    name = name.strip()
    if name.startswith(("http://", "https://")):
        base, _, model = name.partition("#")
        try:
            place_of(base)
        except ValueError as wrong:
            shown = name if "@" not in name else "What was given"
            raise BadName(f"'{shown}' is no address of a server: {wrong}.") from None
        key = env.get("OPENAI_API_KEY", "") if is_the_base_of(base, env) else ""
        base = with_version(base)  # without a password, which must not be shown
        return Named(f"{base}#{model}" if model else base, model, Provider(base), base, key)
    who, _, model = name.partition("/")
    if who not in PROVIDERS or not model:
        raise BadName(unknown(name, who))
    provider = PROVIDERS[who]
    key = next((env[each] for each in provider.key if env.get(each)), "")
    base = moved(provider, env)
    if provider.key and not key and base == provider.base:
        raise BadName(f"'{name}' needs a key: set {' or '.join(provider.key)} in the environment.")
    return Named(name, model, provider, base, key)


def unknown(name: str, who: str) -> str:
    if who in PROVIDERS:
        return f"'{name}' names no model: write {who}/ and the model behind it."
    close = get_close_matches(who, PROVIDERS, n=1)
    meant = f" Did you mean {close[0]}/{name.partition('/')[2] or '...'}?" if close else ""
    known = ", ".join(PROVIDERS)
    return (
        f"'{name}' is no name of a model: write provider/model or http://host:port/v1#model.{meant} "
        f"Providers: {known}."
    )


def moved(provider: Provider, env: Mapping[str, str]) -> str:
    """The address of a provider, which the environment may change."""
    given = env.get(provider.moved, "").strip() if provider.moved else ""
    if not given:
        return provider.base
    try:
        return ollama_at(given).url if provider.api is Api.OLLAMA else checked(given)
    except ValueError as wrong:
        raise BadName(f"{provider.moved} cannot be used: {wrong}.") from None


def checked(url: str) -> str:
    place_of(url)
    return url.rstrip("/")


def with_version(base: str) -> str:
    """Where the API is, for an address that names only the server."""
    place = place_of(base)
    return f"{place.url}{place.api}"


def is_the_base_of(base: str, env: Mapping[str, str]) -> bool:
    """A key goes nowhere but to the server it was set for."""
    return base.rstrip("/") == env.get("OPENAI_BASE_URL", "").strip().rstrip("/")


# --- opening ------------------------------------------------------------------------------------


async def opened(
    name: str,
    env: Mapping[str, str],
    rules: Rules,
    *,
    window: int | None = None,
    fields: Mapping[str, object] | None = None,
    waits: Waits | None = None,
    within: float = 3.0,
) -> Opened:
    """The model of this name. `window` and `fields` are the user's wishes: how large a window is
    to be used, what goes into every request. A server on this machine is asked what it has."""
    who = named(name, env)
    if who.provider.api is Api.LOCAL:
        from holdfast.models.local import opened_local  # the engine is an extra

        return await opened_local(who.model, rules, window=window, fields=fields, waits=waits)
    seen = Look(server=None)
    if not who.provider.key:
        seen = await look(who.base, who.model, within, key=who.key)
        if not who.model and seen.model is None:
            raise BadName(seen.problem or several_models(who.name, seen))
    model = who.model or (seen.model.name if seen.model else "")
    known = known_of(model, rules, seen, window, asks_ollama=is_ollama(who, seen))
    warnings = tuple(filter(None, (seen.problem, doubt(known) if not who.provider.key else "")))
    client = client_of(who, model, known, seen, fields or {}, waits)
    return Opened(model=client, known=known, warnings=warnings)


def several_models(name: str, seen: Look) -> str:
    offered: Iterable[str] = (each.name for each in seen.server.models) if seen.server else ()
    names = ", ".join(offered) or "none"
    return f"'{name}' does not say which model is meant; the server has: {names}. Add #name."


def is_ollama(who: Named, seen: Look) -> bool:
    """Whether it is spoken to in its own words, also where only its address was given: through
    the API it shares with others it would cut prompts in silence."""
    kind = seen.server.kind if seen.server else None
    return who.provider.api is Api.OLLAMA or kind is Kind.OLLAMA


def known_of(
    model: str, rules: Rules, seen: Look, window: int | None, *, asks_ollama: bool
) -> Known:
    """What is known, with the word of the server above that of the catalogue."""
    offer = seen.model
    loaded = offer.window if offer else None
    known = lookup(model, rules, settings=window, server=loaded)
    if asks_ollama and known.window_from not in (WindowFrom.SETTINGS, WindowFrom.SERVER):
        # It loads a model with the window it is asked for, so with a server this is no guess.
        made_for = (offer.trained if offer else None) or known.window
        known = replace(known, window=min(OLLAMA_WINDOW, made_for))
        if seen.server is not None:
            known = replace(known, window_from=WindowFrom.SERVER)
    if offer is None:
        return known
    if offer.tools and known.tools is False:  # a template that has them is the better witness
        known = replace(known, dialect=None)
    can = {name: getattr(offer, name) for name in ("tools", "vision", "reasoning")}
    known = replace(known, **{name: value for name, value in can.items() if value is not None})
    if offer.tools is False:
        # These hold a model to a schema, so that even a small one writes calls that can be read.
        holds = seen.server is not None and seen.server.kind is not Kind.OTHER
        return replace(known, dialect=Dialect.JSON if holds else Dialect.ACTIONS)
    return known


def client_of(
    who: Named,
    model: str,
    known: Known,
    seen: Look,
    fields: Mapping[str, object],
    waits: Waits | None,
) -> Model:
    kind = seen.server.kind if seen.server else None
    if is_ollama(who, seen):
        from holdfast.models.ollama import Ollama

        base = seen.server.url if seen.server else who.base
        return Ollama(
            base, model, name=who.name, key=who.key, options=fields, speaks=known.dialect,
            window=known.window, prices=known.prices, waits=waits,
        )  # fmt: skip
    if who.provider.api is Api.ANTHROPIC:
        from holdfast.models.anthropic import Anthropic

        return Anthropic(
            who.base, model, name=who.name, key=who.key, fields=fields, prices=known.prices,
            window=known.window, waits=waits,
        )  # fmt: skip
    from holdfast.models.chat import Chat

    extra = PROGRESS if kind is Kind.LLAMA_CPP else who.provider.fields
    return Chat(
        who.base, model, name=who.name, key=who.key, fields={**extra, **fields},
        speaks=known.dialect, window=known.window, prices=known.prices, waits=waits,
    )  # fmt: skip
