"""Pages come as text, and nothing of this machine or its network can be reached through a URL."""

import gzip
import shutil
import ssl
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import anyio
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.core.limits import Usage
from holdfast.core.tools import SideEffect
from holdfast.tools.addresses import address, forbidden
from holdfast.tools.base import (
    Access,
    BadArguments,
    Binary,
    Filled,
    Form,
    Left,
    Output,
    Progress,
    Tool,
    ToolError,
    Touch,
)
from holdfast.tools.readable import readable
from holdfast.tools.web import decoded, fetch_url_tool, follows

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HERE = Path()


@dataclass
class Alone:
    """A context for a tool that wants nothing of its run."""

    session: str = "s"
    call_id: str = "c"
    key: str = "k"
    workspace: Path = HERE
    left: Left = field(default_factory=lambda: Left(1, 1, 1, 1, 1.0))

    def tell(self, progress: Progress) -> None: ...
    async def keep(self, path: Path) -> None: ...
    async def result(self, call_id: str) -> str | None:
        return None

    async def found(self, names: tuple[str, ...]) -> None: ...
    async def ask(self, form: Form) -> Filled:
        return Filled(accepted=False)

    async def charge(self, usage: Usage) -> None: ...


async def fetched(tool: Tool, url: str) -> Output:
    with anyio.fail_after(20):
        output = await tool.run(tool.parse(f'{{"url": "{url}"}}'), Alone())  # type: ignore[misc]
    assert isinstance(output, Output)
    return output


@asynccontextmanager
async def served(*handlers: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A real server; its handlers stand at `/0`, `/1` and so on. Gives host and port."""
    app = web.Application()
    for number, handler in enumerate(handlers):
        app.router.add_get(f"/{number}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"{host}:{port}"
    finally:
        await runner.cleanup()


def says(body: str | bytes, kind: str = "text/plain", status: int = 200, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        data = body if isinstance(body, bytes) else body.encode()
        given = {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return web.Response(body=data, status=status, headers=given)

    return handler


def moves(to: str) -> Handler:
    return says("", status=302, Location=to)


def names(**known: Sequence[str]) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    """A resolver of these names; each has one answer a time, and the last one from then on."""
    left = {name.replace("_", "."): list(answers) for name, answers in known.items()}

    async def resolve(host: str, port: int) -> Sequence[str]:
        answers = left.get(host, [])
        if not answers:
            raise OSError("no such name")
        return [answers.pop(0) if len(answers) > 1 else answers[0]]

    return resolve


# --- pages --------------------------------------------------------------------------------------

PAGE = """<!doctype html><html><head><title> The  page </title><style>p {}</style>
<script>alert("<p>no</p>")</script></head><body>
<h1>Fruit &amp; more</h1><p>Read <a href="/list?a=1">the
list</a>, or <a href="#top">go up</a>.<br>Second line.</p>
<ul><li>Apples<ul><li>red</li><li>green</li></ul></li><li>Pears</li></ul>
<ol><li>one</li><li>two</li></ol>
<table><tr><th>Name</th><th>Price</th></tr><tr><td>Apple</td><td>1</td></tr></table>
<pre>def f():
    return 1</pre><img alt="A tree" src="t.png"><svg><text>no</text></svg>
<p>Unclosed <b>words"""


async def test_a_page_is_read_as_text_with_its_links_lists_and_tables() -> None:
    async with served(says(PAGE, "text/html; charset=utf-8")) as place:
        output = await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")

    text = output.text.replace(place, "example.com")
    assert (text, output.binaries, output.failed) == snapshot(
        (
            """\
http://example.com/0
status 200, text/html, 540 bytes

The page

# Fruit & more

Read [the list](http://example.com/list?a=1), or go up.
Second line.

- Apples
  - red
  - green
- Pears

1. one
2. two

Name | Price
Apple | 1

def f():
    return 1

[image: A tree]

Unclosed words\
""",
            (),
            False,
        )
    )


async def test_json_and_text_come_as_they_are() -> None:
    async with served(says('{"a": 1}', "application/json"), says("é", "text/plain")) as place:
        tool = fetch_url_tool(trusted=(place,))
        texts = [(await fetched(tool, f"http://{place}/{n}")).text for n in (0, 1)]

    assert [text.partition("\n")[2] for text in texts] == snapshot(
        [
            """\
status 200, application/json, 8 bytes

{"a": 1}\
""",
            """\
status 200, text/plain, 2 bytes

é\
""",
        ]
    )


async def test_a_picture_is_handed_over_and_other_files_are_refused_politely() -> None:
    async with served(says(b"\x89PNG", "image/png"), says(b"PK\x03", "application/zip")) as place:
        tool = fetch_url_tool(trusted=(place,))
        picture = await fetched(tool, f"http://{place}/0")
        archive = await fetched(tool, f"http://{place}/1")

    assert picture.binaries == (Binary(b"\x89PNG", "image/png", "0"),)
    assert (archive.failed, archive.text.partition("\n")[2]) == snapshot(
        (
            True,
            """\
status 200, application/zip, 3 bytes
This is neither text nor a picture that can be shown.\
""",
        )
    )


async def test_an_error_is_a_failure_with_the_beginning_of_its_page() -> None:
    async with served(says("gone fishing " * 1_000, status=503)) as place:
        output = await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")

    assert output.failed
    assert "status 503, text/plain, 13000 bytes" in output.text
    assert 2_000 < len(output.text) < 2_200


async def test_a_long_page_is_cut_and_says_so() -> None:
    async with served(says("a" * 5_000)) as place:
        tool = fetch_url_tool(trusted=(place,), most_bytes=1_000)
        output = await fetched(tool, f"http://{place}/0")

    header, _, text = output.text.partition("\n\n")
    assert "1000 bytes, cut here: the page goes on" in header
    assert text == "a" * 1_000


@pytest.mark.parametrize("packing", ["gzip", "deflate", "bare deflate"])
async def test_packed_pages_are_unpacked_only_as_far_as_the_bound(packing: str) -> None:
    whole = b"\0" * 50_000_000 if packing != "bare deflate" else b"words " * 10_000
    packer = zlib.compressobj(wbits={"gzip": 31, "deflate": 15}.get(packing, -15))
    bomb = packer.compress(whole) + packer.flush()
    page = says(bomb, Content_Encoding=packing.rpartition(" ")[2])
    async with served(page) as place:
        tool = fetch_url_tool(trusted=(place,), most_bytes=20_000)
        output = await fetched(tool, f"http://{place}/0")

    assert "20000 bytes, cut here" in output.text
    assert output.text.partition("\n\n")[2].encode() == whole[:20_000]


async def test_what_unpacks_to_gigabytes_never_is_in_memory() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    async with served(says(bomb, Content_Encoding="gzip")) as place:
        tool = fetch_url_tool(trusted=(place,), most_bytes=20_000)
        tracemalloc.start()
        try:
            await fetched(tool, f"http://{place}/0")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 10_000_000


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    """Although the connection goes to an address, TLS is asked for the name."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    await anyio.run_process(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        + ["-subj", "/CN=site.example", "-keyout", str(key), "-out", str(certificate)]
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    asked: list[str] = []
    context.sni_callback = lambda _, name, __: asked.append(name)
    async with served(says("secret"), tls=context) as place:
        port = place.rpartition(":")[2]
        trusted = (f"site.example:{port}",)
        tool = fetch_url_tool(trusted=trusted, resolve=names(site_example=["127.0.0.1"]))
        with pytest.raises(ToolError, match="certificate verify failed"):
            await fetched(tool, f"https://site.example:{port}/0")

    assert asked == ["site.example"]


async def test_a_page_packed_in_an_unknown_way_is_refused() -> None:
    async with served(says(gzip.compress(b"a"), Content_Encoding="gzip, gzip")) as place:
        with pytest.raises(ToolError, match="packed as 'gzip, gzip'"):
            await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")


async def test_a_page_that_only_drips_is_given_up() -> None:
    async def drips(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b".")
            await anyio.sleep(0.01)

    async with served(drips) as place:
        tool = fetch_url_tool(trusted=(place,), seconds=0.3)
        with pytest.raises(ToolError, match="did not come within 0.3 seconds"):
            await fetched(tool, f"http://{place}/0")


async def test_no_cookies_are_kept_and_the_agent_says_who_it_is() -> None:
    seen: list[tuple[str | None, str | None]] = []

    async def sets(request: web.Request) -> web.StreamResponse:
        seen.append((request.headers.get("Cookie"), request.headers.get("User-Agent")))
        moved = web.Response(status=302, headers={"Location": "/1"})
        moved.set_cookie("id", "7")
        return moved

    async def looks(request: web.Request) -> web.StreamResponse:
        seen.append((request.headers.get("Cookie"), request.headers.get("User-Agent")))
        return web.Response(text="ok")

    async with served(sets, looks) as place:
        port = place.rpartition(":")[2]
        trusted = (f"site.example:{port}",)  # a name, since cookies of addresses are never kept
        tool = fetch_url_tool(trusted=trusted, resolve=names(site_example=["127.0.0.1"]))
        await fetched(tool, f"http://site.example:{port}/0")

    assert seen == [(None, "holdfast (a language model's agent)")] * 2


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("é".encode(), None, "é"),
        ("été".encode("latin-1"), None, "été"),
        ("“é”".encode("cp1252"), "iso-8859-1", "“é”"),
        ("é".encode("utf-16"), "utf-8", "é"),
        (b'<meta charset="shift_jis">' + "日本".encode("shift_jis"), None, None),
        (b"\\u0041", "unicode_escape", "\\u0041"),
        (b"abc", "zlib", "abc"),
        ("é".encode()[:1], None, ""),
    ],
)
def test_charsets_are_believed_only_where_they_are_charsets(
    data: bytes, charset: str | None, text: str | None
) -> None:
    told = decoded(data, charset, is_html=True)

    assert told == text or text is None and told.endswith("日本")


# --- the wall -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trusted", [(), ("127.0.0.1:1",), ("localhost:80",)])
async def test_this_machine_is_not_fetched_from(trusted: tuple[str, ...]) -> None:
    async with served(says("secret")) as place:
        with pytest.raises(ToolError, match="not fetched: it belongs to this machine"):
            await fetched(fetch_url_tool(trusted=trusted), f"http://{place}/0")


async def test_allow_private_opens_the_wall() -> None:
    async with served(says("mine")) as place:
        output = await fetched(fetch_url_tool(allow_private=True), f"http://{place}/0")

    assert output.text.endswith("mine")


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("http://169.254.169.254/latest/", "http://169.254.169.254/latest/"),
        ("//169.254.169.254/", "http://169.254.169.254/"),
        ("http://2852039166/", "http://169.254.169.254/"),
        ("http://inside.example/", "http://inside.example/"),
        ("https://example.com/a?b=c", "https://example.com/a?b=c"),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1/"),
    ],
)
async def test_a_redirect_to_another_place_is_told_and_not_followed(to: str, told: str) -> None:
    async with served(moves(to)) as place:
        tool = fetch_url_tool(trusted=(place,), resolve=names())
        output = await fetched(tool, f"http://{place}/0")

    assert output == Output(
        f"http://{place}/0\nThe page is not here: it redirects to another place, {told}\n"
        "Nothing was fetched from there. To read it, call fetch_url with that address."
    )


@pytest.mark.parametrize("to", ["file:///etc/passwd", "http://user:pass@example.com/", "http://["])
async def test_a_redirect_to_what_is_no_page_fails(to: str) -> None:
    async with served(moves(to)) as place:
        with pytest.raises(ToolError, match="redirects to"):
            await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")


@pytest.mark.parametrize(
    ("wanted", "moved", "is_followed"),
    [
        ("http://a.example/", "http://a.example/b", True),
        ("http://a.example/", "https://a.example/", True),
        ("http://a.example:8080/", "https://a.example/", True),
        ("http://a.example:8080/", "https://a.example:8080/", True),
        ("https://a.example/", "http://a.example/", False),
        ("https://a.example:8443/", "http://a.example:8443/", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "https://www.a.example/", False),
    ],
)
def test_the_same_host_is_followed_and_on_the_way_to_tls(
    wanted: str, moved: str, is_followed: bool
) -> None:
    assert follows(address(wanted), address(moved)) is is_followed


async def test_redirects_are_followed_and_the_last_address_is_told() -> None:
    async with served(moves("1"), moves("/2"), says("here")) as place:
        output = await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")

    assert output.text == f"http://{place}/2\nstatus 200, text/plain, 4 bytes\n\nhere"


async def test_a_circle_of_redirects_ends() -> None:
    async with served(moves("/0")) as place:
        with pytest.raises(ToolError, match="More than 5 redirects"):
            await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")


async def test_a_name_is_resolved_once_and_the_address_that_was_judged_is_connected_to() -> None:
    """The second answer leads nowhere: had the connection asked again, it would have failed."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.9"]

    async with served(says("judged")) as place:
        port = place.rpartition(":")[2]
        tool = fetch_url_tool(trusted=(f"rebinding.example:{port}",), resolve=resolve)
        output = await fetched(tool, f"http://rebinding.example:{port}/0")

    assert output.text.endswith("judged")
    assert asked == ["rebinding.example"]


async def test_a_name_that_is_public_first_and_private_after_a_redirect_is_refused() -> None:
    async with served(moves("https://rebinding.example/")) as place:
        port = place.rpartition(":")[2]
        resolve = names(rebinding_example=["127.0.0.1", "127.0.0.1"])
        tool = fetch_url_tool(trusted=(f"rebinding.example:{port}",), resolve=resolve)
        with pytest.raises(ToolError, match=r"rebinding.example \(127.0.0.1\) is not fetched"):
            await fetched(tool, f"http://rebinding.example:{port}/0")


async def test_the_name_that_was_judged_is_what_the_server_hears_and_where_it_is_asked() -> None:
    heard: list[str] = []

    async def tells(request: web.Request) -> web.StreamResponse:
        heard.append(request.headers["Host"])
        return web.Response(text="ok")

    async with served(tells) as place:
        port = place.rpartition(":")[2]
        trusted = (f"site.example:{port}",)
        tool = fetch_url_tool(trusted=trusted, resolve=names(site_example=["127.0.0.1"]))
        await fetched(tool, f"http://SITE.example.:{port}/0")

    assert heard == [f"site.example:{port}"]


async def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", "fe80::1%eth0"]

    with pytest.raises(ToolError, match=r"mixed.example \(fe80::1\) is not fetched"):
        await fetched(fetch_url_tool(resolve=resolve), "http://mixed.example/")


async def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(ToolError, match="There is no host named nowhere.example"):
        await fetched(fetch_url_tool(resolve=names()), "http://nowhere.example/")


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with served(says("straight")) as place:
        output = await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")

    assert output.text.endswith("straight")


async def test_a_server_that_speaks_no_http_is_a_failure_in_words() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def babble(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.send(b"\x16\x03\x01 not http \r\n\r\n")

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, babble)
        place = f"127.0.0.1:{port}"
        with pytest.raises(ToolError, match="could not be fetched"):
            await fetched(fetch_url_tool(trusted=(place,)), f"http://{place}/0")
        with pytest.raises(ToolError, match="could not be fetched") as tls:
            await fetched(fetch_url_tool(trusted=(place,)), f"https://{place}/0")
        group.cancel_scope.cancel()
    assert isinstance(tls.value.__cause__, ssl.SSLError | OSError)


# --- URLs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://a b/",
        "http://example.com\\\\@127.0.0.1/",
        "http://user@example.com/",
        "http://:@example.com/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://[::1%25eth0]/",
        "http://[::1]evil/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://exa%6dple.com/",
        "http://-a.com/",
    ],
)
def test_what_is_no_plain_url_is_refused_before_anything_is_asked(url: str) -> None:
    tool = fetch_url_tool()
    with pytest.raises(BadArguments):
        tool.parse(f'{{"url": "{url}"}}')


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com.:443/a/./b/../c?q=1#part", "https://example.com/a/c?q=1"),
        ("https://example.com/a/%2e%2E/b/..", "https://example.com/"),
        (
            "https://bücher.example/ä b".replace(" ", "%20"),
            "https://xn--bcher-kva.example/%C3%A4%20b",
        ),
        ("http://１２７。１/", "http://127.0.0.1/"),
        ("http://0177.0x1/", "http://127.0.0.1/"),
        ("http://[0:0::FFFF:7f00:1]:8080/", "http://[::ffff:7f00:1]:8080/"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
    ],
)
def test_a_url_has_one_spelling(url: str, normal: str) -> None:
    assert address(url).url == normal
    assert address(normal).url == normal


def test_the_rules_and_the_person_are_told_host_and_address() -> None:
    tool = fetch_url_tool(trusted=("10.0.0.7:8080",))

    def touched(url: str) -> Touch:
        return tool.touch(tool.parse(f'{{"url": "{url}"}}'), HERE)

    assert touched("https://Example.com/a/../b") == Touch(
        Access.NETWORK, ("example.com", "https://example.com/b")
    )
    assert touched("http://0x7f.1/").danger == "127.0.0.1 is this machine or a part of its network"
    assert touched("http://printer.local/").danger
    assert not touched("http://10.0.0.7:8080/").danger
    assert (tool.spec.effect, tool.spec.mutates) == (SideEffect.READ, False)


PRIVATE_4 = st.sampled_from(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
    "192.168.0.0/16 198.18.0.0/15 224.0.0.0/4 240.0.0.0/4".split()
).flatmap(lambda network: st.ip_addresses(network=network))


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A private address, in one of the many ways in which some program would understand it."""
    ip = draw(PRIVATE_4)
    assert isinstance(ip, IPv4Address)
    if draw(st.booleans()):
        return f"[{draw(st.sampled_from(inside_6(ip)))}]"
    a, b, c, d = ip.packed
    numbers = draw(
        st.sampled_from(
            ([a, b, c, d], [a, b, c << 8 | d], [a, b << 16 | c << 8 | d], [int(ip)]),
        )
    )
    forms = [
        draw(st.sampled_from(("{:d}", "0{:o}", "0x{:x}", "0X{:X}", "00{:o}"))) for _ in numbers
    ]
    text = ".".join(form.format(number) for form, number in zip(forms, numbers, strict=True))
    dot = draw(st.sampled_from((".", "。", "．", "｡")))
    wide = draw(st.booleans())
    text = text.replace(".", dot) + draw(st.sampled_from(("", ".", dot)))
    return "".join(chr(ord(x) + 0xFEE0) if wide and x.isdigit() else x for x in text)


def inside_6(ip: IPv4Address) -> list[str]:
    high, low = int(ip) >> 16, int(ip) & 0xFFFF
    return [
        f"::ffff:{ip}",
        f"::{ip}",
        f"::FFFF:{high:x}:{low:x}",
        f"0:0:0:0:0:ffff:{ip}",
        f"::ffff:0:{ip}",
        f"64:ff9b::{ip}",
        f"64:ff9b:1::{ip}",
        f"2002:{high:x}:{low:x}::1",
        f"2001:0:{high:x}:{low:x}::1",
        f"2001:0:4136:e378:8000:63bf:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
        f"fe80::5efe:{ip}",
        f"fd00:ec2::{ip}",
        f"fec0::{ip}",
        f"ff02::{ip}",
    ]


@given(
    spellings(), st.sampled_from(("http", "https", "HTTP")), st.sampled_from(("", ":80", ":8080"))
)
def test_no_spelling_of_a_private_address_passes(host: str, scheme: str, port: str) -> None:
    try:
        wanted = address(f"{scheme}://{host}{port}/")
    except BadArguments:
        return
    assert wanted.ip is not None
    assert forbidden(wanted.ip)


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_what_may_be_fetched_is_global_by_the_registry_too(ip: IPv4Address | IPv6Address) -> None:
    if not forbidden(ip):
        inner = getattr(ip, "ipv4_mapped", None) or ip
        assert inner.is_global or str(ip).startswith("64:ff9b::")
        assert (ip.is_multicast, ip.is_loopback, ip.is_unspecified) == (False, False, False)


@pytest.mark.parametrize("ip", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101"])
def test_what_everybody_can_reach_may_be_fetched(ip: str) -> None:
    wanted = address(f"http://[{ip}]/" if ":" in ip else f"http://{ip}/").ip
    assert wanted is not None
    assert forbidden(wanted) == ""


@given(st.text() | st.text("<>/ab=\"' &#;!-").map(lambda text: text * 20))
def test_any_markup_can_be_read(html: str) -> None:
    readable(html, "https://example.com/")


def test_nothing_heavy_is_loaded_before_the_first_page() -> None:
    code = "import sys, holdfast.tools.web; print({'aiohttp', 'yarl', 'pydantic'} & {*sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


@pytest.mark.timeout(20)
def test_markup_that_never_ends_is_read_in_one_look() -> None:
    links = "<a href=x>" * 60_000 + "t" + "</a>" * 60_000
    unseen = "<select>" * 60_000 + "</svg>" * 60_000 + "</select>seen"

    assert readable(links, "https://example.com/") == "[t](https://example.com/x)"
    assert readable(unseen, "https://example.com/") == "seen"
