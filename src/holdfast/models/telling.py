"""What people see of a reply while it is on its way, put right when it has come."""

from collections.abc import Iterable

from holdfast.models.base import Piece, Said, TakenBack, Tell, Thought
from holdfast.models.veil import Veil

FEW = 20
"""Characters that may have been shown too much without anybody being misled."""


class Telling:
    """Passes pieces on, and remembers which part of the answer was shown."""

    def __init__(self, tell: Tell, *, hides_calls: bool) -> None:
        """`hides_calls`: text in which a call may begin is held back until it is known."""
        self._tell = tell
        self._veil = Veil() if hides_calls else None
        self._shown: list[str] = []

    def of(self, piece: Piece) -> None:
        if isinstance(piece, Said):
            text = self._veil.feed(piece.text) if self._veil else piece.text
            if not text:
                return
            self._shown.append(text)
            piece = piece if text == piece.text else Said(text)
        self._tell(piece)

    def thoughts(self, pieces: Iterable[Piece]) -> None:
        """Pass on the thoughts among the pieces of a whole reply. Its answer is told when it has
        been read."""
        for piece in pieces:
            if isinstance(piece, Thought):
                self._tell(piece)

    def settle(self, text: str) -> None:
        """The answer turned out to be this: show what is missing of it."""
        shown = "".join(self._shown)
        if shown.startswith(text) and len(shown) - len(text) < FEW:
            return  # blanks, or a mark of the template, too much
        if not text.startswith(shown):
            self._tell(TakenBack("it read otherwise in the end"))
            shown = ""
        if rest := text[len(shown) :]:
            self._tell(Said(rest))
