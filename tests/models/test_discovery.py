"""Which servers are there: found in time whatever they do, and believed only where they say so."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from threading import Event, Thread

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models.discovery import (
    Found,
    Kind,
    Look,
    Offered,
    Server,
    Silent,
    discover,
    kinds,
    look,
)
from holdfast.models.discovery.places import DEFAULT, ollama_at, place_of, places
from holdfast.testing.server import Kind as Served
from holdfast.testing.server import ModelServer

TRAINED = 131_072
"""What the models of `ModelServer` say they were trained for."""
IN_VAIN = 0.2
"""Seconds to wait for what will not come."""
A_WHILE = 2.0
"""Seconds in which the others have answered, also on a busy machine, and one has not."""
ENOUGH = 20.0
"""Seconds to wait for what will come: a bound, never reached unless something is wrong."""


def found(
    ports: Mapping[int, Kind], env: Mapping[str, str] | None = None, within: float = ENOUGH
) -> Found:
    async def bounded() -> Found:
        with anyio.fail_after(within + 10):
            return await discover(env or {}, within, ports)

    return anyio.run(bounded)


def seen(url: str, model: str = "", within: float = ENOUGH, key: str = "") -> Look:
    async def bounded() -> Look:
        with anyio.fail_after(within + 10):
            return await look(url, model, within, key=key)

    return anyio.run(bounded)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


class StandIn:
    """A bare socket that answers each path with given bytes, and may do worse than a server."""

    def __init__(self, answers: Mapping[str, object], host: str = "127.0.0.1") -> None:
        self.answers, self.asked, self.heard = answers, list[str](), list[bytes]()
        self.over = Event()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.create_server((host, 0), family=family)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://localhost:{self.port}"
        Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection: socket.socket) -> None:
        with connection:
            try:
                self.heard.append(connection.recv(65_536))
                path = self.heard[-1].decode("latin-1").split(" ")[1]
                self.asked.append(path)
                answer = self.answers.get(path, self.answers.get("*", b"HTTP/1.1 404 No\r\n\r\n"))
                if isinstance(answer, dict):
                    answer = http(json.dumps(answer).encode())
                if isinstance(answer, bytes):
                    connection.sendall(answer)
                elif callable(answer):
                    answer(connection, self.over)
            except (OSError, IndexError):
                pass  # they hung up, or did not speak HTTP

    def close(self) -> None:
        self.over.set()
        self.socket.close()


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
def stand_in() -> Iterator[Callable[..., StandIn]]:
    made: list[StandIn] = []

    def make(answers: Mapping[str, object], host: str = "127.0.0.1") -> StandIn:
        made.append(StandIn(answers, host))
        return made[-1]

    yield make
    for each in made:
        each.close()


Make = Callable[..., StandIn]


# --- what servers say ---------------------------------------------------------------------------

SAID = [
    (
        Served.OLLAMA,
        Kind.OLLAMA,
        "0.12.6",
        Offered(
            name="zebra",
            loaded=True,
            window=4_096,
            trained=TRAINED,
            tools=True,
            vision=False,
            reasoning=False,
        ),
    ),
    (
        Served.LM_STUDIO,
        Kind.LM_STUDIO,
        "",
        Offered(name="zebra", loaded=True, window=4_096, trained=TRAINED, tools=True, vision=False),
    ),
    (
        Served.LLAMA_CPP,
        Kind.LLAMA_CPP,
        "b1-571d0d5",
        Offered(name="zebra", loaded=True, window=4_096, trained=TRAINED, tools=True, vision=False),
    ),
    (Served.VLLM, Kind.VLLM, "", Offered(name="zebra", loaded=True, window=4_096)),
    (Served.LLAMA_CPP_PYTHON, Kind.OTHER, "", Offered(name="zebra")),
    (Served.OPENAI, Kind.OTHER, "", Offered(name="zebra")),
]


@pytest.mark.parametrize(("served", "kind", "version", "model"), SAID)
def test_a_server_on_its_port_is_found_with_what_it_has_loaded(
    served: Served, kind: Kind, version: str, model: Offered
) -> None:
    with ModelServer(kind=served, window=4_096, model="zebra") as server:
        port = port_of(server.url)
        everything = found({port: kind})

    url = f"http://localhost:{port}"
    expected = Server(kind=kind, url=url, api=f"{url}/v1", version=version, models=(model,))
    assert everything == Found(servers=(expected,))


@pytest.mark.parametrize(("served", "kind", "version", "model"), SAID)
def test_a_server_that_is_named_is_known_without_a_hint(
    served: Served, kind: Kind, version: str, model: Offered
) -> None:
    with ModelServer(kind=served, window=4_096, model="zebra") as server:
        url = server.url
        by_root, by_api = seen(url, "zebra"), seen(f"{url}/v1/")

    expected = Server(kind=kind, url=url, api=f"{url}/v1", version=version, models=(model,))
    assert by_root == by_api == Look(server=expected, model=model)


@pytest.mark.parametrize("kind", [Kind.OLLAMA, Kind.LM_STUDIO, Kind.LLAMA_CPP, Kind.VLLM])
def test_a_server_on_the_port_of_another_is_known_for_what_it_is(kind: Kind) -> None:
    with ModelServer(kind=Served.LLAMA_CPP, window=2_048) as server:
        everything = found({port_of(server.url): kind})

    assert [(each.kind, each.models[0].window) for each in everything.servers] == [
        (Kind.LLAMA_CPP, 2_048)
    ]


def test_a_key_is_sent_to_the_server_that_it_was_given_for() -> None:
    with ModelServer(kind=Served.VLLM, window=4_096, key="sk-mine") as server:
        locked, open_ = seen(server.url), seen(server.url, key="sk-mine")
        discovered = found({port_of(server.url): Kind.VLLM}, {"OPENAI_API_KEY": "sk-mine"})

    assert locked == Look(problem=f"The server at {server.url} wants a key, or another one.")
    assert open_.model == Offered(name="test-model", loaded=True, window=4_096)
    assert discovered.servers == ()
    url = f"http://localhost:{port_of(server.url)}"
    assert discovered.problems == (f"vLLM at {url} wants a key, or another one.",)


def test_a_model_that_a_server_does_not_offer_is_named_with_those_it_does() -> None:
    with ModelServer(kind=Served.VLLM, model="zebra") as server:
        looked = seen(server.url, "lion")

    assert (looked.model, looked.problem) == (
        None,
        f"vLLM at {server.url} does not offer 'lion'; it has: zebra.",
    )


def test_llama_cpp_answers_for_its_model_under_any_name() -> None:
    with ModelServer(kind=Served.LLAMA_CPP, model="zebra.gguf", window=512) as server:
        looked = seen(server.url, "lion")

    assert (looked.model and (looked.model.name, looked.model.window), looked.problem) == (
        ("zebra.gguf", 512),
        "",
    )


def tag(name: str, family: str = "llama", **more: object) -> dict[str, object]:
    return {"name": name, "details": {"family": family, **more}}


def test_an_ollama_tells_of_all_its_models_and_offers_those_that_chat(stand_in: Make) -> None:
    chats = ["completion", "tools"]
    shown = {
        "model_info": {"llama.context_length": 131_072, "general.file_type": 2},
        "capabilities": chats,
    }
    server = stand_in(
        {
            "/v1/models": {"data": [{"id": "loaded", "owned_by": "library"}]},
            "/api/version": {"version": "0.32.1"},
            "/api/ps": {"models": [{"name": "loaded:8b", "context_length": 4_096}]},
            "/api/tags": {
                "models": [
                    tag("loaded:8b"),
                    tag("embeds:latest", family="nomic-bert"),
                    {**tag("only-embeds", context_length=512), "capabilities": ["embedding"]},
                    {
                        **tag("newer", context_length=262_144),
                        "capabilities": [*chats, "vision", "thinking"],
                    },
                ]
            },
            "/api/show": shown,
        }
    )

    everything = found({server.port: Kind.OLLAMA})

    loaded = Offered(
        name="loaded:8b",
        loaded=True,
        window=4_096,
        trained=131_072,
        tools=True,
        vision=False,
        reasoning=False,
    )
    newer = Offered(
        name="newer", loaded=False, trained=262_144, tools=True, vision=True, reasoning=True
    )
    assert everything.servers[0].models == (loaded, newer)
    assert server.asked.count("/api/show") == 1


def test_an_ollama_with_models_from_elsewhere_only_is_still_one(stand_in: Make) -> None:
    server = stand_in(
        {
            "/v1/models": {"data": [{"id": "hf.co/them/x:Q4_K_M", "owned_by": "them"}]},
            "/api/version": {"version": "0.32.1"},
            "/api/ps": {"models": []},
            "/api/tags": {"models": [{**tag("hf.co/them/x:Q4_K_M"), "capabilities": []}]},
        }
    )

    everything = found({server.port: Kind.OLLAMA})

    assert [each.kind for each in everything.servers] == [Kind.OLLAMA]


def test_an_lm_studio_tells_of_each_time_a_model_is_loaded(stand_in: Make) -> None:
    able = {"vision": True, "trained_for_tool_use": True}

    def entry(key: str, *windows: int, type: str = "llm") -> dict[str, object]:  # noqa: A002
        loaded = [
            {"id": f"{key}:{number}", "config": {"context_length": each}}
            for number, each in enumerate(windows, 1)
        ]
        more = {"max_context_length": 9_000, "capabilities": able}
        return {"key": key, "type": type, "loaded_instances": loaded, **more}

    server = stand_in(
        {
            "/v1/models": {"data": []},
            "/api/v1/models": {
                "models": [entry("a"), entry("b", 512, 1_024), entry("c", type="embedding")]
            },
        }
    )

    everything = found({server.port: Kind.LM_STUDIO})

    a = Offered(name="a", loaded=False, trained=9_000, tools=True, vision=True)
    b1 = Offered(name="b:1", loaded=True, window=512, trained=9_000, tools=True, vision=True)
    b2 = Offered(name="b:2", loaded=True, window=1_024, trained=9_000, tools=True, vision=True)
    assert everything.servers[0].models == (a, b1, b2)
    assert [model.name for _, model in everything.choices] == ["b:2", "b:1", "a"]


def test_an_older_lm_studio_is_asked_in_its_older_way(stand_in: Make) -> None:
    listed = [
        {
            "id": "a",
            "type": "vlm",
            "state": "loaded",
            "loaded_context_length": 4_096,
            "max_context_length": 32_768,
            "capabilities": ["tool_use"],
        },
        {"id": "b", "type": "llm", "state": "not-loaded", "max_context_length": 8_192},
        {"id": "c", "type": "embeddings", "state": "loaded"},
    ]
    server = stand_in({"/v1/models": {"data": []}, "/api/v0/models": {"data": listed}})

    everything = found({server.port: Kind.LM_STUDIO})

    assert everything.servers[0].models == (
        Offered(name="a", loaded=True, window=4_096, trained=32_768, tools=True, vision=True),
        Offered(name="b", loaded=False, trained=8_192, vision=False),
    )


def test_a_llama_cpp_router_is_asked_about_loaded_models_and_made_to_load_none(
    stand_in: Make,
) -> None:
    def entry(name: str, state: str) -> dict[str, object]:
        return {"id": name, "owned_by": "llamacpp", "status": {"value": state}}

    of_one = "/props?model=them%2Fa%3AQ4&autoload=false"
    server = stand_in(
        {
            "/v1/models": {"data": [entry("them/a:Q4", "loaded"), entry("b", "unloaded")]},
            "/props": {"role": "router", "max_instances": 4},
            of_one: {
                "default_generation_settings": {"n_ctx": 8_192},
                "chat_template_caps": {"supports_tools": False},
                "modalities": {"vision": True},
            },
        }
    )

    everything = found({server.port: Kind.LLAMA_CPP})

    assert everything.servers[0].models == (
        Offered(name="them/a:Q4", loaded=True, window=8_192, tools=False, vision=True),
        Offered(name="b", loaded=False),
    )
    assert server.asked == ["/v1/models", "/props", of_one]


def test_a_server_that_keeps_its_props_to_itself_is_known_by_its_list(stand_in: Make) -> None:
    meta = {"n_ctx": 4_096, "n_ctx_train": 32_768}
    server = stand_in(
        {
            "/v1/models": {"data": [{"id": "qwen", "owned_by": "llamacpp", "meta": meta}]},
            "/props": http(b"{}", "401 Unauthorized"),
        }
    )

    everything = found({server.port: Kind.LLAMA_CPP})

    assert everything.servers[0].models == (
        Offered(name="qwen", loaded=True, window=4_096, trained=32_768),
    )
    assert everything.problems == ()


def test_a_server_that_only_plays_ollama_is_not_taken_for_it(stand_in: Make) -> None:
    server = stand_in(
        {
            "/v1/models": {"data": [{"id": "koboldcpp/zebra", "owned_by": "koboldcpp"}]},
            "/api/version": {"version": "0.7.0"},
        }
    )

    looked = seen(server.url)

    assert (looked.server and looked.server.kind, server.asked) == (Kind.OTHER, ["/v1/models"])


def test_a_server_that_has_the_same_for_every_path_is_only_a_server(stand_in: Make) -> None:
    server = stand_in({"*": {"data": [{"id": "zebra"}], "version": "1", "models": 5}})

    looked = seen(server.url)

    assert looked.server == Server(
        kind=Kind.OTHER,
        url=server.url,
        api=f"{server.url}/v1",
        models=(Offered(name="zebra"),),
    )


def test_docker_is_asked_where_it_speaks() -> None:
    asked, _ = places({}, DEFAULT)

    assert [f"{each.url}{each.api}" for each in asked] == [
        "http://localhost:11434/v1",
        "http://localhost:1234/v1",
        "http://localhost:8080/v1",
        "http://localhost:8000/v1",
        "http://localhost:12434/engines/v1",
        "http://localhost:5001/v1",
        "http://localhost:1337/v1",
    ]


# --- what servers do instead --------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_nothing_running_is_no_problem_but_is_said() -> None:
    port = free_port()

    assert found({port: Kind.OLLAMA}) == Found(
        silent=(Silent(Kind.OLLAMA, f"http://localhost:{port}", "is not running"),)
    )


def test_a_server_that_the_user_named_and_that_does_not_run_is_a_problem() -> None:
    url = f"http://127.0.0.1:{free_port()}"

    everything = found({}, {"OLLAMA_HOST": url})

    assert everything.problems == (f"Ollama at {url} is not running.",)
    assert seen(url).problem == f"The server at {url} is not running."


def stall(connection: socket.socket, over: Event) -> None:
    over.wait(60)


def trickle(connection: socket.socket, over: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.wait(0.005):
        connection.sendall(b" ")


def pour(connection: socket.socket, over: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        connection.sendall(b" " * 65_536)


def pour_chunks(connection: socket.socket, over: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not over.is_set():
        connection.sendall(b"1\r\n \r\n" * 10_000)


def pour_headers(connection: socket.socket, over: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not over.is_set():
        connection.sendall(b"X: y\r\n" * 1_000)


def reset(connection: socket.socket, over: Event) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@pytest.mark.parametrize("hostile", [stall, trickle])
def test_a_server_that_does_not_come_to_an_end_is_left_in_time(
    hostile: object, stand_in: Make
) -> None:
    with ModelServer(kind=Served.VLLM, window=4_096) as good:
        bad = stand_in({"*": hostile})
        ports = {bad.port: Kind.LLAMA_CPP, port_of(good.url): Kind.VLLM}
        everything = found(ports, within=A_WHILE)

    late = "did not answer within 2 seconds"
    assert everything.silent == (Silent(Kind.LLAMA_CPP, bad.url, late),)
    assert everything.problems == (f"llama.cpp at {bad.url} {late}.",)
    assert [server.kind for server in everything.servers] == [Kind.VLLM]


STRANGE = "does not answer like a model server"
MUCH = "answers with more than 2000000 bytes"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x16\x03\x01\x00\xff" * 50, "broke off its answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", STRANGE),
        (b"HTTP/1.1 200 OK\r\n" + b"x" * 20_000, STRANGE),
        (b"", "broke off its answer"),
        (reset, "broke off its answer"),
        (http(b"<html><title>Jenkins</title></html>"), STRANGE),
        (http(b'{"data": 5}'), STRANGE),
        (http(b'{"models": []}'), STRANGE),
        (http(b"[" * 40_000), STRANGE),
        (http(b'{"data":[' + b"[]," * 100_000 + b"[]]}"), STRANGE),
        (http(b'{"data": [' + b"9" * 10_000 + b"]}"), STRANGE),
        (http(b'{"data": NaN}'), STRANGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", "broke off its answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", STRANGE),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", STRANGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", MUCH),
        (pour, MUCH),
        (pour_chunks, STRANGE),
        (pour_headers, STRANGE),
        (http(b"", "404 Not Found"), "answers with HTTP 404"),
        (http(b"{}", "500 Internal Server Error"), "answers with HTTP 500"),
    ],
)
def test_what_is_no_model_server_is_left_aside_with_a_reason(
    answer: object, why: str, stand_in: Make
) -> None:
    server = stand_in({"*": answer})

    everything = found({server.port: Kind.LLAMA_CPP})

    assert everything == Found(silent=(Silent(Kind.LLAMA_CPP, server.url, why),))


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("401 Unauthorized", "wants a key, or another one"),
        ("403 Forbidden", "wants a key, or another one"),
        ("503 Service Unavailable", "is not ready; it may be loading a model"),
    ],
)
def test_a_server_that_is_there_and_cannot_be_used_is_a_problem(
    status: str, why: str, stand_in: Make
) -> None:
    server = stand_in({"*": http(b'{"error":{"message":"Loading model"}}', status)})

    everything = found({server.port: Kind.LLAMA_CPP})

    assert everything.problems == (f"llama.cpp at {server.url} {why}.",)


def test_a_list_without_end_is_read_up_to_a_bound(stand_in: Make) -> None:
    entries = ",".join(f'{{"id":"{number}"}}' for number in range(5_000))
    server = stand_in({"*": http(f'{{"data":[{entries}]}}'.encode())})

    everything = found({server.port: Kind.VLLM})

    assert len(everything.servers[0].models) == 2_000


def test_a_server_on_the_newer_loopback_alone_is_found(stand_in: Make) -> None:
    try:
        server = stand_in({"*": {"data": [{"id": "zebra"}]}}, "::1")
    except OSError:
        pytest.skip("this machine has no ::1")

    with socket.socket() as older:
        try:
            older.bind(("127.0.0.1", server.port))  # held, and not listening: nobody else answers
        except OSError:
            pytest.skip("somebody else has the port on the older loopback")
        by_name, by_number = seen(server.url), seen(f"http://[::1]:{server.port}")
    assert by_name.model == by_number.model == Offered(name="zebra")


def test_a_server_without_tls_is_no_answer_to_https(stand_in: Make) -> None:
    server = stand_in({"*": {"data": []}})
    url = server.url.replace("http:", "https:")

    assert seen(url).problem == f"The server at {url} broke off its answer."


def test_a_redirect_is_not_followed(stand_in: Make) -> None:
    elsewhere = stand_in({"*": {"data": []}})
    to = f"Location: {elsewhere.url}/v1/models"
    server = stand_in({"*": http(b"", "302 Found", to)})

    everything = found({server.port: Kind.VLLM})

    assert [each.why for each in everything.silent] == ["answers with HTTP 302"]
    assert elsewhere.asked == []


def test_no_proxy_is_asked(stand_in: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = stand_in({"*": {"data": []}})
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)

    found({free_port(): Kind.VLLM}, {"HTTP_PROXY": proxy.url})

    assert proxy.asked == []


def test_what_a_server_had_said_before_it_stalled_is_kept(stand_in: Make) -> None:
    server = stand_in(
        {
            "/v1/models": {"data": [{"id": "loaded:8b", "owned_by": "library"}]},
            "/api/version": {"version": "0.32.1"},
            "/api/ps": {"models": [{"name": "loaded:8b", "context_length": 4_096}]},
            "/api/tags": {"models": [tag("loaded:8b")]},
            "/api/show": stall,
        }
    )

    everything = found({server.port: Kind.OLLAMA}, within=A_WHILE)

    assert everything == Found(
        servers=(
            Server(
                kind=Kind.OLLAMA,
                url=server.url,
                api=f"{server.url}/v1",
                version="0.32.1",
                models=(Offered(name="loaded:8b", loaded=True, window=4_096),),
            ),
        ),
        problems=(f"Ollama at {server.url} did not tell everything within 2 seconds.",),
    )


def test_names_that_could_play_tricks_on_a_terminal_are_left_out(stand_in: Make) -> None:
    names = ["fine", "\x1b[2Jgone", "two\nlines", "\ud800", "x" * 301, "", 5, None]
    server = stand_in({"/v1/models": {"data": [{"id": name} for name in names]}})

    everything = found({server.port: Kind.OTHER})

    assert everything.servers[0].models == (Offered(name="fine"),)


def test_a_chunked_answer_is_put_together(stand_in: Make) -> None:
    chunks = b'9;x=y\r\n{"data": \r\n20\r\n[{"id":"zebra","object":"model"}\r\n2\r\n]}\r\n0\r\n\r\n'
    server = stand_in({"*": b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n" + chunks})

    everything = found({server.port: Kind.OTHER})

    assert everything.servers[0].models == (Offered(name="zebra"),)


def test_an_address_that_is_never_resolved_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer, threads = Event(), []

    def resolving(*_: object, **__: object) -> list[object]:
        from threading import current_thread

        threads.append(current_thread())
        answer.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolving)

    everything = found({}, {"OPENAI_BASE_URL": "http://far.example/v1"}, within=IN_VAIN)

    assert [each.why for each in everything.silent] == ["did not answer within 0.2 seconds"]
    assert [thread.daemon for thread in threads] == [True]
    answer.set()
    threads[0].join(5)  # an exception in it, now that nobody waits, would fail this test


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "id name key type status value meta n_ctx details family config capabilities "
                "loaded_instances max_model_len architecture input_modalities context_length".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_no_answer_of_a_server_is_more_than_can_be_read(value: object) -> None:
    for entry in kinds.objects({"x": value}, "x"):
        kinds.listed(entry)
        kinds.in_tags(entry, {"name": 5})
        kinds.instances(entry)
        kinds.in_old_list(entry)
    kinds.with_props(Offered(name="x"), value)
    kinds.able(Offered(name="x"), value)


# --- the environment ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234"),
        (":1234", "http://127.0.0.1:1234"),
        ("box", "http://box:11434"),
        (" box:1234 ", "http://box:1234"),
        ('"box:1234"', "http://box:1234"),
        ("box:", "http://box:11434"),
        ("box:99999", "http://box:11434"),
        ("box/ollama/", "http://box:11434/ollama"),
        ("::1", "http://[::1]:11434"),
        ("::", "http://[::1]:11434"),
        ("[::1]", "http://[::1]:11434"),
        ("[::]:1234", "http://[::1]:1234"),
        ("http://box", "http://box"),
        ("http://box:1234", "http://box:1234"),
        ("https://box", "https://box"),
        ("https://box:8443/ollama", "https://box:8443/ollama"),
        ("http://0.0.0.0:11434/", "http://127.0.0.1:11434"),
        ("ollama.com", "https://ollama.com"),
    ],
)
def test_ollama_host_means_what_it_means_to_ollama(given_: str, url: str) -> None:
    assert ollama_at(given_).url == url


@pytest.mark.parametrize(
    ("given_", "url", "api"),
    [
        ("http://box:8000/v1", "http://box:8000", "http://box:8000/v1"),
        ("http://box:8000", "http://box:8000", "http://box:8000/v1"),
        (
            "https://openrouter.ai/api/v1/",
            "https://openrouter.ai/api",
            "https://openrouter.ai/api/v1",
        ),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai", "https://h/v1beta/openai"),
        ("http://me:secret@box:8000/v1?key=secret#secret", "http://box:8000", "http://box:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_a_url_is_read_without_what_nobody_should_see(given_: str, url: str, api: str) -> None:
    place = place_of(given_)

    assert (place.url, place.url + place.api) == (url, api)
    assert "secret" not in repr(place)


def test_ollama_host_is_asked_instead_of_the_usual_port_and_each_place_once() -> None:
    env = {"OLLAMA_HOST": "127.0.0.1:1234", "OPENAI_BASE_URL": "http://localhost:8080/v1"}

    asked, problems = places(env, DEFAULT)

    assert [(each.url, each.kind) for each in asked[:2]] == [
        ("http://127.0.0.1:1234", Kind.OLLAMA),
        ("http://localhost:8080", None),
    ]
    assert [each.port for each in asked] == [1234, 8080, 8000, 12434, 5001, 1337]
    assert problems == []


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("ftp://secret@box", "it must begin with http:// or https:// and name a host"),
        ("box:8000/v1", "it must begin with http:// or https:// and name a host"),
        ("http://", "it must begin with http:// or https:// and name a host"),
        ("http://box:secret/v1", "its host or port cannot be read"),
        ("http://[secret/v1", "its host or port cannot be read"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_problem(url: str, wrong: str) -> None:
    assert found({}, {"OPENAI_BASE_URL": url}) == Found(
        problems=(f"OPENAI_BASE_URL cannot be used: {wrong}.",)
    )
    assert seen(url) == Look(problem=f"The address of the server cannot be used: {wrong}.")


def test_keys_are_known_by_their_provider_and_go_only_to_the_server_they_are_for(
    stand_in: Make,
) -> None:
    theirs, guessed = stand_in({"*": {"data": []}}), stand_in({"*": {"data": []}})
    env = {
        "OPENAI_API_KEY": "sk-secret-1",
        "GEMINI_API_KEY": "sk-secret-2",
        "GOOGLE_API_KEY": "sk-secret-3",
        "GROQ_API_KEY": "  ",
        "OPENAI_BASE_URL": f"{theirs.url}/v1",
    }

    everything = found({guessed.port: Kind.VLLM}, env)

    assert everything.providers == ("openai", "gemini")
    assert "secret" not in repr(everything)
    assert {b"Authorization: Bearer sk-secret-1\r\n" in each for each in theirs.heard} == {True}
    assert [each for each in guessed.heard if b"secret" in each] == []


# --- picking ------------------------------------------------------------------------------------


def test_what_can_be_picked_comes_with_the_likeliest_first() -> None:
    def server(kind: Kind, *models: Offered) -> Server:
        return Server(kind=kind, url="http://x", api="http://x/v1", models=models)

    offers = Found(
        servers=(
            server(
                Kind.OLLAMA,
                Offered(name="large", loaded=False, trained=262_144, tools=True),
                Offered(name="no tools", loaded=True, window=8_192, tools=False),
                Offered(name="small", loaded=True, window=4_096, tools=True),
            ),
            server(
                Kind.LLAMA_CPP,
                Offered(name="best", loaded=True, window=32_768, tools=True),
                Offered(name="unsaid", loaded=True, window=65_536),
            ),
            server(Kind.OTHER, Offered(name="nothing known")),
        )
    )

    assert [(server.kind.value, model.name) for server, model in offers.choices] == [
        ("llamacpp", "best"),
        ("ollama", "small"),
        ("llamacpp", "unsaid"),
        ("ollama", "no tools"),
        ("ollama", "large"),
        ("other", "nothing known"),
    ]


def test_looking_for_servers_loads_no_http_library() -> None:
    code = "import sys, holdfast.models.discovery; print(*sys.modules)"

    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert {"aiohttp", "http.client", "requests", "httpx"} & set(done.stdout.split()) == set()
