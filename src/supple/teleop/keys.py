# SPDX-License-Identifier: Apache-2.0
"""Key presses: from the bytes that a terminal sends to names of keys."""

from __future__ import annotations

__all__ = ["KeyParser"]

_ESCAPE = 0x1B
# Final bytes of control sequences (ECMA-48; xterm) and the numbers before a tilde.
_LETTERS = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "Z": "backtab",
    "P": "f1", "Q": "f2", "R": "f3", "S": "f4",
}  # fmt: skip
_NUMBERS = {
    "1": "home", "2": "insert", "3": "delete", "4": "end", "5": "page_up", "6": "page_down", "7": "home", "8": "end",
}  # fmt: skip
_PLAIN = {0x08: "backspace", 0x09: "tab", 0x0A: "enter", 0x0D: "enter", 0x20: "space", 0x7F: "backspace"}
# No control sequence of a keyboard is longer; what goes on is noise and is dropped.
_LONGEST_SEQUENCE = 16


class KeyParser:
    """Turn bytes from a terminal into key names, however the bytes are cut into pieces.

    Printable ASCII keys have their own character as name (``"w"``, ``"W"``, ``"1"``); others are named ``"up"``,
    ``"page_down"``, ``"enter"``, ``"space"``, ``"backspace"``, ``"ctrl_d"``, ``"escape"`` and the like. Unknown
    sequences and bytes of other characters give nothing.
    """

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[str]:
        """Take in bytes in the order in which they arrived and return the keys that they complete."""
        self._pending += data
        keys = []
        while self._pending:
            key, used = self._next()
            if used == 0:
                break
            del self._pending[:used]
            if key:
                keys.append(key)
        return keys

    def flush(self) -> list[str]:
        """Give up waiting for the rest of a sequence: a lone escape byte was the escape key.

        Call it when nothing has followed for a moment; the bytes of one sequence arrive together.
        """
        pending, self._pending = bytes(self._pending), bytearray()
        return ["escape"] if pending == bytes([_ESCAPE]) else []

    def _next(self) -> tuple[str, int]:
        """Return the first key in the pending bytes and how many bytes it took; 0 if they are not complete."""
        data = self._pending
        first = data[0]
        if first != _ESCAPE:
            return self._single(first), 1
        if len(data) == 1:
            return "", 0
        if data[1] == _ESCAPE:
            return "escape", 1
        if data[1] not in b"[O":
            # Alt with a key: no binding uses it, so that a slip of the thumb does nothing.
            return "", 2
        for i in range(2, min(len(data), _LONGEST_SEQUENCE)):
            if 0x40 <= data[i] <= 0x7E:
                return self._sequence(data[2:i].decode("ascii", "replace"), chr(data[i])), i + 1
        return ("", _LONGEST_SEQUENCE) if len(data) >= _LONGEST_SEQUENCE else ("", 0)

    @staticmethod
    def _single(byte: int) -> str:
        if byte in _PLAIN:
            return _PLAIN[byte]
        if 0x21 <= byte <= 0x7E:
            return chr(byte)
        return f"ctrl_{chr(byte + 0x60)}" if 0x01 <= byte <= 0x1A else ""

    @staticmethod
    def _sequence(parameters: str, final: str) -> str:
        number, _, modifier = parameters.partition(";")
        name = _NUMBERS.get(number, "") if final == "~" else _LETTERS.get(final, "")
        # The modifier is 1 plus a bit set: shift 1, alt 2, control 4.
        return f"shift_{name}" if name and modifier == "2" else name
