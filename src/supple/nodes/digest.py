# SPDX-License-Identifier: Apache-2.0
"""One line for many sensors: what happens to all of them at once is said once."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Digest"]

_NAMED = 3


class Digest:
    """Say what happens to many things, at most one line a period; the first line comes at once.

    Args:
        what: What happens, e.g. ``"silent"``.
        say: Writes a line.
        period: Shortest time between two lines in [s].
    """

    def __init__(self, what: str, say: Callable[[str], object], period: float = 1.0) -> None:
        self._what, self._say, self._period = what, say, period
        self._unsaid: dict[str, str] = {}
        self._said: float | None = None

    def add(self, name: str, text: str) -> None:
        """Note what happened to one of them; of several notes about it the last counts."""
        self._unsaid[name] = text

    def tell(self, now: float) -> None:
        """Say what is noted, if it is time to; to be called often.

        Args:
            now: Steady clock in [s].
        """
        if self._unsaid and (self._said is None or now - self._said >= self._period):
            self.tell_all(now)

    def tell_all(self, now: float) -> None:
        """Say what is noted, without waiting."""
        texts, self._unsaid = list(self._unsaid.values()), {}
        if not texts:
            return
        self._said = now
        more = len(texts) - _NAMED
        line = "; ".join(texts[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
        self._say(line if len(texts) == 1 else f"{self._what}: {len(texts)} at once: {line}")
