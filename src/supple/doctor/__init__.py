# SPDX-License-Identifier: Apache-2.0
"""Say what is there, what is missing, and what to do about it."""

from __future__ import annotations

from supple.doctor.check import Check
from supple.doctor.machine import machine_checks
from supple.doctor.packages import package_checks
from supple.doctor.ros import ros_checks

__all__ = ["Check", "run_checks"]


def run_checks() -> list[Check]:
    """Look at Python, the packages, the machine and the ROS side; takes some seconds.

    Whatever could crash or hang (rendering, imports, DDS) runs in a process of its own with a time limit.
    """
    return [*package_checks(), *machine_checks(), *ros_checks()]
