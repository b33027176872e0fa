# SPDX-License-Identifier: Apache-2.0
"""Robots: joint tables, limits, gains, frames, states, commands, the action contract and the Body seam."""

from __future__ import annotations

from supple.errors import UnknownNameError
from supple.robots.body import Body, PerfectBody, ReadOnlyBody
from supple.robots.contract import ActionContract, ActionKind, ActionTerm
from supple.robots.g1 import g1
from supple.robots.joints import Joint, JointTable
from supple.robots.panda import panda
from supple.robots.robot import Camera, Effector, Frame, Robot
from supple.robots.state import RobotCommand, RobotState

__all__ = [
    "ActionContract",
    "ActionKind",
    "ActionTerm",
    "Body",
    "Camera",
    "Effector",
    "Frame",
    "Joint",
    "JointTable",
    "PerfectBody",
    "ReadOnlyBody",
    "Robot",
    "RobotCommand",
    "RobotState",
    "robot_named",
]


def robot_named(name: str) -> Robot:
    """Return a robot by the name that is stored with data."""
    makers = {"g1": g1, "panda": panda}
    if name not in makers:
        raise UnknownNameError("robot", name, makers)
    return makers[name]()
