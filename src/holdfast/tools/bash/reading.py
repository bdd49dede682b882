"""Commands that only read, so surely that they may run unasked. When in doubt, they do not.

The line must be `plain`, and each of its commands must be on the list with every one of its options:
an option that is not listed may write, run something, or follow links out of the workspace. Programs
that run programs (`awk`, `less`, `env`, `xargs`) are left out. Which files are read is asked elsewhere.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.tools.bash import git
from holdfast.tools.bash.plain import PlainLine
from holdfast.tools.bash.words import Word


@dataclass(frozen=True, slots=True)
class Reads:
    """How a program may be used."""

    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with one."""
    long: str = ""
    """Names of long options. Their value, if any, must be behind `=`."""
    numbers: bool = False
    """`-5` is an option too."""
    most: int = 1_000
    """Words that are no options."""
    globs: bool = True
    """Patterns of files may stand among them: no option of this program writes, or runs something."""


NAMES = Reads(globs=False)
SUMS = Reads("btz", "", "text binary tag")
GREP = Reads(
    "EFGPivwxcLlqsnHhobaUZzry", "eABCmf",
    "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case invert-match word-regexp "
    "line-regexp count files-with-matches files-without-match quiet silent no-messages line-number "
    "with-filename no-filename only-matching text recursive include exclude exclude-dir "
    "after-context before-context context max-count color colour null byte-offset regexp",
    numbers=True,
)  # fmt: skip
ALLOWED = {
    "cat": Reads("AbeEnstTuv", "", "number show-all number-nonblank show-ends show-tabs"),
    "head": Reads("qvz", "nc", "lines bytes quiet silent verbose", numbers=True),
    "tail": Reads("qvz", "nc", "lines bytes quiet silent verbose", numbers=True),
    "wc": Reads("clmwL", "", "lines words bytes chars max-line-length"),
    "ls": Reads(
        "aAbBcCdfFghGiklmnNopqQrRsStuUvxXZ1", "ITw",
        "all almost-all human-readable recursive sort time color reverse size full-time format "
        "group-directories-first classify directory inode numeric-uid-gid time-style ignore hide",
    ),
    "grep": GREP,
    "egrep": GREP,
    "fgrep": GREP,
    "rg": Reads(
        "iSsnNvwxclFUoHIuape0.", "ABCegmtTMjr",
        "ignore-case smart-case case-sensitive line-number no-line-number files files-with-matches "
        "files-without-match count count-matches fixed-strings word-regexp line-regexp glob iglob "
        "type type-not hidden no-ignore max-count context after-context before-context color "
        "heading no-heading only-matching max-depth sort stats multiline vimgrep json trim column "
        "with-filename no-filename invert-match regexp max-columns no-config type-list",
        globs=False,
    ),
    "fd": Reads("HIgsiaFp01u", "tedEc", "hidden no-ignore type extension max-depth exclude glob "
                "absolute-path full-path color", globs=False),
    "tree": Reads("adfsugphDFiCnAx", "LIP", "dirsfirst noreport du prune filelimit", globs=False),
    "cut": Reads("ns", "bcdf", "delimiter fields characters bytes complement only-delimited "
                 "output-delimiter"),
    "tr": Reads("cCdst", "", "delete squeeze-repeats complement truncate-set1", most=2, globs=False),
    "nl": Reads("p", "bdfhilnsvw"),
    "rev": Reads(),
    "tac": Reads("br", "s"),
    "paste": Reads("sz", "d"),
    "comm": Reads("123z"),
    "fold": Reads("bs", "w"),
    "column": Reads("tx", "sco"),
    "md5sum": SUMS,
    "sha1sum": SUMS,
    "sha256sum": SUMS,
    "sha512sum": SUMS,
    "cksum": Reads(),
    "cmp": Reads("bls", "in"),
    "diff": Reads("uqsibwBEyaNc", "UC", "unified brief side-by-side color ignore-all-space "
                  "ignore-case ignore-space-change ignore-blank-lines text", numbers=True),
    "od": Reads("vbcdox", "ANtwj"),
    "hexdump": Reads("Cbcdvox", "ns"),
    "strings": Reads("af", "nt"),
    "seq": Reads("w", "fs", most=3, globs=False),
    "sort": Reads("bdfgiMhnRrVcCmsuz", "kt", "reverse unique numeric-sort human-numeric-sort "
                  "version-sort general-numeric-sort ignore-case key field-separator check",
                  globs=False),
    "uniq": Reads("cdDiuz", "fsw", "count repeated unique ignore-case", most=1, globs=False),
    "file": Reads("bihN", "", "brief mime mime-type mime-encoding", globs=False),
    "stat": Reads("ft", "c", "format printf terse"),
    "du": Reads("abchksxm0", "d", "max-depth summarize human-readable total all apparent-size"),
    "df": Reads("ahHiklPT", "", "human-readable"),
    "basename": Reads("az", "s"),
    "dirname": Reads("z"),
    "readlink": Reads("femnqsvz"),
    "realpath": Reads("emLPqsz"),
    "pwd": Reads("LP", most=0),
    "id": Reads("ugnGr"),
    "groups": Reads(),
    "whoami": Reads(most=0),
    "logname": Reads(most=0),
    "uname": Reads("asnrvmpio", most=0),
    "hostname": Reads(most=0),
    "uptime": Reads("ps", most=0),
    "nproc": Reads("", "", "all", most=0),
    "free": Reads("bkmghtlw", most=0),
    "true": NAMES,
    "false": NAMES,
    ":": NAMES,
    "which": Reads("a", globs=False),
    "type": Reads("atpPf", globs=False),
}  # fmt: skip
BUILTINS = {"[", "cd", "command", "echo", "false", "pwd", "test", "true", "type", ":"}
"""What bash is itself, and does not look for."""
LISTS: tuple[list[str], ...] = ([], ["aux"], ["ax"], ["-e"], ["-f"], ["-ef"], ["-A"])
"""Uses of `ps` that do not show the environment of processes."""
FINDS_WITH = frozenset(
    """-name -iname -path -ipath -wholename -regex -iregex -regextype -type -maxdepth -mindepth -size
    -mtime -mmin -atime -amin -ctime -cmin -newer -perm -user -group -links -inum -printf""".split()
)
FINDS = frozenset(
    """-print -print0 -ls -empty -not ! -a -and -o -or -true -false -depth -prune -xdev -mount
    -readable -writable -executable -quit -daystart ( ) ,""".split()
)
SHOWS_LINES = re.compile(
    r"(\d+|\$|/[^/\\;]*/)(,(\d+|\$|/[^/\\;]*/))?p(;(\d+|\$)(,(\d+|\$))?p)*|\d+q"
)
FILTER = re.compile(r"(?!.*\b(import|include|env|inputs?|input_\w+|modulemeta|get_\w+)\b)"
                    r"[\w .,|\[\]()\"?:=!<>+*/-]*")  # fmt: skip
"""A program of `jq` that looks at nothing but its input."""
TESTS = ("-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-n", "-z")
TELLS_VERSION = {
    "python": ("--version", "-V"),
    "python3": ("--version", "-V"),
    "node": ("--version",),
}


def only_reads(line: PlainLine) -> bool:
    """Whether this line surely changes nothing, and runs nothing else."""
    entering = [at for at, words in enumerate(line.commands) if words[0].value == "cd"]
    if entering and (entering != [0] or line.joins[:1] != ("&&",)):
        return False  # names would be meant from more than one folder
    return all(map(reads, line.commands))


def reads(words: tuple[Word, ...]) -> bool:
    name, given = words[0].value or "", words[1:]
    texts = [word.value or "" for word in given]
    if words[0].globs or any(word.globs and may_be_an_option(word) for word in given):
        return False
    if name in ALLOWED:
        takes = ALLOWED[name]
        return not (any(w.globs for w in given) and not takes.globs) and are_allowed(texts, takes)
    if any(word.globs for word in given):
        return False
    match name:
        case "echo":
            return True
        case "cd":
            return len(texts) == 1 and texts[0][:1] not in ("-", "") and ".." not in texts[0]
        case "git":
            return git.only_reads(texts)
        case "sed":
            return len(texts) > 1 and texts[0] == "-n" and shows_lines(texts[1:])
        case "find":
            return only_finds(texts)
        case "jq":
            return are_allowed(texts, Reads("rcesSMn")) and filters(texts)
        case "ps":
            return texts in LISTS
        case "date":
            options, rest = [t for t in texts if t[:1] == "-"], [t for t in texts if t[:1] != "-"]
            return set(options) <= {"-u", "-R", "-I"} and all(t[:1] == "+" for t in rest)
        case "test" | "[":
            inside = texts[:-1] if name == "[" and texts[-1:] == ["]"] else texts
            return len(inside) == 2 and inside[0] in TESTS
        case "command":
            return len(texts) == 2 and texts[0] in ("-v", "-V") and texts[1][:1] != "-"
        case _:
            return len(texts) == 1 and texts[0] in TELLS_VERSION.get(name, ())


def may_be_an_option(word: Word) -> bool:
    """A pattern at the beginning of a word may match a file whose name is one."""
    return (word.value or "")[:1] in "*?-"


def are_allowed(texts: Sequence[str], takes: Reads) -> bool:
    others = at = 0
    while at < len(texts):
        given, at = texts[at], at + 1
        if given == "--":
            return others + len(texts) - at <= takes.most
        if given.startswith("--"):
            if given[2:].partition("=")[0] not in takes.long.split():
                return False
        elif given.startswith("-") and given != "-":
            if takes.numbers and given[1:].isdigit():
                continue
            letters = iter(given[1:])
            for place, letter in enumerate(letters, 2):
                if letter in takes.valued:
                    if place == len(given):
                        # A value that looks like an option is not worth the doubt.
                        if texts[at : at + 1] == [] or texts[at].startswith("-"):
                            return False
                        at += 1
                    break
                if letter not in takes.flags:
                    return False
        else:
            others += 1
    return others <= takes.most


def shows_lines(texts: Sequence[str]) -> bool:
    """`sed -n '1,20p' file`: other programs of sed may write files or run commands."""
    return SHOWS_LINES.fullmatch(texts[0]) is not None and not any(
        text.startswith("-") for text in texts
    )


def only_finds(texts: Sequence[str]) -> bool:
    at = 0
    while at < len(texts):
        given, at = texts[at], at + 1
        if given in FINDS_WITH:
            at += 1
        elif given.startswith("-") and given not in FINDS:
            return False
    return True


def filters(texts: Sequence[str]) -> bool:
    operands = [text for text in texts if not text.startswith("-")]
    return bool(operands) and FILTER.fullmatch(operands[0]) is not None
