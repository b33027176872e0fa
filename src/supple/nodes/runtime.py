# SPDX-License-Identifier: Apache-2.0
"""How a node runs and ends: events until SIGINT or SIGTERM, actuators made safe, exit code 0."""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import rclpy
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from supple.errors import SuppleError

__all__ = ["Runnable", "run_node"]

_LONGEST_WAIT = 0.1

# Fast DDS has been seen to wait for ever for one of its own timers while it ended.
_LONGEST_FAREWELL = 3.0


class Runnable(Protocol):
    """A node that this module can run."""

    def start(self) -> None:
        """Begin work; called once, before events are handled."""

    def make_safe(self) -> None:
        """Damp actuators and end threads; called once, while the context still works."""


def run_node(make: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Run a node until it is told to stop.

    rclpy's own signal handlers shut the context down before a node could damp anything, and break on the second signal;
    here a signal only sets a flag.

    Args:
        make: Makes the node; it fits ``Runnable``.
        args: Command line, ROS arguments included; the process's own if absent.

    Returns:
        0 after a signal; the node's ``exit_code`` if it set one; 1 if the node could not be started or died, with one
        line that says why. The process ends with 1 and a traceback if the middleware hangs after all is made safe.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    rclpy.init(args=None if args is None else list(args), signal_handler_options=SignalHandlerOptions.NO)
    node = None
    try:
        node = make()
        executor = EventsExecutor()
        executor.add_node(node)
        node.start()  # type: ignore[attr-defined]
        # `spin` of this executor never returns to Python, so that no signal would be seen.
        while not stop.is_set() and getattr(node, "exit_code", None) is None:
            executor.spin_once(timeout_sec=_LONGEST_WAIT)
        return getattr(node, "exit_code", None) or 0
    except SuppleError as error:
        get_logger("supple").error(f"{type(error).__name__}: {error}")
        return 1
    finally:
        if node is not None:
            node.make_safe()  # type: ignore[attr-defined]
        # It waits in C++ and holds the interpreter's lock, so that no thread of Python could end it.
        faulthandler.dump_traceback_later(_LONGEST_FAREWELL, exit=True)
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
        faulthandler.cancel_dump_traceback_later()
