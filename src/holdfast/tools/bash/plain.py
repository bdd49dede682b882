"""The plainest lines of shell, split without any grammar: words, quotes, and a few signs between them.

Only such a line can run unasked, so this errs on one side alone: whatever is not plain is None. There
are no line breaks, no variables, no substitutions, no backslashes, no brackets and braces, and no
redirections but of the errors. What the commands in it do is told by `reading`.
"""

import re
from dataclasses import dataclass

from holdfast.tools.bash.words import Word

TOKEN = re.compile(
    r"(?P<blank>[ \t]+)"
    r"|(?P<errors>2> ?/dev/null|2>&1)(?=[ \t|;&]|$)"
    r"|(?P<join>\|\||&&|\||;)"
    r"|(?P<word>(?:'[^'\n]*'|\"[^\"$`\\\n]*\"|[\w./:@%+,=^~*?-])+|[\[\]](?=[ \t|;&]|$))"
)
QUOTES = re.compile(r"'([^']*)'|\"([^\"]*)\"")
TILDE = re.compile(r"(?<!\w)~(?!/)|(?<=[^\w])~")
"""A tilde that the shell may take for a folder, save the one at the beginning of `~/file`."""


@dataclass(frozen=True, slots=True)
class PlainLine:
    commands: tuple[tuple[Word, ...], ...]
    joins: tuple[str, ...]
    """What stands between them."""


def plain(command: str) -> PlainLine | None:
    """The commands of a line, or None if it is not of the plainest kind."""
    commands: list[list[Word]] = [[]]
    joins: list[str] = []
    line, at, apart = command.strip(" \t"), 0, True
    if not line.replace("\t", " ").isprintable():
        return None
    while at < len(line):
        token = TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        if token["join"]:
            commands.append([])
            joins.append(token["join"])
        elif token["blank"] is None:
            # Two that touch would be one word to the shell: `a2>&1` writes to a file.
            one = word(token["word"]) if token["word"] else None
            if not apart or (token["word"] and one is None):
                return None
            commands[-1] += [one] if one else []
        apart = bool(token["blank"] or token["join"])
    if not all(commands):
        return None
    return PlainLine(tuple(map(tuple, commands)), tuple(joins))


def word(source: str) -> Word | None:
    bare = QUOTES.sub("", source)
    if TILDE.search(bare):
        return None
    globs = re.search(r"[*?]", bare) is not None
    if globs and bare != source:
        return None  # a quoted star beside one that is not
    return Word(source, QUOTES.sub(lambda m: m[1] or m[2] or "", source), globs)
