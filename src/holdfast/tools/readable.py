"""A web page as text that a model can read: headings, lists, links, tables; no scripts.

It shows what is written, in the order it is written, and does not guess which part of a page is
its article. Whatever the markup, it takes time in proportion to its length.
"""

import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urljoin

UNSEEN = {"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select"}
BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table",
    "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
PARAGRAPHS = {"p", "pre", "table", "ul", "ol", "dl", "blockquote", "section", "article", "figure"}
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
DEEPEST_LIST = 12
LONGEST_LINK = 500
"""Characters of an address that is shown; longer ones hold data, not a place."""


def readable(html: str, base: str) -> str:
    """The title, then the text. Links are made whole with the address of the page."""
    page = Page(base)
    # The end makes the parser give out what it holds back. It is never closed, because what it
    # does with a tag that does not end can then take quadratic time.
    page.feed(html + "<hr>")
    return page.text()


class Page(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._title: list[str] = []
        self._in_title = False
        self._parts: list[str] = []
        """Text, with `\\n` where a line must end and `\\f` where a paragraph must."""
        self._unseen: list[str] = []
        self._open: Counter[str] = Counter()
        """How often each of the unseen is open."""
        self._pre = 0
        self._lists: list[int | None] = []
        """For each list that is open the number of its last item; None where it has none."""
        self._opened: tuple[int, str] | None = None
        """Where in the parts the open link begins, and where it leads."""
        self._cells = 0

    # --- what the parser finds ------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen.append(tag)
            self._open[tag] += 1
        if self._unseen:
            return
        given = dict(attrs)
        self._break(tag)
        if tag == "title" and not self._title:
            self._in_title = True
        elif tag in HEADINGS:
            self._parts.append(HEADINGS[tag] + " ")
        elif tag in ("ul", "ol"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._item()
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "pre":
            self._pre += 1
        elif tag in ("td", "th"):
            self._parts.append(" | " if self._cells else "")
            self._cells += 1
        elif tag == "tr":
            self._cells = 0
        elif tag == "a":
            self._close_link()  # no link is in another
            self._opened = len(self._parts), (given.get("href") or "").strip()
        elif tag == "img" and (alt := (given.get("alt") or "").strip()):
            self._parts.append(f"[image: {alt}]")

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if self._open[tag]:
                self._show_after(tag)
            return
        if tag == "title":
            self._in_title = False
        elif tag == "a":
            self._close_link()
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        if tag not in ("td", "th"):
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif self._unseen:
            return
        elif self._pre:
            self._parts.append(data.replace("\f", " "))
        else:
            self._parts.append(re.sub(r"\s+", " ", data))

    # --- what is made of it ---------------------------------------------------------------------

    def _break(self, tag: str) -> None:
        if tag in ("td", "th"):
            return
        if tag in PARAGRAPHS and not (tag in ("ul", "ol") and self._lists) or tag in HEADINGS:
            self._parts.append("\f")
        elif tag in BLOCKS:
            self._parts.append("\n")

    def _item(self) -> None:
        mark = "-"
        if self._lists and (last := self._lists[-1]) is not None:
            self._lists[-1] = last + 1
            mark = f"{last + 1}."
        self._parts.append("\v" * min(len(self._lists) - 1, DEEPEST_LIST) + mark + " ")

    def _show_after(self, tag: str) -> None:
        """The outermost of its kind ends, and with it all that is in it."""
        while self._open[tag]:
            self._open[self._unseen.pop()] -= 1

    def _close_link(self) -> None:
        if self._opened is not None:
            self._link(*self._opened)
            self._opened = None

    def _link(self, start: int, href: str) -> None:
        said = "".join(self._parts[start:])
        words = " ".join(said.split())
        if not words or not href or href.startswith(("#", "javascript:", "data:")):
            return
        try:
            target = urljoin(self._base, href)
        except ValueError:
            return
        if len(target) > LONGEST_LINK or target == words or "\n" in said.strip():
            return
        before = " " if said[:1].isspace() else ""
        self._parts[start:] = [f"{before}[{words}]({target})"]

    def text(self) -> str:
        title = " ".join("".join(self._title).split())
        paragraphs = (lines_of(each) for each in "".join(self._parts).split("\f"))
        return "\n\n".join([*([title] if title else []), *filter(None, paragraphs)])


def lines_of(paragraph: str) -> str:
    lines = (line.rstrip() for line in paragraph.split("\n"))
    return "\n".join(shown for line in lines if (shown := indented(line)))


def indented(line: str) -> str:
    """Vertical tabs are the depth of a list: blanks at the beginning of a line mean nothing, but
    in code, where they are kept."""
    deep = len(line) - len(line.lstrip("\v"))
    body = line[deep:].replace("\v", "")
    return "  " * deep + body if body.strip("-#| ") or body.strip() == "-" * 3 else ""
