"""The configuration of servers, as everyone writes it."""

import json

import pytest

from holdfast.tools.mcp import ConfigError, Loaded, Server, Wire, load, read


def problems(table: object, **env: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        read({"mcpServers": {"files": table}}, env)
    return raised.value.problems


def test_a_configuration_as_everyone_writes_it() -> None:
    text = json.dumps(
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server", "${HOME:-/root}"]},
                "web": {"url": "https://example.org/mcp", "timeout": 20, "trust": True},
                "old": {"type": "sse", "url": "http://127.0.0.1:1/sse", "tools": ["read"]},
            }
        }
    )

    assert load(text, {}) == Loaded(
        (
            Server(name="files", command="npx", args=("-y", "server", "/root")),
            Server(
                name="web",
                wire=Wire.HTTP,
                url="https://example.org/mcp",
                timeout=20.0,
                trust=True,
            ),
            Server(name="old", wire=Wire.SSE, url="http://127.0.0.1:1/sse", tools=("read",)),
        )
    )


def test_tables_of_toml_are_the_same() -> None:
    table = {"command": "git-server", "env": {"LEVEL": 3}}
    one = read({"mcp_servers": {"git": table}}, {})

    assert one == read({"git": table}, {}) == read({"mcpServers": {"git": table}}, {})
    assert one.servers[0].env == {"LEVEL": "3"}


def test_variables_are_filled_in_and_kept_secret() -> None:
    table = {"url": "http://127.0.0.1:1", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    server = read({"web": table}, {"TOKEN": "open-sesame"}).servers[0]

    assert server.headers == {"Authorization": "Bearer open-sesame"}
    assert "sesame" not in repr(server)
    assert server.veil("got 'open-sesame' and Bearer open-sesame") == "got '***' and ***"


def test_a_password_in_an_address_is_secret() -> None:
    table = {"url": "https://me:pass-word@127.0.0.1:1/mcp?key=abcdef"}
    server = read({"web": table}, {}).servers[0]

    assert server.veil("https://me:pass-word@host/?key=abcdef") == "https://me:***@host/?key=***"


def test_everything_that_is_wrong_is_said_with_the_way_out() -> None:
    assert problems({"command": "x", "args": "-y"}) == (
        'MCP server \'files\': args must be a list of texts, such as ["a", "b"].',
    )
    assert problems({}) == (
        "MCP server 'files': command is missing: say what starts the server, or give its \"url\".",
    )
    assert problems({"command": "x", "env": {"KEY": "${SECRET}"}}) == (
        "MCP server 'files': env.KEY needs the variable SECRET: set it, or write ${SECRET:-default}.",
    )
    assert problems({"command": "x", "timeout": "soon", "trust": "yes"}) == (
        "MCP server 'files': timeout must be a number of seconds above 0.",
        "MCP server 'files': trust must be true or false.",
    )
    assert problems({"command": "x", "url": "http://x"}) == (
        "MCP server 'files': url stands beside \"command\": keep one of them.",
    )
    assert problems({"url": "example.org"}) == (
        "MCP server 'files': url must begin with http:// or https://.",
    )
    assert problems({"url": "http://x", "type": "carrier pigeon"}) == (
        'MCP server \'files\': type must be "stdio", "http" or "sse", or be left out.',
    )
    assert problems("npx") == ('MCP server \'files\' must be a table with "command" or "url".',)


def test_a_problem_never_shows_a_value() -> None:
    said = problems({"command": "x", "env": {"KEY": ["top-secret"]}})

    assert said == ("MCP server 'files': env.KEY must be a text.",)


def test_a_disabled_server_may_be_unfinished() -> None:
    table = {"command": "x", "disabled": True, "env": {"KEY": "${SECRET}"}}

    assert read({"files": table}, {}).servers[0].disabled


def test_what_is_not_used_is_warned_of() -> None:
    table = {"command": "x", "timout": 3, "autoApprove": [], "timeout": 30_000, "headers": {}}

    assert read({"files": table}, {}).warnings == (
        "MCP server 'files': timout is not known and was ignored; did you mean timeout?",
        "MCP server 'files': autoApprove is not known and was ignored.",
        "MCP server 'files': timeout is in seconds: for 30000 milliseconds write 30.",
        "MCP server 'files': headers is not used: a server with a command gets no HTTP requests.",
    )


def test_what_is_no_json_is_said() -> None:
    with pytest.raises(ConfigError, match="is no JSON object"):
        load("{", {})
    with pytest.raises(ConfigError, match="mcpServers must hold a table for each server"):
        load('{"mcpServers": []}', {})
