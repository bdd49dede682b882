"""The server says no, with a status; or says something else than it was asked for."""

from collections.abc import Callable, Mapping

from holdfast.testing.server.http import Answer
from holdfast.testing.server.kinds import Kind, refused
from holdfast.testing.server.overflow import WAYS, words_of
from holdfast.testing.server.refusals import error_in, unreadable
from holdfast.testing.server.refusals import unknown_model as refused_model
from holdfast.testing.server.refusals import wrong_key as refused_key
from holdfast.testing.server.turns import SOME_WORDS, Fault, Scene

PAGE = """<!doctype html>
<html><head><title>Welcome to the hotel network</title></head>
<body><h1>Please sign in</h1></body></html>
"""


def instead(name: str, answer: Callable[[Scene], Answer], *, times: int = 1) -> Fault:
    """A fault whose answer has nothing of the one that was due."""
    return Fault(name, SOME_WORDS, garble=lambda _, scene: answer(scene), times=times)


def http(
    status: int = 500,
    body: str | bytes = "",
    headers: Mapping[str, str] | None = None,
    *,
    times: int = 1,
) -> Fault:
    """Any status, body and headers; unless told otherwise, a 500 without a word."""
    data = body.encode() if isinstance(body, str) else body
    given = {"Content-Type": "text/plain", **(headers or {})}
    return instead("http", lambda _: Answer(status, given, (data,)), times=times)


def busy(*, retry_after: float | str | None = 1, times: int = 1) -> Fault:
    """429, with the seconds to wait in Retry-After."""

    def answer(scene: Scene) -> Answer:
        words = "Rate limit reached for this model. Please try again later."
        headers = {} if retry_after is None else {"Retry-After": f"{retry_after}"}
        api, code = scene.asked.api, "rate_limit_exceeded"
        return refused(scene.kind, 429, words, api=api, code=code, headers=headers)

    return instead("busy", answer, times=times)


def unavailable(*, times: int = 1) -> Fault:
    """503: the server is overloaded, and does not say for how long."""

    def answer(scene: Scene) -> Answer:
        words = "The server is currently overloaded."
        return refused(scene.kind, 503, words, api=scene.asked.api)

    return instead("unavailable", answer, times=times)


def loading(times: int = 2) -> Fault:
    """503 `Loading model`, to so many requests of any sort, also to /health; then it is loaded."""
    return Fault("loading", SOME_WORDS, times=times, loading=True)


def overflow(kind: Kind | str | None = None, *, times: int = 1) -> Fault:
    """The request is too long, in the words of the server's kind, or of another one."""
    other = None if kind is None else Kind(kind)

    def answer(scene: Scene) -> Answer:
        tokens = max(scene.received.tokens, scene.window + 1)
        way = WAYS[other or words_of(scene.kind, scene.asked)]
        return way(scene.asked, tokens, scene.window)

    return instead(f"overflow-{other.value}" if other else "overflow", answer, times=times)


def wrong_key() -> Fault:
    """401: the key is not valid, whatever it is."""
    return instead("wrong-key", lambda scene: refused_key(scene.kind, scene.asked.api))


def unknown_model() -> Fault:
    """404: there is no model of that name, whatever it is."""
    return instead("unknown-model", lambda scene: refused_model(scene.kind, scene.asked))


def malformed_history() -> Fault:
    """500, as llama.cpp answers a history in which the arguments of a call are not JSON."""

    def answer(scene: Scene) -> Answer:
        return unreadable(scene.kind, scene.asked, error_in('{"path": "/'))

    return instead("malformed-history", answer)


def html_page(status: int = 200) -> Fault:
    """A web page with status 200, as a proxy or a hotel network sends."""
    page = Answer(status, {"Content-Type": "text/html; charset=utf-8"}, (PAGE.encode(),))
    return instead("html-page", lambda _: page)
