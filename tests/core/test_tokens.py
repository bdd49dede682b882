"""The laws of counting: sizes add up, expectations are never negative, gauges learn and forgive."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.core.tokens import (
    BUDDY,
    CLASSES,
    COMPONENTS,
    LOCALCOWORK,
    REACH,
    Gauge,
    Rates,
    Size,
    size_of,
    size_of_system,
    size_of_tools,
)
from holdfast.core.tools import ToolSpec

ADR_006 = (
    '{"source": "/Users/chintan/Desktop/screenshot.png", '
    '"destination": "/Users/chintan/Desktop/meeting-notes.png"}'
)

texts = st.text(st.characters(exclude_categories=()), max_size=200)  # lone surrogates too
calls = st.builds(ToolCall, id=st.text(max_size=5), name=st.text(max_size=10), arguments=texts)
messages = st.one_of(
    st.builds(UserMessage, texts),
    st.builds(Note, texts),
    st.builds(ToolMessage, call_id=st.text(max_size=5), tool=st.text(max_size=5), text=texts),
    st.builds(AssistantMessage, texts, st.lists(calls, max_size=3).map(tuple)),
)
sizes = st.lists(messages, max_size=6).map(lambda said: total(map(size_of, said)))
reports = st.lists(st.tuples(sizes, st.integers(-5, 5_000)), max_size=8)
any_rates = st.sampled_from((CLASSES, LOCALCOWORK, BUDDY, Rates.ratios(prose=1, json=9)))


def total(several: Iterable[Size]) -> Size:
    return sum(several, Size())


def after(gauge: Gauge, told: Iterable[tuple[Size, int]]) -> Gauge:
    for size, reported in told:
        gauge = gauge.learn(size, reported)
    return gauge


def counts(size: Size) -> dict[str, int]:
    return {name: count for name, count in zip(COMPONENTS, size.counts, strict=True) if count}


# --- sizes


def test_a_size_tells_characters_by_use_and_by_class() -> None:
    text = "Das heißt: 42 Иван, 中文 かな 한 😀\n  – okOk"

    assert counts(size_of(UserMessage(text))) == {
        "messages": 1,
        "prose": 38,
        "lower": 9,
        "upper": 2,
        "digits": 2,
        "punctuation": 2,
        "spaces": 10,
        "newlines": 1,
        "accented": 1,
        "cyrillic": 4,
        "han": 2,
        "kana": 2,
        "hangul": 1,
        "symbols": 1,
        "emoji": 1,
        "words": 7,
        "numbers": 1,
        "humps": 1,
        "marks": 2,
    }


def test_what_a_message_is_decides_how_its_characters_are_used() -> None:
    call = ToolCall("1", "move", ADR_006)
    tool = ToolSpec(name="move", description="Move a file.", parameters='{"type": "object"}')

    assert counts(size_of(ToolMessage("1", "move", "12")))["json"] == 2
    assert counts(size_of(Note("12")))["prose"] == 2
    assert counts(size_of_system("12"))["prose"] == 2
    assert counts(size_of_tools([tool, tool]))["definitions"] == 2 * (4 + 12 + 18)
    assert size_of_tools([tool]).messages == 0
    asked = size_of(AssistantMessage("ok", (call, call)))
    assert (asked.messages, asked.calls, asked.characters) == (1, 2, 2 + 2 * (4 + len(ADR_006)))


@given(sizes, sizes, sizes)
def test_sizes_add_and_subtract_like_numbers(a: Size, b: Size, c: Size) -> None:
    assert a + Size() == a
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a - a == Size()
    assert hash(a + b) == hash(b + a)


@given(texts, texts)
def test_cutting_a_text_in_two_changes_only_beginnings_and_those_by_one(a: str, b: str) -> None:
    whole = size_of_system(a + b)
    parts = size_of_system(a) + size_of_system(b)

    change = (parts - whole).counts
    assert change[0] == 1
    assert change[1:-4] == (0,) * (len(COMPONENTS) - 5)
    assert all(abs(beginnings) <= 1 for beginnings in change[-4:])


@given(texts)
def test_every_character_has_one_class(text: str) -> None:
    size = size_of_system(text)

    assert sum(size.counts[5:-4]) == len(text) == size.characters


# --- the seeds' ratios


def test_the_example_of_adr_006_has_the_tokens_it_says() -> None:
    size = size_of(ToolMessage("1", "move", ADR_006))

    def tokens(ratio: float) -> int:
        return Gauge(Rates.ratios(json=ratio, per_message=0)).expect(size).tokens

    assert (tokens(4.0), tokens(2.8)) == (28, 40)


def test_localcowork_charges_four_a_message_and_ten_a_call() -> None:
    said = AssistantMessage("x" * 32, (ToolCall("1", "move", "x" * 24),))

    assert Gauge(LOCALCOWORK).expect(size_of(said)).tokens == 10 + 10 + 4 + 10


def test_buddy_charges_sixteen_characters_a_message() -> None:
    assert Gauge(BUDDY).expect(size_of(UserMessage("x" * 400))).tokens == (400 + 16) // 4


@given(sizes, reports, st.sampled_from((LOCALCOWORK, BUDDY)))
def test_rates_that_do_not_learn_stay_as_they_are_and_take_no_margin(
    size: Size, told: list[tuple[Size, int]], rates: Rates
) -> None:
    gauge = after(Gauge(rates), told)

    assert gauge == Gauge(rates)
    assert gauge.expect(size).safe == gauge.expect(size).tokens


# --- expecting


@given(any_rates, reports, sizes, sizes)
def test_an_expectation_is_never_negative_and_the_safe_one_never_smaller(
    rates: Rates, told: list[tuple[Size, int]], a: Size, b: Size
) -> None:
    gauge = after(Gauge(rates), told)

    for size in (a, a + b, a - b, Size()):
        expected = gauge.expect(size)
        assert 0 <= expected.tokens <= expected.safe


@given(sizes, st.integers(1, 5_000))
def test_the_size_last_reported_is_expected_as_reported(size: Size, reported: int) -> None:
    gauge = Gauge()
    if gauge.believes(size, reported):
        assert gauge.learn(size, reported).expect(size).tokens == reported


def test_a_script_never_reported_widens_the_margin() -> None:
    latin = size_of_system("The quick brown fox jumps over the lazy dog. " * 40)
    gauge = after(Gauge(), [(latin, 440), (latin + latin, 850)])
    chinese = size_of(UserMessage("敏捷的棕色狐狸跳过了懒狗" * 40))

    def margin(gauge: Gauge, size: Size) -> float:
        expected = gauge.expect(gauge.size + size)
        return (expected.safe - expected.tokens) / (expected.tokens - gauge.tokens)

    assert margin(gauge, chinese) > 0.6
    assert margin(gauge, latin) < 0.4
    learned = gauge.learn(gauge.size + chinese, gauge.tokens + 700)
    assert margin(learned, chinese) < 0.4


@given(reports, st.lists(messages, min_size=1, max_size=6), st.data())
def test_to_leave_messages_out_is_never_expected_to_cost_more(
    told: list[tuple[Size, int]], said: list[Message], data: st.DataObject
) -> None:
    size = total(map(size_of, said))
    gauge = after(Gauge(), told)
    gauge = gauge.learn(size, data.draw(st.integers(1, 5_000)))

    for message in said:
        less = size - size_of(message)
        assert gauge.expect(less).safe <= gauge.expect(size).safe
        size = less


# --- learning


@given(reports)
def test_learning_the_same_gives_the_same_gauge(told: list[tuple[Size, int]]) -> None:
    assert after(Gauge(), told) == after(Gauge(), told)
    assert hash(after(Gauge(), told)) == hash(after(Gauge(), told))


@given(reports)
def test_weights_stay_within_reach_of_the_generic_ones(told: list[tuple[Size, int]]) -> None:
    learned = after(Gauge(), told).weights

    for first, weight in zip(CLASSES.weights, learned, strict=True):
        assert first / REACH <= weight <= first * REACH


@pytest.mark.parametrize("reported", [-1, 0, 300, 7_000, 90_000])
def test_a_report_that_cannot_be_true_is_not_believed_and_changes_nothing(reported: int) -> None:
    text = size_of_system("The quick brown fox jumps over the lazy dog. " * 100)
    gauge = Gauge().learn(text, 1_100)

    assert gauge.believes(text, 1_200)
    assert not gauge.believes(text, reported)
    assert gauge.learn(text, reported) == gauge


def test_a_server_that_cuts_the_prompt_in_silence_is_not_believed() -> None:
    text = size_of_system("The quick brown fox jumps over the lazy dog. " * 300)
    gauge = after(Gauge(), [(text, 3_100), (text + text, 4_096)])

    assert gauge.tokens == 4_096  # the first time it might be true
    assert not gauge.believes(text + text + text, 4_096)
    assert gauge.believes(text, 3_100)  # less was sent, so less is right


def test_one_odd_report_bends_the_weights_but_does_not_break_them() -> None:
    session = Session(seed=5)
    gauge = after(Gauge(), [session.next() for _ in range(12)])
    size, truth = session.next()
    odd = gauge.learn(size, round(truth * 1.3))
    text = size_of(UserMessage("read the Invoice of our neighbour, it is due. " * 20))

    def price(gauge: Gauge) -> int:
        return gauge.expect(gauge.size + text).tokens - gauge.tokens

    assert odd.tokens == round(truth * 1.3)
    assert price(odd) == pytest.approx(price(gauge), rel=0.3)


class Session:
    """A conversation, counted by an invented tokenizer and template that no rates know."""

    kinds: tuple[Callable[[random.Random], str], ...] = (
        lambda r: " ".join(r.choice(["read", "the", "Invoice", "of", "our"]) for _ in range(300)),
        lambda r: ",".join(str(r.randrange(10**6)) for _ in range(150)),
        lambda r: '{"path": "/home/user/report", "ok": true},\n' * r.randrange(5, 40),
        lambda r: "".join(r.choice("的一是不了人我在有他") for _ in range(r.randrange(50, 400))),
        lambda r: "".join(r.choice("привет мир как дела") for _ in range(r.randrange(50, 900))),
    )

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.left = self.random.sample(self.kinds, len(self.kinds))  # each kind comes early
        self.size = Size()
        self.tokens = 31.0

    def next(self) -> tuple[Size, int]:
        """One more message; the size of all so far and its true tokens."""
        kind = self.left.pop() if self.left else self.random.choice(self.kinds)
        text = kind(self.random)
        self.size += size_of(UserMessage(text))
        rates = {"digits": 1 / 2, "lower": 1 / 3.7, "upper": 0.5, "punctuation": 0.6}
        rates |= {"newlines": 1, "han": 1.1, "cyrillic": 0.45, "messages": 6}
        counted = counts(size_of(UserMessage(text)))
        self.tokens += sum(rate * counted.get(name, 0) for name, rate in rates.items())
        return self.size, round(self.tokens)


@given(st.integers(0, 10_000))
def test_an_unknown_tokenizer_is_learned_within_three_percent_in_ten_requests(seed: int) -> None:
    session = Session(seed)
    gauge = after(Gauge(), [session.next() for _ in range(10)])

    for _ in range(5):
        size, truth = session.next()
        expected = gauge.expect(size)
        assert expected.tokens == pytest.approx(truth, rel=0.03)
        assert expected.safe >= truth * 0.99
        gauge = gauge.learn(size, truth)


@given(st.integers(0, 10_000))
def test_what_is_learned_holds_after_an_eviction(seed: int) -> None:
    session = Session(seed)
    told = [session.next() for _ in range(12)]
    gauge = after(Gauge(), told)
    (gone, gone_tokens), (size, truth) = told[4], told[-1]
    (first, first_tokens) = told[0]

    left, left_tokens = size - gone + first, truth - gone_tokens + first_tokens
    assert gauge.expect(left).tokens == pytest.approx(left_tokens, rel=0.10)


# --- refusals


@given(any_rates, reports, sizes, st.integers(0, 200_000))
def test_a_refused_size_is_expected_to_exceed_the_window(
    rates: Rates, told: list[tuple[Size, int]], size: Size, window: int
) -> None:
    gauge = after(Gauge(rates), told).refused(size, window)

    assert gauge.expect(size).tokens > window


@given(any_rates, reports, sizes, st.integers(1, 100_000))
def test_each_refusal_raises_what_is_expected(
    rates: Rates, told: list[tuple[Size, int]], size: Size, window: int
) -> None:
    gauge = after(Gauge(rates), told)

    for _ in range(4):
        before = gauge.expect(size).tokens
        gauge = gauge.refused(size, window)
        assert gauge.expect(size).tokens > before or before == window == 0


@pytest.mark.parametrize("rates", [CLASSES, LOCALCOWORK, BUDDY])
def test_smaller_requests_shrink_with_a_refused_one(rates: Rates) -> None:
    half = size_of_system("The quick brown fox jumps over the lazy dog. " * 100)
    gauge = Gauge(rates).refused(half + half, 8_192)

    assert gauge.expect(half + half).tokens == 8_193
    assert gauge.expect(half).tokens == pytest.approx(4_096, rel=0.03)


def test_a_report_corrects_what_a_refusal_made_of_smaller_requests() -> None:
    part = size_of_system("The quick brown fox jumps over the lazy dog. " * 100)
    gauge = Gauge().refused(part + part + part, 8_192).learn(part, 1_020)

    assert gauge.expect(part).tokens == 1_020
    assert gauge.expect(part + part).tokens == pytest.approx((1_020 + 8_193) / 2, rel=0.02)
    assert gauge.expect(part + part + part).tokens == 8_193


def test_a_larger_request_that_was_accepted_takes_the_refusal_back() -> None:
    part = size_of_system("The quick brown fox jumps over the lazy dog. " * 100)
    refused = Gauge().learn(part, 1_020).refused(part + part, 4_096)

    accepted = refused.learn(part + part + part, 3_020)

    assert accepted.refusal is None
    assert accepted.expect(part + part).tokens == pytest.approx(2_020, rel=0.05)


def test_a_refusal_below_what_was_accepted_before_is_still_heard() -> None:
    part = size_of_system("The quick brown fox jumps over the lazy dog. " * 100)
    gauge = Gauge().learn(part + part, 2_020)

    smaller = gauge.refused(part, 2_048)

    assert smaller.expect(part).tokens == 2_049
    assert replace(smaller, refusal=None) == gauge
