# SPDX-License-Identifier: Apache-2.0
"""A terminal from which single keys are read without waiting, and which is always put back as it was."""

from __future__ import annotations

import atexit
import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self

from supple.errors import TeleopError

__all__ = ["KeyTerminal"]


class KeyTerminal:
    """Single keys instead of lines while it is open; a context manager.

    Ctrl-C goes on to interrupt the program. The terminal's settings come back on ``close``, at the end of a ``with``
    block, and at the latest when the interpreter exits, whatever ended it short of a kill.

    Args:
        input: File descriptor that keys are read from; standard input if absent.
        output: File descriptor that text is shown on; standard error if absent.

    Raises:
        TeleopError: The input is no terminal.
    """

    def __init__(self, input: int | None = None, output: int | None = None) -> None:  # noqa: A002 - its name everywhere
        try:
            self._input = sys.stdin.fileno() if input is None else input
            self._output = sys.stderr.fileno() if output is None else output
        except (AttributeError, OSError, ValueError) as error:
            raise TeleopError(f"the keyboard device needs a terminal; there is no standard input: {error}") from error
        if not os.isatty(self._input):
            raise TeleopError(
                "the keyboard device needs a terminal to read keys from, but the input is a file, a pipe or nothing; "
                "start it in a terminal of its own (a launch file gives its nodes none), or use the scripted device"
            )
        self._settings: list[Any] | None = termios.tcgetattr(self._input)
        self._ended = False
        # A program that dies of an exception nobody caught still runs this.
        atexit.register(self.close)
        try:
            tty.setcbreak(self._input, termios.TCSADRAIN)
            mode = termios.tcgetattr(self._input)
            # Ctrl-S would otherwise stop the output, and with it a loop that shows its status.
            mode[0] &= ~termios.IXON
            termios.tcsetattr(self._input, termios.TCSADRAIN, mode)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        """Whether the terminal has gone (its window was closed, the connection broke)."""
        return self._ended

    @property
    def columns(self) -> int:
        """Width of the terminal in characters; 0 if it is not known."""
        try:
            return os.get_terminal_size(self._output).columns
        except OSError:
            return 0

    def read(self) -> bytes:
        """Return what was typed since the last call; empty if nothing was."""
        if self._settings is None or self._ended:
            return b""
        ready, _, _ = select.select([self._input], [], [], 0.0)
        if not ready:
            return b""
        try:
            data = os.read(self._input, 4096)
        except OSError:
            # A terminal whose other end is gone answers with an input/output error.
            data = b""
        self._ended = not data
        return data

    def write(self, text: str) -> None:
        """Show text; it is dropped when nobody can see it any more, or when the terminal takes nothing just now."""
        if self._settings is None:
            return
        data = text.encode()
        try:
            # A frozen connection must not halt a control loop.
            while data and select.select([], [self._output], [], 0.0)[1]:
                data = data[os.write(self._output, data) :]
        except OSError:
            self._ended = True

    def close(self) -> None:
        """Give the terminal its settings back; may be called twice."""
        if self._settings is None:
            return
        settings, self._settings = self._settings, None
        atexit.unregister(self.close)
        try:
            termios.tcsetattr(self._input, termios.TCSADRAIN, settings)
        except termios.error:
            # The terminal is gone, and its settings with it.
            self._ended = True
