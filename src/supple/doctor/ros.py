# SPDX-License-Identifier: Apache-2.0
"""The ROS side: the environment's settings, the interfaces, and messages between two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from supple.doctor.check import Check, run_python
from supple.launching import LaunchError, ros_environment

__all__ = ["ros_checks"]

_SETUP = "run: make setup"
_INTERFACES = """
import rclpy
from control_msgs.action import FollowJointTrajectory
from supple_interfaces.action import Reach, ReplayEpisode, WalkTo
from supple_interfaces.msg import CommandTrace, ContactArray, JointCommand, ObjectPoses
from supple_interfaces.srv import Mark, Reset, Step
from tf2_msgs.msg import TFMessage
for kind in (FollowJointTrajectory.Goal, WalkTo.Goal, Reset.Request, JointCommand, TFMessage):
    kind()
print("rclpy, control_msgs, supple_interfaces, tf2_msgs")
"""


def ros_checks() -> list[Check]:
    """Look at the environment, the interfaces and a DDS round trip."""
    checks = [_settings(os.environ)]
    try:
        environment = ros_environment()
    except LaunchError as error:
        return [*checks, Check("Interfaces", False, str(error), "Supple as an installed ROS package", _SETUP)]
    ok, line = run_python("-c", _INTERFACES, environment=environment)
    checks.append(Check("Interfaces", ok, line, "rclpy and every interface package import", "" if ok else _SETUP))
    if ok:
        checks.append(_round_trip(environment))
    return checks


def _wheels() -> bool:
    """Tell whether rclpy lies in this virtual environment itself, as the wheels put it."""
    return (Path(sys.prefix) / "share/rclpy").is_dir()


def _settings(environment: Mapping[str, str]) -> Check:
    """Find settings that contradict each other."""
    clashes: list[tuple[str, str]] = []
    distribution, wheels = environment.get("ROS_DISTRO", ""), _wheels()
    middleware = environment.get("RMW_IMPLEMENTATION", "")
    domain = environment.get("ROS_DOMAIN_ID", "0")
    if distribution and wheels:
        clashes.append(
            (f"ROS_DISTRO={distribution} while .venv holds the ROS wheels", "make clean setup, or unset ROS_DISTRO")
        )
    if wheels and middleware not in ("", "rmw_fastrtps_cpp"):
        clashes.append((f"RMW_IMPLEMENTATION={middleware}, which the wheels do not have", "unset RMW_IMPLEMENTATION"))
    if wheels and "/opt/ros/" in environment.get("PYTHONPATH", ""):
        clashes.append(("PYTHONPATH leads to a ROS distribution", "unset PYTHONPATH"))
    if not domain.isdecimal() or int(domain) > 232:
        clashes.append((f"ROS_DOMAIN_ID={domain}", "set ROS_DOMAIN_ID to 0 … 232"))
    found = "; ".join(what for what, _ in clashes) or (f"ROS {distribution}" if distribution else "ROS wheels")
    remedy = "; ".join(what for _, what in clashes)
    return Check("ROS environment", not clashes, found, "settings that agree", remedy)


def _round_trip(environment: Mapping[str, str]) -> Check:
    """Send a message to another process and back."""
    expected = "a message comes back from another process"
    script = ["-m", "supple.nodes.dds_check"]
    topic = f"supple_doctor_{os.getpid()}"
    echo = subprocess.Popen(
        [sys.executable, *script, "echo", topic],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ok, line = run_python(*script, "ping", topic, environment=environment)
    finally:
        # The other process stays as long as its standard input is open, so that it cannot be left behind.
        echo.communicate()
    if ok:
        answer = json.loads(line)
        found = f"{answer['middleware']}, domain {answer['domain']}: {answer['round_trip'] * 1e3:.1f} ms"
        return Check("DDS round trip", True, found, expected)
    remedy = (
        "check ROS_DOMAIN_ID, FASTDDS_DEFAULT_PROFILES_FILE and that the loopback interface is up (ip link show lo)"
    )
    return Check("DDS round trip", False, line, expected, remedy)
