"""The catalogue of models: which rule fits a name, what is known then, and what it costs."""

import re
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.limits import Usage
from holdfast.models.catalog import (
    BadCatalog,
    Known,
    Prices,
    Rules,
    WindowFrom,
    cost,
    doubt,
    lookup,
    rules,
)
from holdfast.models.spoken import Dialect

PAGE = Path(__file__).parents[2] / "docs/reference/model-catalogue.md"
OURS = rules()


def own(folder: Path, text: str) -> Rules:
    file = folder / "models.toml"
    file.write_text(text, encoding="utf-8")
    return rules(file)


def window(name: str, known: Rules = OURS) -> int:
    return lookup(name, known).window


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "qwen3:8b",
        "qwen3:8b-q4_K_M",
        "ollama/qwen3:8b",
        "Qwen/Qwen3-8B",
        "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M",
        "Qwen_Qwen3-8B-Q4_K_M.gguf",
        "C:\\models\\Qwen3-8B-UD-Q5_K_XL.gguf",
        "mlx-community/Qwen3-8B-4bit",
        "qwen3-8b@q4_k_m",
    ],
)
def test_one_model_is_known_by_all_the_names_it_goes_by(name: str) -> None:
    assert lookup(name, OURS) == Known(
        name=name,
        window=40_960,
        window_from=WindowFrom.CATALOGUE,
        tools=True,
        vision=False,
        reasoning=True,
        source="gguf, 2026-11-16",
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qwen3:4b", 262_144),
        ("qwen3:4b-instruct-2507-q8_0", 262_144),
        ("qwen/qwen3-30b-a3b-2507", 262_144),
        ("qwen3.5:9b", 262_144),
        ("qwen2.5-coder:1.5b", 32_768),
        ("llama3:8b", 8_192),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", 131_072),
        ("Hermes-3-Llama-3.1-8B", 131_072),
        ("gemma3:1b", 32_768),
        ("google_gemma-3-12b-it-Q4_K_M.gguf", 131_072),
        ("gemma4:26b", 262_144),
        ("gemma4", 131_072),
        ("mixtral:8x22b", 65_536),
        ("mixtral:8x7b", 32_768),
        ("mistralai/Devstral-Small-2507", 131_072),
        ("devstral-small-2:24b", 262_144),
        ("deepseek-r1:7b", 131_072),
        ("deepseek-r1:671b", 163_840),
        ("gpt-oss:20b", 131_072),
        ("phi4", 16_384),
        ("gguf/SmolLM2-135M-Instruct.Q4_1.gguf", 8_192),
        ("MiniMax-M2.5", 196_608),
        ("gpt-5", 400_000),
        ("claude-sonnet-4-5-20250929", 200_000),
    ],
)
def test_a_member_of_a_family_has_its_own_window(name: str, expected: int) -> None:
    assert window(name) == expected


@pytest.mark.parametrize(
    "packed",
    [
        ".gguf",
        "-Q4_K_M.gguf",
        ".Q4_1.gguf",
        "-UD-IQ2_XXS.gguf",
        "-Q8_0-00001-of-00003.gguf",
        "-GGUF:Q4_K_M",
        "-MLX-4bit",
        "-AWQ",
        "-GPTQ-Int4",
        "-FP8",
        "-NVFP4",
        "-bf16",
        "@4bit",
        ":latest",
    ],
)
def test_how_a_model_was_packed_is_no_part_of_its_name(packed: str, tmp_path: Path) -> None:
    known = own(tmp_path, '[[rule]]\nexact = ["zebra-8b"]\nwindow = 8')

    assert window(f"them/Zebra-8B{packed}", known) == 8


def test_a_pattern_does_not_fit_a_longer_number(tmp_path: Path) -> None:
    known = own(tmp_path, '[[rule]]\ncontains = ["zebra-3"]\nwindow = 1_000')

    names = ("zebra3", "zebra-3-8b", "my-zebra3.gguf", "zebra3.5", "zebra-30b", "zebra3.gguf")
    assert [window(name, known) for name in names] == [1_000, 1_000, 1_000, 8_192, 8_192, 1_000]


def test_a_tag_counts_only_where_a_rule_names_it(tmp_path: Path) -> None:
    known = own(
        tmp_path,
        '[[rule]]\nexact = ["zebra:8b"]\nwindow = 8\n'
        '[[rule]]\nprefix = ["zebra:70"]\nwindow = 70\n'
        '[[rule]]\nexact = ["zebra"]\nwindow = 1\n'
        '[[rule]]\ncontains = ["instruct"]\nwindow = 5',
    )

    names = ("zebra:8b", "zebra:8b-q4_K_M", "zebra:70b", "zebra:70", "zebra:latest", "x:instruct")
    assert [window(name, known) for name in names] == [8, 8, 70, 70, 1, 8_192]


def test_a_folder_counts_only_where_a_rule_names_it(tmp_path: Path) -> None:
    known = own(
        tmp_path,
        '[[rule]]\nexact = ["openrouter/acme/zebra"]\nwindow = 1\n'
        '[[rule]]\ncontains = ["acme"]\nwindow = 2\n'
        '[[rule]]\nprefix = ["zebra"]\nwindow = 3',
    )

    names = ("OpenRouter/Acme/Zebra", "other/acme/zebra", "acme-zebra")
    assert [window(name, known) for name in names] == [1, 3, 2]


def test_a_dated_name_is_that_of_its_model_unless_it_has_a_rule() -> None:
    names = ("gpt-4o", "gpt-4o-2024-11-20", "gpt-4o-2024-05-13", "openai/gpt-4o-2024-08-06")

    now, then = (
        Prices(input=2_500_000, output=10_000_000, cached=1_250_000),
        Prices(input=5_000_000, output=15_000_000),
    )
    assert [lookup(name, OURS).prices for name in names] == [now, now, then, now]


@given(st.text())
def test_every_name_gets_a_window(name: str) -> None:
    assert window(name) > 0


def test_a_long_and_hostile_name_is_compared_in_no_time() -> None:
    assert window("-q4" + "_q4" * 50_000 + "!") == 8_192
    assert window("-q4" + "_q4" * 100 + "!") == 8_192


# --- what is known ------------------------------------------------------------------------------


def test_settings_are_believed_before_the_server_and_that_before_the_catalogue() -> None:
    found = [
        lookup("qwen3:8b", OURS, settings=1_000, server=2_000),
        lookup("qwen3:8b", OURS, server=2_000),
        lookup("qwen3:8b", OURS),
        lookup("nobody-knows", OURS),
    ]

    assert [(each.window, each.window_from) for each in found] == [
        (1_000, WindowFrom.SETTINGS),
        (2_000, WindowFrom.SERVER),
        (40_960, WindowFrom.CATALOGUE),
        (8_192, WindowFrom.ASSUMED),
    ]


def test_a_window_that_nobody_confirmed_is_doubted_in_a_sentence() -> None:
    assert doubt(lookup("nobody-knows", OURS)) == (
        "The window of 'nobody-knows' is not known; 8192 tokens are assumed. Set it in the "
        'settings, or in your own catalogue of models with exact = ["nobody-knows"] and window = '
        "the tokens it can read."
    )
    assert doubt(lookup("qwen3:8b", OURS)).startswith(
        "The server does not say what window 'qwen3:8b' was loaded with; it was made for 40960 "
        "tokens, and may have been given less."
    )
    assert doubt(lookup("qwen3:8b", OURS, server=4_096)) == ""
    assert doubt(lookup("nobody-knows", OURS, settings=4_096)) == ""


def test_no_reply_is_longer_than_the_window() -> None:
    assert lookup("gpt-5", OURS, settings=4_096).output == 4_096


def test_a_model_that_knows_no_tools_is_told_of_them_in_words() -> None:
    assert lookup("gemma3:12b", OURS).dialect is Dialect.ACTIONS
    assert lookup("qwen3:8b", OURS).dialect is None


def test_our_prices_are_only_for_names_that_are_meant_exactly() -> None:
    priced = [rule for file in OURS for rule in file if rule.prices]

    assert [rule for rule in priced if rule.prefix or rule.contains] == []
    assert lookup("gpt-5-something-new", OURS).prices is None
    assert lookup("my-qwen3-8b-claude-opus-4-5-distill", OURS).prices is None


def test_each_of_our_rules_is_reached_by_its_own_names() -> None:
    hidden = [
        pattern
        for file in OURS
        for rule in file
        for pattern in (*rule.exact, *rule.prefix, *rule.contains)
        if (known := lookup(pattern, OURS)).window != rule.window or known.prices != rule.prices
        if pattern not in EXACT_TOO
    ]

    assert hidden == []


EXACT_TOO = {pattern for file in OURS for rule in file for pattern in rule.exact}
"""A prefix may be a whole name as well, and then another rule says more of it."""


def test_our_file_says_where_its_numbers_are_from_and_of_which_day() -> None:
    text = files("holdfast.models").joinpath("catalog.toml").read_text()

    assert [rule for file in OURS for rule in file if not rule.source] == []
    assert isinstance(tomllib.loads(text)["snapshot"], date)


# --- cost ---------------------------------------------------------------------------------------

SONNET = lookup("claude-sonnet-4-5", OURS).prices


def test_the_cached_part_of_a_prompt_has_its_own_price() -> None:
    assert SONNET == Prices(input=3_000_000, output=15_000_000, cached=300_000, written=3_750_000)
    usage = Usage(prompt=1_000, cached=800, completion=10)

    assert cost(usage, SONNET) == 200 * 3 + 800 * 3 // 10 + 10 * 15
    assert cost(usage, SONNET, written=200) == 200 * 375 // 100 + 800 * 3 // 10 + 10 * 15


def test_what_a_request_costs_is_rounded_up_once() -> None:
    tenth = Prices(input=100_000, output=100_000)

    assert cost(Usage(prompt=1, completion=0), tenth) == 1
    assert cost(Usage(prompt=10, completion=10), tenth) == 2
    assert cost(Usage(), tenth) == 0


def test_a_long_prompt_makes_the_whole_request_dearer() -> None:
    prices = lookup("gemini-2.5-pro", OURS).prices
    assert prices is not None

    assert cost(Usage(prompt=200_000, completion=100), prices) == 200_000 * 5 // 4 + 1_000
    assert cost(Usage(prompt=200_001, completion=100), prices) == (200_001 * 25 + 15_000 + 9) // 10


def test_without_a_price_for_it_the_cached_part_costs_no_less() -> None:
    assert cost(Usage(prompt=10, cached=10), Prices(input=1_000_000, output=0)) == 10


@given(
    st.integers(-5, 10**7), st.integers(-5, 10**7), st.integers(-5, 10**7), st.integers(-5, 10**7)
)
def test_no_report_of_a_server_makes_a_request_cheaper_than_its_cached_price(
    prompt: int, completion: int, cached: int, written: int
) -> None:
    prices = Prices(input=2_000_000, output=4_000_000, cached=1_000_000, written=3_000_000)
    usage = Usage(prompt=prompt, completion=completion, cached=cached)

    least = max(0, prompt) + 4 * max(0, completion)
    assert (
        least <= cost(usage, prices, written=written) <= 3 * max(0, prompt) + 4 * max(0, completion)
    )


# --- a file of the user's -----------------------------------------------------------------------


def test_the_example_in_the_docs_does_what_the_page_says(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    known = own(tmp_path, example[1])

    assert lookup("our-finetune", known) == Known(
        name="our-finetune",
        window=16_384,
        window_from=WindowFrom.CATALOGUE,
        output=2_048,
        dialect=Dialect.ACTIONS,
        tools=True,
        vision=False,
        source="how we trained it",
    )
    assert lookup("qwen3:8b", known) == Known(
        name="qwen3:8b",
        window=16_384,
        window_from=WindowFrom.CATALOGUE,
        tools=True,
        vision=False,
        reasoning=True,
    )
    glm = lookup("openrouter/z-ai/glm-4.6", known)
    assert (glm.window, glm.prices) == (
        200_000,
        Prices(input=600_000, output=2_200_000, cached=110_000),
    )
    assert lookup("ollama/glm-4.6", known).prices is None


def test_the_source_that_is_named_is_the_one_of_the_window(tmp_path: Path) -> None:
    known = own(
        tmp_path,
        'snapshot = 2026-12-24\n[[rule]]\nexact = ["qwen3:8b"]\nsource = "my provider"\n'
        "prices = { input = 1, output = 1 }",
    )

    assert lookup("qwen3:8b", known).source == "gguf, 2026-11-16"


def test_every_key_of_a_rule_is_explained_in_the_docs() -> None:
    keys = set(re.findall(r"^\| `([^|]*)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    text = files("holdfast.models").joinpath("catalog.toml").read_text()
    used = {key for rule in tomllib.loads(text)["rule"] for key in rule}

    assert used <= {key for keys_ in keys for key in keys_.split("`, `")}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("window = ", " is not TOML: Invalid value (at end of document)."),
        ("windw = 5", ": there is no key 'windw'; there are rule and snapshot."),
        ("rule = 5", ": each rule must begin with [[rule]]."),
        ("[rule]\nwindow = 5", ": each rule must begin with [[rule]]."),
        ("rule = [1]", ", rule 1: each rule must begin with [[rule]]."),
        (
            '[[rule]]\nexact = ["a"]\n[[rule]]\nwindow = 5',
            ", rule 2: it fits no model or every model; name some in exact, prefix or contains.",
        ),
        (
            '[[rule]]\ncontains = [""]',
            ", rule 1: it fits no model or every model; name some in exact, prefix or contains.",
        ),
        (
            '[[rule]]\nexact = ["a"]\nwindw = 5',
            ", rule 1: there is no key 'windw'; perhaps 'window' is meant.",
        ),
        ('[[rule]]\nexact = "a"', ", rule 1: exact must be a list of texts, not 'a'."),
        (
            '[[rule]]\nexact = ["a"]\nwindow = "big"',
            ", rule 1: window must be a whole number of tokens, not 'big'.",
        ),
        (
            '[[rule]]\nexact = ["a"]\nwindow = true',
            ", rule 1: window must be a whole number of tokens, not True.",
        ),
        (
            '[[rule]]\nexact = ["a"]\noutput = 0',
            ", rule 1: output must be a whole number of tokens, not 0.",
        ),
        (
            '[[rule]]\nexact = ["a"]\ndialect = "klingon"',
            ", rule 1: dialect must be one of native, actions and json, not 'klingon'.",
        ),
        (
            '[[rule]]\nexact = ["a"]\ncan = ["fly"]',
            ", rule 1: can may hold tools, vision, reasoning and parallel, not 'fly'.",
        ),
        (
            '[[rule]]\nexact = ["a"]\ncan = ["tools"]\ncannot = ["tools"]',
            ", rule 1: 'tools' stands both in can and in cannot.",
        ),
        (
            '[[rule]]\nexact = ["a"]\nprices = { input = 1 }',
            ", rule 1: prices needs input and output.",
        ),
        (
            '[[rule]]\nexact = ["a"]\nprices = { input = nan, output = 1 }',
            ", rule 1: prices.input must be dollars for a million tokens, not nan.",
        ),
        (
            '[[rule]]\nexact = ["a"]\nprices = { input = -1, output = 1 }',
            ", rule 1: prices.input must be dollars for a million tokens, not -1.",
        ),
        (
            '[[rule]]\nexact = ["a"]\nprices = { input = 1, output = 1, long = { input = 1 } }',
            ", rule 1: prices.long needs above, the tokens of a prompt it begins after.",
        ),
        ('[[rule]]\nexact = ["a"]\nsource = 5', ", rule 1: source must be a text, not 5."),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence_that_says_where(
    text: str, wrong: str, tmp_path: Path
) -> None:
    with pytest.raises(BadCatalog) as refused:
        own(tmp_path, text)

    assert str(refused.value) == f"{tmp_path / 'models.toml'}{wrong}"


def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadCatalog, match=r"none\.toml cannot be read: No such file or directory\."):
        rules(tmp_path / "none.toml")
    with pytest.raises(BadCatalog, match=r"binary\.toml is not text in UTF-8\."):
        rules(binary)


def test_a_file_saved_by_an_editor_on_windows_is_read(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_bytes(b'\xef\xbb\xbf[[rule]]\r\nexact = ["zebra"]\r\nwindow = 5\r\n')

    assert window("zebra", rules(file)) == 5
