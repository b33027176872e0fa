# SPDX-License-Identifier: Apache-2.0
"""One node as a process: what to start, under which name, and what its end means for the others."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

__all__ = ["NodeProcess"]


@dataclass(frozen=True)
class NodeProcess:
    """A command to start.

    Attributes:
        name: Name shown in front of its output: the full node name, or the executable where the node has no name.
        command: Executable and arguments.
        source: Launch file and line that asked for it.
        shutdown_on_exit: Whether its end ends everything (``on_exit="shutdown"``).
        sigterm_timeout: Time in [s] that it may take to end after SIGINT, before SIGTERM; None for the usual one.
        sigkill_timeout: Time in [s] that it may take to end after SIGTERM, before SIGKILL; None for the usual one.
    """

    name: str
    command: tuple[str, ...]
    source: str
    shutdown_on_exit: bool = False
    sigterm_timeout: float | None = None
    sigkill_timeout: float | None = None

    def __str__(self) -> str:
        """Return the command as one would type it."""
        return shlex.join(self.command)
