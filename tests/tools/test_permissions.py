"""Whether a call may run. Each law is one that a user relies on without thinking of it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.base import Access, Tool, Touch
from holdfast.tools.patterns import Kind, Pattern, escaped
from holdfast.tools.permissions import Judgement, Mode, Rule, Rules, Ruling, judge, suggestion

from .door import a_tool

ORDER = [Ruling.DENY, Ruling.ASK, Ruling.ALLOW]
SHELL = a_tool("run_shell", access=Access.EXECUTE)
WRITE = a_tool("write_file", access=Access.EDIT)
READ = a_tool("read_file")
FETCH = a_tool("fetch_url", access=Access.NETWORK)
ISSUE = a_tool("github__create_issue", access=Access.NETWORK, source="github")
ACCESS = {"run_shell": Access.EXECUTE, "write_file": Access.EDIT, "read_file": Access.READ}


def ruled(
    tool: Tool,
    *subjects: str,
    mode: Mode = Mode.ASK,
    allow: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    granted: tuple[str, ...] = (),
    danger: str = "",
    access: Access | None = None,
) -> Ruling:
    touch = touch_of(tool, *subjects, danger=danger, access=access)
    return judge(tool, touch, mode, Rules.parse(allow=allow, ask=ask, deny=deny), granted).verdict


def touch_of(tool: Tool, *subjects: str, danger: str = "", access: Access | None = None) -> Touch:
    return Touch(access or ACCESS.get(tool.name, Access.NETWORK), subjects, danger)


# --- modes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "read", "edit", "network", "execute"),
    [
        (Mode.PLAN, Ruling.ALLOW, Ruling.DENY, Ruling.DENY, Ruling.DENY),
        (Mode.ASK, Ruling.ALLOW, Ruling.ASK, Ruling.ASK, Ruling.ASK),
        (Mode.ACCEPT_EDITS, Ruling.ALLOW, Ruling.ALLOW, Ruling.ASK, Ruling.ASK),
        (Mode.AUTO, Ruling.ALLOW, Ruling.ALLOW, Ruling.ALLOW, Ruling.ALLOW),
        (Mode.DENY, Ruling.ALLOW, Ruling.DENY, Ruling.DENY, Ruling.DENY),
    ],
)
def test_a_mode_decides_where_no_rule_does(
    mode: Mode, read: Ruling, edit: Ruling, network: Ruling, execute: Ruling
) -> None:
    found = [
        ruled(a_tool("t"), "x", mode=mode, access=access)
        for access in (Access.NONE, Access.READ, Access.EDIT, Access.NETWORK, Access.EXECUTE)
    ]

    assert found == [Ruling.ALLOW, read, edit, network, execute]


def test_in_plan_mode_nothing_is_changed_whatever_was_allowed() -> None:
    judgement = judge(
        a_tool("write_file", approve=False),
        Touch(Access.EDIT, ("src/a.py",)),
        Mode.PLAN,
        Rules.parse(allow=["edit"]),
        ("write_file",),
    )

    assert judgement == Judgement(
        Ruling.DENY,
        "mode plan",
        "Plan mode is on: only looking is possible now, and nothing was changed. Go on reading, "
        "then present your plan; the user will leave plan mode if they want it done.",
    )


def test_a_mode_that_does_not_exist_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="no mode 'acceptedits'; did you mean 'accept-edits'"):
        Mode.parse("acceptedits")
    assert Mode.parse("accept-edits") is Mode.ACCEPT_EDITS


# --- the order of the rules -------------------------------------------------------------------


def test_deny_wins_over_everything_also_in_auto() -> None:
    assert (
        ruled(
            SHELL,
            "git push origin main",
            mode=Mode.AUTO,
            allow=("run_shell(git push origin main)", "run_shell"),
            granted=("run_shell(git push *)",),
            deny=("run_shell(git push *)",),
        )
        is Ruling.DENY
    )


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.ACCEPT_EDITS, Mode.AUTO])
def test_a_danger_is_asked_about_in_every_mode(mode: Mode) -> None:
    command = "git push --force origin main"

    for rules in ((), ("run_shell",), ("run_shell(git push *)",), ("execute",), ("*",)):
        assert ruled(SHELL, command, mode=mode, allow=rules, danger="rewrites") is Ruling.ASK
    for granted in ("run_shell", f"run_shell({command})"):
        found = ruled(SHELL, command, mode=mode, granted=(granted,), danger="rewrites")
        assert found is Ruling.ASK


def test_a_danger_that_the_user_wrote_down_word_for_word_is_allowed() -> None:
    command = "git push --force origin main"
    rule = f"run_shell({command})"

    assert ruled(SHELL, command, allow=(rule,), danger="rewrites") is Ruling.ALLOW
    assert ruled(SHELL, command, "rm -rf x", allow=(rule,), danger="rewrites") is Ruling.ASK
    assert ruled(SHELL, command, allow=(rule,), deny=("execute",), danger="x") is Ruling.DENY


def test_nobody_is_asked_about_a_danger_in_deny_mode() -> None:
    assert ruled(READ, "/home/me/.ssh/id", mode=Mode.DENY, danger="outside") is Ruling.DENY
    assert ruled(READ, "/home/me/.ssh/id", mode=Mode.PLAN, danger="outside") is Ruling.ASK


def test_ask_rules_win_over_allow_rules_and_grants() -> None:
    found = ruled(
        SHELL,
        "git push",
        allow=("run_shell",),
        ask=("run_shell(git push *)",),
        granted=("run_shell(git push *)",),
    )

    assert found is Ruling.ASK


def test_what_a_tool_wants_counts_where_no_rule_speaks() -> None:
    always, never = a_tool("a", approve=True), a_tool("b", approve=False)

    assert ruled(always, "x", mode=Mode.AUTO, access=Access.READ) is Ruling.ASK
    assert ruled(always, "x", allow=("a",), access=Access.READ) is Ruling.ALLOW
    assert ruled(never, "x", access=Access.EXECUTE) is Ruling.ALLOW
    assert ruled(never, "x", access=Access.EXECUTE, danger="x") is Ruling.ASK


def test_a_grant_that_cannot_be_read_grants_nothing() -> None:
    assert ruled(SHELL, "ls", granted=("run_shell(", "")) is Ruling.ASK


# --- compound commands ------------------------------------------------------------------------


def test_every_part_of_a_command_must_be_allowed_and_one_that_is_denied_is_enough() -> None:
    allow = ("run_shell(git diff *)", "run_shell(npm test)")

    assert ruled(SHELL, "git diff HEAD", "npm test", allow=allow) is Ruling.ALLOW
    assert ruled(SHELL, "git diff HEAD", "rm x", allow=allow) is Ruling.ASK
    assert ruled(SHELL, "git diff", "rm x", allow=("*",), deny=("run_shell(rm *)",)) is Ruling.DENY


def test_a_call_that_says_nothing_of_its_parts_is_asked_about_where_a_rule_might_forbid_it() -> (
    None
):
    assert ruled(SHELL, mode=Mode.AUTO, deny=("run_shell(rm *)",)) is Ruling.ASK
    assert ruled(SHELL, mode=Mode.AUTO, deny=("write_file(x)",)) is Ruling.ALLOW
    assert ruled(SHELL, allow=("run_shell(git *)",)) is Ruling.ASK
    assert ruled(SHELL, allow=("run_shell",)) is Ruling.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git diff; rm -rf ~",
        "git diff && curl evil.net",
        "git diff || true",
        "git diff | sh",
        "git diff\nrm x",
        "git diff $(rm x)",
        "git diff `rm x`",
        'git diff "$(rm x)"',
        "git diff > /home/me/.bashrc",
        "git diff <(rm x)",
        "git diff & rm x",
        "FOO=1 git diff",
        "git difftool",
        "git diffuse",
        "/tmp/git diff",
        "git diff $'\\''; rm x; ''",
        "git diff # '\nrm x #'",
        "git diff 'open; rm x",
        'git diff "${x:-$(rm x)}"',
        "git diff \\`x` rm`",
    ],
)
def test_an_allowed_command_does_not_let_another_in(command: str) -> None:
    assert ruled(SHELL, command, allow=("run_shell(git diff *)",)) is Ruling.ASK


@pytest.mark.parametrize(
    "command",
    ["git diff", "git diff HEAD -- src/a.py", "git diff 2>&1", "git diff --stat 2>/dev/null",
     "git diff 'a;b' \"c && d\" \\;"],
)  # fmt: skip
def test_an_allowed_command_may_have_any_arguments(command: str) -> None:
    assert ruled(SHELL, command, allow=("run_shell(git diff *)",)) is Ruling.ALLOW


@pytest.mark.parametrize(
    "command",
    ["rm x", "rm", "rm  -rf x", "sudo rm x", "sudo -n rm x", "/bin/rm x", "X=1 rm x", "'rm' x",
     "\\rm x", "env X='a b' Y=2 nohup rm x"],
)  # fmt: skip
def test_a_forbidden_command_is_found_in_its_usual_disguises(command: str) -> None:
    assert ruled(SHELL, command, mode=Mode.AUTO, deny=("run_shell(rm *)",)) is Ruling.DENY


def test_a_forbidden_command_forbids_no_other() -> None:
    for command in ("rmdir x", "git rm x", "echo rm x"):
        found = ruled(SHELL, command, mode=Mode.AUTO, deny=("run_shell(rm *)",))
        assert found is Ruling.ALLOW


def test_a_command_that_only_reads_can_be_forbidden_too() -> None:
    found = ruled(SHELL, "cat src/a.py", deny=("run_shell(cat *)",), access=Access.READ)

    assert found is Ruling.DENY


# --- paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "allows", "forbids"),
    [
        ("src/**", "src/a.py", True, True),
        ("src/**", "src/deep/a.py", True, True),
        ("src/**", "src", False, True),
        ("src/**", "srcs/a.py", False, False),
        ("src/**", "src/../.env", False, True),
        ("src/**", "/etc/src/a.py", False, False),
        ("src/*", "src/a.py", True, True),
        ("src/*", "src/deep/a.py", False, True),
        ("**/*.py", "a.py", True, True),
        ("**/*.py", "a/b/c.py", True, True),
        ("**/*.py", "a/b/c.pyc", False, False),
        ("src/**/a.py", "src/a.py", True, True),
        ("src/**/a.py", "src/x/y/a.py", True, True),
        ("*.lock", "web/x.lock", False, True),
        (".env", "apps/web/.env", False, True),
        (".env", ".ENV", False, True),
        (".env", ".environment", False, False),
        ("**", "/etc/passwd", False, True),
        ("**", "../x", False, True),
        ("./a.py", "a.py", True, False),
        ("/tmp/**", "/tmp/x/y", True, True),
        ("a\\*b", "a*b", True, True),
        ("a\\*b", "axb", False, False),
        ("my notes *", "my notes", False, True),
    ],
)
def test_a_pattern_allows_narrowly_and_forbids_widely(
    pattern: str, path: str, allows: bool, forbids: bool
) -> None:
    found = Pattern(pattern)

    assert found.covers(path, Kind.PATH) is allows
    assert found.hits(path, Kind.PATH) is (forbids or allows)


# --- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "address", "allows"),
    [
        ("docs.python.org", "https://docs.python.org/3/", True),
        ("docs.python.org", "docs.python.org", True),
        ("*.python.org", "https://docs.python.org/3/", True),
        ("*.python.org", "https://evil.net/.python.org", False),
        ("https://docs.python.org/**", "https://docs.python.org/3/a?b=c", True),
        ("https://docs.python.org/**", "http://docs.python.org/3/", False),
        ("https://*.python.org/**", "https://evil.net#.python.org/", False),
        ("https://*.python.org/**", "https://evil.net?.python.org/", False),
        ("https://*.python.org/**", "https://a.python.org@evil.net/", False),
        ("https://*.python.org/**", "https://evil.net\\.python.org/", False),
        ("https://docs.*/**", "https://docs.python.org@evil.net/", False),
        ("https://h/a/**", "https://h/a/../b", False),
        ("https://h/a/**", "https://h/a/%2E%2e/b", False),
        ("https://h/*", "https://h/a/b", False),
        ("https://h/**", "https://h:99999999/", False),
    ],
)
def test_a_wildcard_stays_in_its_part_of_an_address(
    pattern: str, address: str, allows: bool
) -> None:
    assert Pattern(pattern).covers(address, Kind.ADDRESS) is allows


def test_a_host_beside_its_address_need_not_be_allowed_twice() -> None:
    subjects = ("docs.python.org", "https://docs.python.org/3/")

    assert ruled(FETCH, *subjects, allow=("fetch_url(https://docs.python.org/**)",)) is Ruling.ALLOW
    assert ruled(FETCH, *subjects, allow=("network(*.python.org)",)) is Ruling.ALLOW
    assert (
        ruled(FETCH, *subjects, allow=("network",), deny=("network(*.python.org)",)) is Ruling.DENY
    )
    assert ruled(FETCH, "evil.net", subjects[1], allow=("network(docs.python.org)",)) is Ruling.ASK


# --- writing rules ----------------------------------------------------------------------------


def test_a_rule_names_the_tools_of_a_server() -> None:
    assert ruled(ISSUE, allow=("mcp.github.*",)) is Ruling.ALLOW
    assert ruled(ISSUE, allow=("mcp.github.create_issue",)) is Ruling.ALLOW
    assert ruled(ISSUE, allow=("github.create_*",)) is Ruling.ALLOW
    assert ruled(ISSUE, allow=("mcp.gitlab.*",)) is Ruling.ASK


def test_no_server_can_call_its_tools_another_servers() -> None:
    for name in ("github__create_issue", "mcp__github__create_issue", "mcp.github.create_issue"):
        evil = a_tool(name, access=Access.NETWORK, source="evil")
        assert ruled(evil, allow=("mcp.github.*",)) is Ruling.ASK


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is no rule"),
        ("run_shell git diff", "is no rule: write tool, or tool(pattern)."),
        ("run_shell(git diff", "is no rule"),
        ("run_shell()", "is empty; leave the brackets out to mean all"),
        ("Edit(.env)", "did you mean 'edit'?"),
        ("run_shel(git diff)", "no tool is named 'run_shel'; did you mean 'run_shell'?"),
        ("writes(x)", "no tool is named 'writes'; "),
    ],
)
def test_a_rule_that_cannot_be_meant_gets_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as wrong:  # noqa: PT011  the sentence is compared below
        Rule.parse(text, known=["run_shell", "read_file"])

    assert sentence in str(wrong.value)


# --- what is offered --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git diff HEAD~1", "run_shell(git diff *)"),
        ("git --no-pager log", "run_shell(git --no-pager log)"),
        ("git log", "run_shell(git log *)"),
        ("git config alias.x '!sh'", "run_shell(git config alias.x '!sh')"),
        ("npm run build --prod", "run_shell(npm run build *)"),
        ("pytest -q tests", "run_shell(pytest *)"),
        ("python build.py --all", "run_shell(python build.py --all)"),
        ("git diff --output=x", "run_shell(git diff --output=x)"),
        ("npm test", "run_shell(npm test *)"),
        ("npm test --script-shell ./x", "run_shell(npm test --script-shell ./x)"),
        ("cat /etc/hosts", "run_shell(cat /etc/hosts)"),
        ("sudo ls", "run_shell(sudo ls)"),
        ("rm *.pyc", "run_shell(rm \\*.pyc)"),
        ("./configure --x", "run_shell(./configure --x)"),
    ],
)
def test_the_rule_that_is_offered_for_a_command_is_narrow(command: str, rule: str) -> None:
    assert suggestion(SHELL, touch_of(SHELL, command)) == rule


@pytest.mark.parametrize(
    "command",
    """python3.11 x|pypy3 x|nodejs x|gawk x|tar xf a|poetry run x|uv run python x|npm exec x|npm install
    |pnpm dlx x|make test|git fetch|git pull|git clone x|git submodule x|git bisect x|git archive x
    |git ls-remote x|sqlite3 x|vim x|man x|gdb x|bundle x|at x|crontab x|gh api x|awk x|sed x
    |kubectl get x|terraform plan|docker run x|cat x|ls|find|curl x|pip install x|just x""".replace(
        "\n    ", ""
    ).split("|"),
)
def test_no_wildcard_is_offered_for_what_may_run_anything(command: str) -> None:
    assert suggestion(SHELL, touch_of(SHELL, command)) == f"run_shell({command})"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git diff *", "git diff --no-index --output=/tmp/x /dev/null e.txt"),
        ("git diff *", "git diff --outp=x"),
        ("git *", "git -c core.pager=x log"),
        ("git *", "git -C elsewhere status"),
        ("git fetch *", "git fetch --upload-pack=./x ."),
        ("git fetch *", "git fetch ext::sh"),
        ("git log *", "git log --ext-diff -p"),
        ("git grep *", "git grep -Osh x"),
        ("find *", "find . -exec sh"),
        ("sort *", "sort -oout x"),
        ("rg *", "rg --pre=sh x"),
        ("sed *", "sed -i s/a/b/ x"),
        ("npm test *", "npm test --script-shell=./x"),
        ("pytest *", "pytest --basetemp=src"),
        ("make test *", "make test --eval=x"),
        ("make test *", "make test SHELL=./x"),
        ("tar *", "tar cf x --checkpoint-action=exec=x"),
        ("git diff *", "git diff 'open"),
    ],
)
def test_a_wildcard_does_not_stand_for_options_that_write_or_run_something(
    rule: str, command: str
) -> None:
    assert ruled(SHELL, command, allow=(f"run_shell({rule})",)) is Ruling.ASK
    if "'" not in command:
        assert ruled(SHELL, command, allow=(f"run_shell({command} *)",)) is Ruling.ALLOW


def test_the_rule_that_is_offered_for_a_change_is_its_folder() -> None:
    assert suggestion(WRITE, touch_of(WRITE, "src/a.py", "src/b/c.py")) == "edit(src/**)"
    assert suggestion(WRITE, touch_of(WRITE, "README.md")) == "edit(README.md)"
    assert suggestion(WRITE, touch_of(WRITE, "README.md", "x.md")) == ""
    assert suggestion(ISSUE, touch_of(ISSUE)) == "mcp.github.create_issue"
    assert suggestion(FETCH, touch_of(FETCH, "https://h.org/x")) == "fetch_url(h.org)"


def test_the_rule_that_is_offered_for_a_server_is_its_tool_or_the_very_text() -> None:
    anything = a_tool("term__go", source="term")

    assert suggestion(ISSUE, touch_of(ISSUE, "Fix it", "It is broken")) == "mcp.github.create_issue"
    for texts, rule in (
        (("make all",), "mcp.term.go(make all)"),
        (("make all", "now"), ""),
        (("term__go",), "mcp.term.go"),
    ):
        assert suggestion(anything, Touch(Access.EXECUTE, texts)) == rule


def test_nothing_is_offered_for_a_danger() -> None:
    assert suggestion(SHELL, touch_of(SHELL, "git push -f", danger="rewrites")) == ""


# --- the docs ---------------------------------------------------------------------------------


def test_the_examples_in_the_docs_run_and_print_what_they_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/permissions.md").read_text()

    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "permissions.md", "exec"), {})

    assert capsys.readouterr().out == "".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))


def test_every_rule_in_the_docs_can_be_read() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/permissions.md").read_text()
    rules = re.findall(r"^\| `([a-z_.]+(?:\(.*?\)|\.\*)?)` \| [A-Za-z`]", page, re.MULTILINE)

    assert [str(Rule.parse(rule)) for rule in rules] == rules
    assert len(rules) > 6


# --- laws -------------------------------------------------------------------------------------

words = st.sampled_from(["git", "diff", "rm", "-rf", "src", "a.py", "*", ".env", "push"])
texts = st.one_of(
    st.lists(words, min_size=1, max_size=4).map(" ".join),
    st.lists(st.sampled_from(["src", "..", "a.py", "**", "*", ".env"]), min_size=1).map("/".join),
    st.text(min_size=1, max_size=12).filter(lambda text: text.strip() != ""),
)
patterns = texts
names = st.sampled_from(
    ["run_shell", "write_file", "read_file", "*", "read", "edit", "execute", "network", "mcp.x.*"]
)
rules = st.builds(
    lambda name, pattern: Rule(name, pattern and Pattern(pattern.strip())),
    names,
    st.none() | patterns,
)
some_rules = st.builds(
    Rules,
    *(st.lists(rules, max_size=3).map(tuple) for _ in range(3)),
)
tools = st.builds(
    a_tool,
    st.sampled_from(["run_shell", "write_file", "read_file", "x__go"]),
    source=st.sampled_from(["", "x"]),
    approve=st.sampled_from([None, True, False]),
)
touches = st.builds(
    Touch,
    st.sampled_from(list(Access)),
    st.lists(texts, max_size=3).map(tuple),
    st.sampled_from(["", "it destroys"]),
)
modes = st.sampled_from(list(Mode))


def runs(tool: Tool, touch: Touch, mode: Mode, rules: Rules) -> int:
    """How much is let through: nothing, after a question, everything."""
    return ORDER.index(judge(tool, touch, mode, rules, ()).verdict)


@given(tools, touches, modes, some_rules, rules)
def test_law_another_deny_rule_never_lets_more_run(
    tool: Tool, touch: Touch, mode: Mode, some: Rules, more: Rule
) -> None:
    stricter = Rules(some.allow, some.ask, (*some.deny, more))

    assert runs(tool, touch, mode, stricter) <= runs(tool, touch, mode, some)


@given(tools, touches, modes, some_rules, rules)
def test_law_another_ask_rule_never_lets_more_run(
    tool: Tool, touch: Touch, mode: Mode, some: Rules, more: Rule
) -> None:
    stricter = Rules(some.allow, (*some.ask, more), some.deny)

    assert runs(tool, touch, mode, stricter) <= runs(tool, touch, mode, some)


@given(tools, touches, modes, some_rules, rules)
def test_law_another_allow_rule_never_lets_less_run(
    tool: Tool, touch: Touch, mode: Mode, some: Rules, more: Rule
) -> None:
    freer = Rules((*some.allow, more), some.ask, some.deny)

    assert runs(tool, touch, mode, freer) >= runs(tool, touch, mode, some)


@given(tools, touches)
def test_law_without_rules_nothing_above_reading_runs_unasked_in_ask_mode(
    tool: Tool, touch: Touch
) -> None:
    verdict = judge(tool, touch, Mode.ASK, Rules(), ()).verdict

    harmless = touch.access in (Access.NONE, Access.READ) or tool.approve is False
    assert verdict is not Ruling.ALLOW or (harmless and not touch.danger)


@given(tools, touches, some_rules)
def test_law_deny_mode_is_ask_mode_with_nobody_to_ask(
    tool: Tool, touch: Touch, some: Rules
) -> None:
    asking = judge(tool, touch, Mode.ASK, some, ()).verdict
    refusing = judge(tool, touch, Mode.DENY, some, ()).verdict

    assert refusing is (Ruling.DENY if asking is Ruling.ASK else asking)


@given(patterns, texts, st.sampled_from(list(Kind)))
def test_law_what_a_pattern_allows_it_can_also_forbid(
    pattern: str, subject: str, kind: Kind
) -> None:
    found = Pattern(pattern)

    assert found.hits(subject, kind) or not found.covers(subject, kind)


@given(texts, st.sampled_from(list(Kind)))
def test_law_an_escaped_pattern_names_one_thing(text: str, kind: Kind) -> None:
    assert Pattern(escaped(text)).exact


@given(tools, touches)
def test_law_the_rule_that_is_offered_can_be_read_and_allows_the_call(
    tool: Tool, touch: Touch
) -> None:
    rule = suggestion(tool, touch)
    if not rule:
        return

    parsed = Rule.parse(rule)

    assert str(parsed) == rule
    assert not touch.danger
