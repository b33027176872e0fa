# SPDX-License-Identifier: Apache-2.0
"""The Franka Emika Panda: an arm of seven joints with a gripper of two sliding fingers."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pinocchio as pin

from supple.robots.assets import panda_urdf
from supple.robots.contract import ActionContract, ActionKind, ActionTerm
from supple.robots.joints import Joint, JointTable
from supple.robots.robot import Effector, Frame, Robot
from supple.robots.touch import PlatePatch, TactilePad

__all__ = ["FINGERTIP", "FINGERTIP_HALF_SIZE", "PANDA_SIDES", "panda"]

PANDA_SIDES = ("left", "right")
"""Of the fingers; the left one opens along +y of the hand."""

FINGERTIP = (0.0, 0.00758, 0.04525)
"""Middle of the left finger's rubber tip in its link's frame in [m] (URDF); the right one's has the other sign of y."""

FINGERTIP_HALF_SIZE = (0.00875, 0.0076, 0.00925)
"""Half the extents of a rubber tip in [m] (URDF)."""

# Taxels of 4.4 x 4.6 mm on the inner side of a tip.
_TAXELS = 4
_CONTROL_INTERVAL = 0.02
# From the flange to the point between the finger tips, and the turn of the hand on the flange (URDF).
_FLANGE, _TIPS, _TURN = 0.107, 0.1034, -0.25 * math.pi
# What the hand can press with for long, of the two fingers together (data sheet of the Franka Hand).
_GRIPPING_FORCE = 70.0


def _arm() -> list[Joint]:
    """Return the arm's joints: limits of the URDF; gains that hold it as stiffly as its own controller does."""
    wide, shoulder = (-2.8973, 2.8973), (-1.7628, 1.7628)
    limits = (wide, shoulder, wide, (-3.0718, -0.0698), wide, (-0.0175, 3.7525), wide)
    home = (0.0, 0.0, 0.0, -0.5 * math.pi, 0.0, 0.5 * math.pi, 0.25 * math.pi)
    joints = []
    for number, ((lower, upper), at) in enumerate(zip(limits, home, strict=True), start=1):
        velocity, effort, kp, kd = (2.175, 87.0, 3000.0, 200.0) if number <= 4 else (2.61, 12.0, 1000.0, 60.0)
        joints.append(Joint(f"panda_joint{number}", "arm", lower, upper, velocity, effort, kp, kd, at, armature=0.1))
    return joints


def _finger(number: int) -> Joint:
    force = 0.5 * _GRIPPING_FORCE
    return Joint(
        f"panda_finger_joint{number}", "fingers", 0.0, 0.04, 0.2, force, kp=3000.0, kd=60.0, home=0.04, armature=0.1
    )


def _pad(side: str) -> TactilePad:
    sign = 1.0 if side == "left" else -1.0
    x, y, z = FINGERTIP
    half_width, half_depth, half_length = FINGERTIP_HALF_SIZE
    patch = PlatePatch(
        (x, sign * (y - half_depth), z), (0.0, 0.0, 1.0), (0.0, -sign, 0.0), 2.0 * half_length, 2.0 * half_width
    )
    return TactilePad(f"{side}_finger", f"panda_{side}finger", f"{side}_fingertip", patch, _TAXELS, _TAXELS)


def _contract(joints: JointTable) -> ActionContract:
    arm = [joints.joints[i] for i in joints.group("arm")]
    terms = [
        ActionTerm(
            name=joint.name,
            kind=ActionKind.JOINT_POSITION,
            unit="rad",
            frame="joint",
            lower=joint.lower,
            upper=joint.upper,
        )
        for joint in arm
    ]
    terms.append(
        ActionTerm(name="gripper_width", kind=ActionKind.GRIPPER, unit="m", frame="gripper", lower=0.0, upper=0.08)
    )
    return ActionContract(robot="panda", control_interval=_CONTROL_INTERVAL, terms=tuple(terms))


@cache
def panda() -> Robot:
    """Return the Panda, bolted down at its base link.

    Its action has 8 numbers: positions of the arm's joints, and the distance of the finger tips.
    """
    joints = JointTable((*_arm(), _finger(1), _finger(2)))
    identity = pin.SE3.Identity()
    flange = pin.SE3(np.eye(3), np.array([0.0, 0.0, _FLANGE]))
    tips = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, _TURN), np.array([0.0, 0.0, _FLANGE + _TIPS]))
    frames = [
        Frame("base_link", "panda_link0", identity),
        Frame("wrist", "panda_link7", flange),
        # Between the finger tips: z along them, the fingers open along y.
        Frame("gripper", "panda_link7", tips),
    ]
    postures = {"open": (0.04, 0.04), "closed": (0.0, 0.0)}
    return Robot(
        name="panda",
        joints=joints,
        base_link="panda_link0",
        standing_height=0.0,
        frames={frame.name: frame for frame in frames},
        effectors={"hand": Effector("hand", "gripper", "arm", "fingers", postures)},
        cameras={},
        contract=_contract(joints),
        urdf=panda_urdf(),
        pads={pad.name: pad for pad in map(_pad, PANDA_SIDES)},
        wrench_frames=("wrist",),
        fixed_base=True,
    )
