"""What a model is shown of something too long keeps its promises, whatever the text."""

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.cut import cut, digest_arguments, shorten_arguments
from holdfast.core.digest import digest
from holdfast.core.tools import Keep

ANY_CHARACTER = st.characters() | st.characters(categories=("Cs", "Mn", "Cc", "Zl", "Zp"))
ANY_TEXT = st.text(ANY_CHARACTER | st.sampled_from('{}[]",:\\/<>\n\u200d\ufe0f 0aZ'), max_size=400)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6)
    ),
    max_leaves=40,
)
ANY_RESULT = (
    ANY_TEXT
    | ANY_JSON.map(json.dumps)
    | ANY_JSON.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1))
    | st.builds(lambda value, end: json.dumps(value)[:end], ANY_JSON, st.integers(1, 300))
)
ANY_OBJECT = st.dictionaries(st.text(max_size=12), ANY_JSON, max_size=8).map(json.dumps)


# cut


def test_a_text_that_fits_is_not_touched() -> None:
    assert cut("a\nb", 3) == "a\nb"
    assert cut("", 0) == ""
    assert cut("", -5) == ""


def test_a_cut_text_says_how_long_it_was() -> None:
    assert cut("x" * 6001, 6000) == "x" * 6000 + (
        "\n[... truncated: showing first 6000 of 6001 chars]"
    )


def test_a_tail_is_announced_before_it_begins() -> None:
    assert cut("0123456789", 4, Keep.TAIL) == "[... truncated: showing last 4 of 10 chars]\n6789"


def test_both_ends_are_kept_around_the_notice() -> None:
    assert cut("0123456789", 5, Keep.ENDS) == (
        "012\n[... truncated: showing first 3 and last 2 of 10 chars]\n89"
    )


def test_the_notice_can_say_how_to_read_on() -> None:
    assert cut("0123456789", 4, more="Read on with read_result(c1, 4).") == (
        "0123\n[... truncated: showing first 4 of 10 chars. Read on with read_result(c1, 4).]"
    )


def test_without_room_only_the_notice_is_left() -> None:
    assert cut("0123456789", 0, Keep.TAIL) == "[... truncated: showing first 0 of 10 chars]"
    assert cut("0123456789", -1) == "[... truncated: showing first 0 of 10 chars]"


def test_what_is_drawn_as_one_is_not_parted() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert cut("ae\u0301i", 2).startswith("a\n")
    assert cut(f"ab{family}c", 4).startswith("ab\n")
    assert cut("ab\u2764\ufe0fc", 3).startswith("ab\n")
    assert cut("ab\ud83d\ude00c", 3).startswith("ab\n")
    assert cut("ab\ud83d\ude00c", 2, Keep.TAIL).endswith("]\nc")


@given(ANY_TEXT, st.integers(-3, 420), st.sampled_from(Keep))
@example("e" + "\u0301" * 100, 50, Keep.ENDS)
@example("\ud83d\ude00" * 100, 33, Keep.ENDS)
def test_a_cut_shows_at_most_its_cap_and_names_the_whole_length(
    text: str, cap: int, keep: Keep
) -> None:
    shown = cut(text, cap, keep)
    if len(text) <= max(cap, 0):
        assert shown == text
        return
    head, found, tail = re.split(
        rf"(\[\.\.\. truncated: showing .* of {len(text)} chars\])", shown, maxsplit=1
    )
    head, tail = head.removesuffix("\n"), tail.removeprefix("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= max(cap, 0)
    assert [int(n) for n in re.findall(r"(?:first|last) (\d+)", found)] == {
        Keep.HEAD: [len(head)],
        Keep.TAIL: [len(tail)],
        Keep.ENDS: [len(head), len(tail)],
    }.get(keep if cap > 0 else Keep.HEAD)


# digest


def test_a_short_result_is_its_own_digest() -> None:
    assert digest('{"id": 7,\n  "ok": true}\n', 100) == '{"id": 7, "ok": true}'


def test_ids_and_dates_outlive_prose_and_flags() -> None:
    order = {
        "description": "A long story about everything that happened to this order. " * 9,
        "gift": True,
        "order_id": "W-4418",
        "customer": {"name": "Ana Ruiz", "email": "ana@ruiz.es"},
        "placed": "2024-05-20",
        "total": 129.50,
    }

    assert digest(json.dumps(order), 110) == (
        "order_id=W-4418; name=Ana Ruiz; email=ana@ruiz.es; placed=2024-05-20; total=129.5"
        " … [of 684 chars]"
    )


def test_a_list_of_records_says_its_keys_once_and_what_is_always_the_same_once() -> None:
    files = [{"path": f"/inbox/scan_{n}.pdf", "size": 900 + n, "owner": "ana"} for n in range(9)]

    assert digest(json.dumps({"files": files}), 150) == (
        "files(path,size)=/inbox/scan_0.pdf,900|/inbox/scan_1.pdf|/inbox/scan_2.pdf"
        "|/inbox/scan_3.pdf|/inbox/scan_4.pdf|/inbox/scan_5.pdf +3 … [of 551 chars]"
    )
    assert digest(json.dumps({"files": files[:4]}), 180) == (
        "files(path,size,owner=ana)=/inbox/scan_0.pdf,900|/inbox/scan_1.pdf,901"
        "|/inbox/scan_2.pdf,902|/inbox/scan_3.pdf,903 … [of 251 chars]"
    )


def test_records_under_their_ids_are_a_list_too() -> None:
    cards = {
        "cards": {
            f"card_{n}": {"id": f"card_{n}", "kind": "visa", "limit": 7 * n} for n in (417, 502)
        }
    }

    assert digest(json.dumps(cards), 100) == (
        "cards(key,kind=visa,limit)=card_417,2919|card_502,3514 … [of 137 chars]"
    )


def test_what_only_some_records_say_is_not_said_of_all() -> None:
    cards = [{"id": f"card_{n}", "brand": "visa"} for n in (417, 502)] + [{"id": "voucher_9"}]

    assert digest(json.dumps(cards * 3), 90) == (
        "(id,brand)=card_417,visa|card_502,visa|voucher_9 … [of 285 chars]"
    )


def test_json_that_was_cut_is_still_read_as_json() -> None:
    rows = [{"id": f"evt_{n}", "note": "so it goes, " * 20} for n in range(40)]

    assert digest(cut(json.dumps(rows), 2000), 90) == (
        "(id)=evt_0|evt_1|evt_2|evt_3|evt_4|evt_5|evt_6|evt_7 … [of 2,051 chars]"
    )


def test_json_within_json_is_read_through() -> None:
    inner = json.dumps({"files": [f"Receipt_{n}.pdf" for n in range(20)]})

    assert digest(json.dumps([{"type": "text", "text": inner}]), 90) == (
        "files=Receipt_0.pdf|Receipt_1.pdf|Receipt_2.pdf|Receipt_3.pdf +16 … [of 433 chars]"
    )


def test_one_record_a_line_is_a_list() -> None:
    lines = "\n".join(json.dumps({"id": f"u-{n}", "ok": n % 2 == 0}) for n in range(30))

    assert digest(lines, 80) == (
        "(id)=u-0|u-1|u-2|u-3|u-4|u-5|u-6|u-7|u-8|u-9|u-10|u-11|u-12 +17 … [of 814 chars]"
    )


def test_plain_text_keeps_its_first_words_its_values_and_its_last_words() -> None:
    text = (
        "The parcel was handed over to the carrier this morning and will be on its way to you in a"
        " short while. Your order W-4418 of 2024-05-20 goes to Ana Ruiz, and the invoice is in"
        " /var/mail/inv_77.pdf as always. Status: shipped. Questions are answered by"
        " help@example.com on every working day, so do not hesitate to write to us."
    )

    assert digest(text, 190) == (
        "The parcel was handed over to the carrier… Your W-4418 2024-05-20 Ana Ruiz"
        " /var/mail/inv_77.pdf Status: shipped Questions help@example.com"
        " … do not hesitate to write to us. … [of 323 chars]"
    )


def test_a_list_of_plain_names_is_a_list_of_values() -> None:
    names = ["src", "docs", "tests", "lab", "changes", "examples", "build", "dist", "scripts"]

    assert digest("\n".join(["this is what the folder holds", *names]), 80) == (
        "this is what the… src docs tests lab changes examples … scripts … [of 84 chars]"
    )


def test_a_page_is_read_without_its_markup() -> None:
    page = (
        "<html><script>var x = 'y_1';</script><h1>Order 48213</h1><p class='wide-2'>Placed by"
        ' <a href="mailto:ana@ruiz.es">Ana Ruiz</a></p>' + "<hr>" * 40
    )

    assert digest(page, 90) == (
        "Order 48213 Placed by mailto:ana@ruiz.es Ana Ruiz … [of 290 chars]"
    )


def test_chinese_text_gives_up_its_numbers_dates_and_files() -> None:
    text = (
        "订单已经创建成功，我们会尽快安排发货。订单号:CN2024-8831，联系电话13800138000，"
        "预计于2024年5月23日送达。合同在/data/采购合同.pdf，请及时查收并妥善保管。如有疑问，欢迎随时与我们联系，"
        "我们的客服人员会在第一时间为您解答，谢谢您的支持。"
    )

    assert digest(text, 120) == (
        "订单已经创建成功，我们会尽快安排发货。订单号:CN2024-8831… 13800138000 2024年5月23日"
        " 合同在/data/采购合同.pdf …，谢谢您的支持。 … [of 136 chars]"
    )


def test_where_there_is_no_room_the_length_is_all_that_is_said() -> None:
    assert digest("word " * 100, 28) == "… [of 500 chars]"
    assert digest("word " * 100, 5) == "… [of"
    assert digest("word " * 100, 0) == ""


@given(ANY_RESULT, st.integers(-2, 400))
@example("[" * 3000, 100)
@example('{"a":"' * 500, 100)
@example("\ud83d" * 200, 60)
@example("word " * 100, 29)
@example("<!--" * 200, 60)
@example(json.dumps([[[{"a": [{"": 1}, {"": "\n"}]}]] for _ in range(30)]), 40)
def test_a_digest_is_one_line_that_fits_and_can_be_sent(text: str, room: int) -> None:
    line = digest(text, room)

    assert len(line) <= max(room, 0)
    assert len(line.splitlines()) <= 1
    assert line == digest(text, room)
    line.encode()


@given(ANY_RESULT, st.integers(40, 400))
def test_a_digest_that_leaves_something_out_names_the_length(text: str, room: int) -> None:
    if len(" ".join(text.split())) > room:
        assert digest(text, room).endswith(f"… [of {len(text):,} chars]")


def test_of_an_endless_text_both_ends_are_looked_at() -> None:
    log = "first_id=a1\n" + "nothing to see here\n" * 300_000 + "last_id=z9\n"

    assert digest(log, 100) == (
        "first_id=a1 nothing to see here nothing to see here nothing to… last_id=z9"
        " … [of 6,000,023 chars]"
    )


# the arguments of a call


def test_arguments_are_told_as_pairs() -> None:
    assert digest_arguments('{"path": "a.txt", "lines": [1, 2], "all": true}', 80) == (
        "path=a.txt, lines=[1,2], all=true"
    )


def test_a_long_argument_keeps_both_its_ends() -> None:
    arguments = json.dumps({"path": "/home/ana/notes.md", "content": "Dear all,\n" + "la " * 400})

    assert digest_arguments(arguments, 60) == (
        "path=/home/ana/notes.md, content=Dear all, la …a la la la la"
    )


def test_arguments_that_are_no_object_are_told_as_they_are() -> None:
    assert digest_arguments("[1,\n2]", 20) == "[1, 2]"
    assert digest_arguments('{"path": "a.t', 20) == '{"path": "a.t'


@given(ANY_RESULT | ANY_OBJECT, st.integers(-2, 300))
def test_told_arguments_are_one_line_that_fits(arguments: str, room: int) -> None:
    line = digest_arguments(arguments, room)

    assert len(line) <= max(room, 0)
    assert len(line.splitlines()) <= 1
    line.encode()


def test_arguments_that_fit_are_not_touched() -> None:
    assert shorten_arguments('{ "a" : 1 }', 40) == '{ "a" : 1 }'


def test_long_strings_in_arguments_are_cut_first() -> None:
    arguments = json.dumps({"path": "a.txt", "content": "x" * 5000, "mode": "w"})

    assert shorten_arguments(arguments, 80) == (
        '{"path":"a.txt","content":"xxxxxxxxxxxxxxxxxxxxxxxx[... 5000 chars]","mode":"w"}'
    )


def test_then_what_is_nested_gives_way() -> None:
    arguments = json.dumps({"id": 7, "rows": [{"n": n} for n in range(90)], "by": {"x": "y"}})

    assert shorten_arguments(arguments, 80) == (
        '{"id":7,"rows":"[... 90 items]","by":"[... 1 keys]"}'
    )


def test_and_last_the_later_keys() -> None:
    arguments = json.dumps({f"key_{n}": n for n in range(90)})

    assert shorten_arguments(arguments, 60) == (
        '{"key_0":0,"key_1":1,"key_2":2,"key_3":3,"…":"86 more"}'
    )


def test_what_is_no_object_becomes_an_empty_one() -> None:
    for text in ("", "[1]", '"a"', "{", '{"a": NaN}', "{" * 100_000):
        assert shorten_arguments(text, 100) == "{}"


@given(ANY_RESULT | ANY_OBJECT, st.integers(-2, 300))
@example('{"a": 1e999, "b": "' + "x" * 100 + '"}', 50)
@example('{"a": "' + "\\ud800" * 50 + '"}', 50)
@example('{"a": ' + "[" * 200 + "]" * 200 + "}", 50)
def test_shortened_arguments_are_a_json_object_that_fits(arguments: str, cap: int) -> None:
    text = shorten_arguments(arguments, cap)

    assert isinstance(json.loads(text, parse_constant=lambda name: 1 / 0), dict)
    assert len(text) <= max(cap, 40)
    assert text in ("{}", arguments) or len(arguments) > max(cap, 40)
