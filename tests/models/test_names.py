"""Names of models: who is meant, what is known of them, and what people are told."""

import pytest
from inline_snapshot import snapshot

from holdfast.models.anthropic import Anthropic
from holdfast.models.catalog import WindowFrom, rules
from holdfast.models.chat import Chat
from holdfast.models.names import PROVIDERS, Api, BadName, named, opened
from holdfast.models.ollama import Ollama
from holdfast.models.spoken import Dialect
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import says
from holdfast.testing.server import Kind
from tests.models.asking import outcome, request

KEYS = {name: "s3cret" for provider in PROVIDERS.values() for name in provider.key}


@pytest.mark.parametrize(
    ("name", "env", "model", "base"),
    [
        ("ollama/qwen3:8b", {}, "qwen3:8b", "http://127.0.0.1:11434"),
        ("ollama/hf.co/a/b:Q4", {"OLLAMA_HOST": "box"}, "hf.co/a/b:Q4", "http://box:11434"),
        ("llamacpp/any", {}, "any", "http://127.0.0.1:8080/v1"),
        ("openrouter/qwen/qwen3", KEYS, "qwen/qwen3", "https://openrouter.ai/api/v1"),
        ("openai/gpt", {"OPENAI_BASE_URL": "http://box/v1/"}, "gpt", "http://box/v1"),
        ("http://box:1/v1#m", {}, "m", "http://box:1/v1"),
        ("http://box:1", {}, "", "http://box:1/v1"),
        ("http://box:1/v1/#a/b#c", {}, "a/b#c", "http://box:1/v1"),
        ("https://box/openai/deployments/x#m", {}, "m", "https://box/openai/deployments/x"),
    ],
)
def test_a_name_says_who_is_meant_and_where(
    name: str, env: dict[str, str], model: str, base: str
) -> None:
    meant = named(name, env)

    assert (meant.model, meant.base) == (model, base)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_can_be_named(provider: str) -> None:
    meant = named(f"{provider}/some-model", KEYS)

    assert meant.model == "some-model"
    assert "s3cret" not in repr(meant)
    assert bool(meant.key) == bool(PROVIDERS[provider].key)


@pytest.mark.parametrize(
    ("name", "env", "sentence"),
    [
        (
            "qwen3:8b",
            {},
            snapshot(
                "'qwen3:8b' is no name of a model: write provider/model or http://host:port/v1#model. Providers: ollama, lmstudio, llamacpp, vllm, local, openai, anthropic, openrouter, gemini, mistral, deepseek, groq, xai, together, fireworks, cerebras, moonshot."
            ),
        ),
        (
            "olama/qwen3",
            {},
            snapshot(
                "'olama/qwen3' is no name of a model: write provider/model or http://host:port/v1#model. Did you mean ollama/qwen3? Providers: ollama, lmstudio, llamacpp, vllm, local, openai, anthropic, openrouter, gemini, mistral, deepseek, groq, xai, together, fireworks, cerebras, moonshot."
            ),
        ),
        (
            "ollama/",
            {},
            snapshot("'ollama/' names no model: write ollama/ and the model behind it."),
        ),
        (
            "openai/gpt-5",
            {},
            snapshot("'openai/gpt-5' needs a key: set OPENAI_API_KEY in the environment."),
        ),
        (
            "gemini/flash",
            {},
            snapshot(
                "'gemini/flash' needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY in the environment."
            ),
        ),
        (
            "http://#m",
            {},
            snapshot(
                "'http://#m' is no address of a server: it must begin with http:// or https:// and name a host."
            ),
        ),
        (
            "ollama/x",
            {"OLLAMA_HOST": "ftp://x"},
            snapshot(
                "OLLAMA_HOST cannot be used: it must begin with http:// or https:// and name a host."
            ),
        ),
    ],
)
def test_a_name_that_means_nobody_is_answered_with_what_would(
    name: str, env: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BadName) as wrong:
        named(name, env)

    assert str(wrong.value) == sentence


async def test_a_key_goes_only_to_the_server_it_was_set_for(model_server: StartsServers) -> None:
    one, other = model_server(says("Hi.")), model_server(says("Hi."))
    env = {"OPENAI_API_KEY": "s3cret", "OPENAI_BASE_URL": f"{one.url}/v1"}

    for server in (one, other):
        found = await opened(f"{server.url}/v1#test-model", env, rules())
        assert await outcome(found.model, request()) == "'Hi.'"
        await found.model.aclose()

    assert one.chats[0].headers["authorization"] == "Bearer s3cret"
    assert not [each for each in other.received if "authorization" in each.headers]


@pytest.mark.parametrize("kind", [Kind.LLAMA_CPP, Kind.LM_STUDIO, Kind.VLLM])
async def test_the_window_that_a_server_has_loaded_is_used(
    kind: Kind, model_server: StartsServers
) -> None:
    server = model_server(kind=kind, window=5_000, model="qwen3-8b")

    found = await opened(f"{server.url}/v1#qwen3-8b", {}, rules())

    assert isinstance(found.model, Chat)
    assert (found.known.window, found.known.window_from) == (5_000, WindowFrom.SERVER)
    assert found.model.window == 5_000
    assert found.warnings == ()
    await found.model.aclose()


async def test_the_users_word_is_above_that_of_the_server(model_server: StartsServers) -> None:
    server = model_server(window=5_000)

    found = await opened(f"{server.url}/v1#test-model", {}, rules(), window=3_000)

    assert (found.known.window, found.known.window_from) == (3_000, WindowFrom.SETTINGS)
    await found.model.aclose()


async def test_a_server_with_one_model_needs_no_name_of_it(model_server: StartsServers) -> None:
    server = model_server(says("Hi."), model="the-only-one")

    found = await opened(server.url, {}, rules())

    assert await outcome(found.model, request()) == "'Hi.'"
    body = server.chats[0].body
    assert isinstance(body, dict)
    assert body["model"] == "the-only-one"
    await found.model.aclose()


async def test_ollama_is_asked_for_a_window_and_told_to_refuse_more(
    model_server: StartsServers,
) -> None:
    server = model_server(says("Hi."), kind=Kind.OLLAMA, window=4096, model="qwen3:8b")

    found = await opened("ollama/qwen3:8b", {"OLLAMA_HOST": server.url}, rules(), window=6_000)

    assert isinstance(found.model, Ollama)
    assert await outcome(found.model, request()) == "'Hi.'"
    body = server.chats[0].body
    assert isinstance(body, dict)
    assert body["options"]["num_ctx"] == 6_000
    assert (body["truncate"], body["shift"]) == (False, False)
    await found.model.aclose()


async def test_a_server_that_is_not_there_is_named_and_the_catalogue_serves() -> None:
    found = await opened("http://127.0.0.1:9/v1#mystery", {}, rules(), within=1)

    assert (found.known.window, found.known.window_from) == (8_192, WindowFrom.ASSUMED)
    assert found.warnings == snapshot(
        (
            "The server at http://127.0.0.1:9 is not running.",
            "The window of 'mystery' is not known; 8192 tokens are assumed. Set it in the settings, or in your own catalogue of models with exact = [\"mystery\"] and window = the tokens it can read.",
        )
    )
    await found.model.aclose()


async def test_without_a_server_and_without_a_model_there_is_only_a_sentence() -> None:
    with pytest.raises(BadName, match="127.0.0.1:9"):
        await opened("http://127.0.0.1:9", {}, rules(), within=1)


async def test_each_provider_is_spoken_to_in_its_own_way() -> None:
    found = await opened("anthropic/claude-x", KEYS, rules())

    assert PROVIDERS["anthropic"].api is Api.ANTHROPIC
    assert isinstance(found.model, Anthropic)
    await found.model.aclose()


async def test_a_model_whose_template_has_no_tools_is_held_to_a_schema(
    model_server: StartsServers,
) -> None:
    server = model_server(model="smollm2", tools=False)

    found = await opened(f"{server.url}/v1#smollm2", {}, rules())

    assert found.known.dialect is Dialect.JSON
    await found.model.aclose()
