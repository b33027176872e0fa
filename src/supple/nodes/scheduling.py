# SPDX-License-Identifier: Apache-2.0
"""Who gets the processor first: loops that move a robot before pictures and displays."""

from __future__ import annotations

import os
import resource
from pathlib import Path

__all__ = ["CONTROL_PRIORITY", "RECORDING_PRIORITY", "give_way", "take_priority"]

CONTROL_PRIORITY = 20
"""Real-time priority of control loops: above everything ordinary, below the kernel's own threads (50)."""

RECORDING_PRIORITY = 10
"""Real-time priority of what must miss no message: below control loops, above everything that only shows something."""

_COURTESY = 10


def take_priority(priority: int) -> str:
    """Schedule every thread of this process in real time, if the system permits it.

    Threads made later inherit it.

    Args:
        priority: From 1 to 99; 0 leaves everything as it is.

    Returns:
        What was achieved, in words.
    """
    if priority == 0:
        return "normal"
    limit = os.sched_get_priority_max(os.SCHED_RR)
    if priority > limit:
        return f"normal: a real-time priority of {priority} does not exist, the highest is {limit}"
    for thread in Path("/proc/self/task").iterdir():
        try:
            os.sched_setscheduler(int(thread.name), os.SCHED_RR, os.sched_param(priority))
        except ProcessLookupError:
            # It ended in between.
            continue
        except PermissionError:
            permitted, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
            return f"normal: a real-time priority of {priority} is not permitted (ulimit -r is {permitted})"
    return f"real time, priority {priority}"


def give_way() -> None:
    """Let this process wait for every loop that moves something; for its main thread, before others are made."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(_COURTESY)
