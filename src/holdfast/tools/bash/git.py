"""What git would do: which of its commands it is, what it destroys, whether it only reads."""

import re
from collections.abc import Sequence

from holdfast.tools.bash.options import has, operands_of
from holdfast.tools.bash.words import Word

QUIET = {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"}
"""Options in front of the command that change nothing a rule would care for."""
VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env",
          "--super-prefix", "--attr-source", "--shallow-file"}  # fmt: skip
FLAGS = QUIET | {"--bare", "-p", "--paginate", "--version", "--help", "-h", "-v", "--html-path",
                 "--man-path", "--info-path", "--glob-pathspecs", "--noglob-pathspecs",
                 "--icase-pathspecs", "--no-lazy-fetch", "--no-advice"}  # fmt: skip
TOLD = re.compile(
    r"(user\.(name|email)|color\..*|core\.(quotepath|autocrlf|filemode|abbrev)|advice\..*"
    r"|init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|log\..*|pull\.(rebase|ff))=.*"
    r"|core\.pager=(cat)?",
    re.IGNORECASE | re.DOTALL,
)
"""Settings for one call that decide how git talks, not what it runs or throws away."""
READS = {
    "status", "diff", "log", "show", "rev-parse", "rev-list", "ls-files", "ls-tree", "blame",
    "describe", "shortlog", "cat-file", "merge-base", "for-each-ref", "show-ref", "count-objects",
    "grep", "check-ignore", "diff-tree", "version",
}  # fmt: skip
LETTERS = re.compile(r"-(?:[abcdehilmnopqrstuvwzEFIPR]+|\d+|[nUSGLMCABC]\S+)")
NAMES = frozenset(
    """stat shortstat numstat name-only name-status oneline graph decorate no-decorate all patch
    no-patch cached staged word-diff color no-color unified ignore-all-space ignore-space-change
    ignore-blank-lines minimal histogram patience max-count skip since after until before author
    committer grep format pretty date abbrev abbrev-commit no-abbrev-commit reverse follow
    first-parent merges no-merges branches tags remotes summary porcelain short branch ignored
    untracked-files show-stash find-renames find-copies diff-filter raw full-index relative
    no-ext-diff no-textconv exit-code quiet check topo-order date-order left-right count parents
    verify abbrev-ref show-toplevel git-dir is-inside-work-tree show-prefix symbolic-full-name
    others modified deleted exclude-standard stage unmerged line-porcelain long always exact-match
    points-at contains merged no-merged sort ignore-case word-regexp fixed-strings line-number
    files-with-matches heads numbered email""".split()
)
"""Options with which these only read, whichever of them they belong to."""
LISTING = {"-l", "--list", "-a", "-r", "-v", "-vv", "--all", "--show-current"}
LATER = "changes settings, which may name programs that git runs later"
FORCED = "overwrites what others may have"


def command_of(given: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """The options in front of git's command, and the command with its arguments."""
    at = 0
    while at < len(given) and (given[at].value or "").startswith("-"):
        at += 2 if given[at].value in VALUED else 1
    return given[:at], given[at:]


def destroys(given: tuple[Word, ...]) -> str:
    before, rest = command_of(given)
    if why := prepared(before):
        return why
    if not rest:
        return ""
    if rest[0].value is None:
        return "is given a command that is known only when it runs"
    check = CHECKS.get(rest[0].value)
    return check(rest[1:]) if check else ""


def prepared(before: tuple[Word, ...]) -> str:
    """What is wrong with the options in front of git's command."""
    at = 0
    while at < len(before):
        given, at = before[at].value or "", at + 1
        name, equals, value = given.partition("=")
        if given in VALUED:
            value, at = (before[at].value or "") if at < len(before) else "", at + 1
        elif given in FLAGS or (equals and name in VALUED):
            pass
        elif given.startswith("-c"):
            name, value = "-c", given[2:]
        else:
            return f"is given the option '{before[at - 1].source}', which is not known here"
        if name in ("--config-env", "--exec-path") or (name == "-c" and not TOLD.fullmatch(value)):
            return "is given settings that may change what it runs, or throws away"
    return ""


def only_reads(texts: Sequence[str]) -> bool:
    """Whether git, given these words, only reads, as far as the repository lets it: programs that
    its settings name are `repository`'s business."""
    at = next((at for at, text in enumerate(texts) if text not in QUIET), len(texts))
    if at == len(texts):
        return False
    name, given = texts[at], list(texts[at + 1 :])
    match name:
        case "--version":
            return not given
        case "branch" | "tag":
            return set(given) <= LISTING
        case "remote":
            return given in ([], ["-v"])
        case "worktree":
            return given == ["list"]
        case "stash":
            return given[:1] in (["list"], ["show"]) and are_read(given)
        case "reflog":
            return given[:1] in ([], ["show"]) and are_read(given)
        case _:
            return name in READS and are_read(given)


def are_read(given: Sequence[str]) -> bool:
    for text in given:
        if text == "--":
            return True
        if text.startswith("--"):
            if text[2:].partition("=")[0] not in NAMES:
                return False
        elif text.startswith("-") and not LETTERS.fullmatch(text):
            return False
    return True


def configures(given: tuple[Word, ...]) -> str:
    """Settings that name programs, or that cannot be told."""
    asking = {
        "--get",
        "--get-all",
        "--list",
        "-l",
        "get",
        "list",
        "--get-regexp",
        "--unset",
        "unset",
    }
    if not given or given[0].value in asking:
        return ""
    plain = {"--global", "--local", "--add", "set", "--replace-all"}
    rest = [word.value or "" for word in given if word.value not in plain]
    if len(rest) < 2 and rest[0][:1] not in ("-", ""):
        return ""
    if len(rest) == 2 and TOLD.fullmatch("=".join(rest)):
        return ""
    return LATER


def resets(given: tuple[Word, ...]) -> str:
    return "throws away changes that are not committed" if has(given, "", "hard", "merge") else ""


def cleans(given: tuple[Word, ...]) -> str:
    if has(given, "n", "dry-run") and not any(word.value is None for word in given):
        return ""
    return "deletes files that are not in git" if has(given, "fxX", "force") else ""


def checks_out(given: tuple[Word, ...]) -> str:
    """Going to a branch is safe. Fetching files over changed ones is not."""
    what = "throws away changes that are not committed"
    if has(given, "fB", "force", "ours", "theirs", "pathspec-from-file"):
        return what
    if any(word.value == "--" for word in given[:-1]):
        return what
    if has(given, "b", "orphan", "track"):
        return ""
    operands = operands_of(given)
    # A single word may be a branch or a file. One with a dot or a pattern is likely to be a file.
    if len(operands) > 1 or any(w.globs or "." in (w.value or ".") for w in operands):
        return what
    return ""


def switches(given: tuple[Word, ...]) -> str:
    forced = has(given, "fC", "force", "discard-changes", "force-create")
    return "throws away changes that are not committed" if forced else ""


def restores(given: tuple[Word, ...]) -> str:
    staged = has(given, "S", "staged") and not has(given, "W", "worktree")
    return "" if staged else "throws away changes that are not committed"


def pushes(given: tuple[Word, ...]) -> str:
    if has(given, "f", "force", "force-with-lease", "force-if-includes", "mirror", "prune"):
        return FORCED
    if has(given, "d", "delete"):
        return "deletes what others may use"
    for word in operands_of(given):
        if word.value is None:
            return "pushes something that is known only when it runs"
        if word.value.startswith("+"):
            return FORCED
        if word.value.startswith(":"):
            return "deletes what others may use"
    return ""


def branches(given: tuple[Word, ...]) -> str:
    if has(given, "DMC") or has(given, "f", "force"):
        return "deletes or moves a branch, merged or not"
    return ""


def stashes(given: tuple[Word, ...]) -> str:
    first = given[0].value if given else ""
    return "throws stashed changes away" if first in ("drop", "clear", None) else ""


def forced(given: tuple[Word, ...]) -> str:
    return "deletes changes that are not committed" if has(given, "f", "force") else ""


def tags(given: tuple[Word, ...]) -> str:
    return "deletes or moves a tag" if has(given, "df", "delete", "force") else ""


def references(given: tuple[Word, ...]) -> str:
    return "deletes or moves references" if has(given, "d", "delete", "stdin") else ""


def logs(given: tuple[Word, ...]) -> str:
    first = given[0].value if given else ""
    return "deletes what is left of old commits" if first in ("expire", "delete", None) else ""


def prunes(given: tuple[Word, ...]) -> str:
    return "deletes what is left of old commits" if has(given, "", "prune", "aggressive") else ""


def resets_index(given: tuple[Word, ...]) -> str:
    forced = has(given, "fu", "force", "reset")
    return "throws away changes that are not committed" if forced else ""


def rewrites(_: tuple[Word, ...]) -> str:
    return "rewrites history"


def dropped(_: tuple[Word, ...]) -> str:
    return "deletes what is left of old commits"


CHECKS = {
    "config": configures,
    "read-tree": resets_index,
    "checkout-index": resets_index,
    "reset": resets,
    "clean": cleans,
    "checkout": checks_out,
    "switch": switches,
    "restore": restores,
    "push": pushes,
    "branch": branches,
    "stash": stashes,
    "rm": forced,
    "worktree": forced,
    "tag": tags,
    "update-ref": references,
    "reflog": logs,
    "gc": prunes,
    "prune": dropped,
    "rebase": rewrites,
    "filter-branch": rewrites,
    "filter-repo": rewrites,
}
