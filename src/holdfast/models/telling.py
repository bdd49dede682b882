"""What people see of a reply while it is on its way, put right when it has come."""

from collections.abc import Iterable

from holdfast.models.base import Piece, Said, TakenBack, Tell, Thought
from holdfast.models.chunks import LEAKED
from holdfast.models.veil import Veil


class Telling:
    """Passes pieces on, and remembers which part of the answer was shown."""

    def __init__(self, tell: Tell, *, hides_calls: bool) -> None:
        """`hides_calls`: text in which a call may begin is held back until it is known."""
        self._tell = tell
        self._veil = Veil() if hides_calls else None
        self._shown: list[str] = []

    def of(self, piece: Piece) -> None:
        """Tell one piece, or as much of it as may be shown."""
        if isinstance(piece, Said):
            text = self._veil.feed(piece.text) if self._veil else piece.text
            if not text:
                return
            self._shown.append(text)
            piece = piece if text == piece.text else Said(text)
        self._tell(piece)

    def all(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self.of(piece)

    def thoughts(self, pieces: Iterable[Piece]) -> None:
        """Pass on the thoughts among the pieces of a whole reply. Its answer is told when it has
        been read."""
        for piece in pieces:
            if isinstance(piece, Thought):
                self._tell(piece)

    def settle(self, text: str) -> None:
        """The answer turned out to be this: show what is missing of it."""
        shown = "".join(self._shown)
        if shown.startswith(text) and shown[len(text) :].strip() in ("", *LEAKED):
            return  # blanks, or a mark of the template, too much
        if not text.startswith(shown):
            self._tell(TakenBack("it read otherwise in the end"))
            shown = ""
        if rest := text[len(shown) :]:
            self._tell(Said(rest))

    def take_back(self, why: str) -> None:
        """What was shown is void, because another reply is asked for."""
        if self._shown:
            self._tell(TakenBack(why))
