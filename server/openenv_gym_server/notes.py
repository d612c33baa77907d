"""What a client is told besides its answers: each thing once, and never more than a few. Not for errors."""

from __future__ import annotations

__all__ = ["MAX_NOTES", "Notes", "quoted"]

MAX_NOTES = 20
"""Notes on one environment; a client can send any number of wrong keywords."""

MAX_NAME = 100


class Notes:
    """Notes that wait to go with the next answer.

    Attributes:
        waiting: those that wait.

    Example:
        >>> notes = Notes()
        >>> notes.add("reset() takes no 'colour'")
        >>> notes.add("reset() takes no 'colour'")
        >>> notes.take()
        ["reset() takes no 'colour'"]
        >>> notes.take()
        []
    """

    __slots__ = ("_known", "waiting")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self.waiting: list[str] = []

    def add(self, text: str) -> None:
        """Note this, unless it was noted before; what comes after the last note is not noted."""
        if text in self._known or len(self._known) > MAX_NOTES:
            return
        if len(self._known) == MAX_NOTES:
            text = f"there is more of this kind than {MAX_NOTES} notes; further ones are left out"
        self._known.add(text)
        self.waiting.append(text)

    def take(self) -> list[str]:
        """Those that wait, which then wait no longer."""
        waiting, self.waiting = self.waiting, []
        return waiting


def quoted(name: str) -> str:
    """A client's name for something, of bounded length."""
    return repr(name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…")
