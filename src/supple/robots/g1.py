# SPDX-License-Identifier: Apache-2.0
"""The Unitree G1 with 29 body joints and two Dex3 hands (43 joints)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pinocchio as pin

from supple.robots.assets import g1_urdf
from supple.robots.contract import ActionContract, ActionKind, ActionTerm
from supple.robots.dex3 import dex3_pads
from supple.robots.joints import Joint, JointTable
from supple.robots.robot import Camera, Effector, Frame, Robot

__all__ = [
    "ANKLE_COUPLING",
    "ARM_GROUPS",
    "BASE_VELOCITY_LIMITS",
    "CONTROL_INTERVAL",
    "HAND_GROUPS",
    "LEG_GROUPS",
    "SOLE_HEIGHT",
    "STANDING_HEIGHT",
    "STANDING_WAIST_RANGE",
    "UPPER_BODY_GROUPS",
    "g1",
    "g1_joints",
]

LEG_GROUPS = ("left_leg", "right_leg")
ARM_GROUPS = ("left_arm", "right_arm")
HAND_GROUPS = ("left_hand", "right_hand")
UPPER_BODY_GROUPS = ("waist", *ARM_GROUPS, *HAND_GROUPS)

CONTROL_INTERVAL = 0.02
"""Time between two whole-body actions in [s]; the walking policy was trained at 50 Hz."""

STANDING_HEIGHT = 0.765
"""Height of the pelvis above the floor in [m] while the walking policy stands."""

STANDING_WAIST_RANGE = {
    "waist_yaw_joint": (-0.9, 0.9),
    "waist_roll_joint": (-0.15, 0.15),
    "waist_pitch_joint": (-0.1, 0.38),
}
"""Waist positions in [rad] under which the walking policy still stands (measured: it falls at pitch -0.2)."""

BASE_VELOCITY_LIMITS = (
    ("base_velocity_x", "m/s", 0.6),
    ("base_velocity_y", "m/s", 0.2),
    ("base_velocity_yaw", "rad/s", 0.8),
)
"""Name, unit and largest magnitude of each base velocity: what the walking policy really reaches (measured)."""

SOLE_HEIGHT = 0.035
"""Distance of the sole below the ankle roll joint in [m]."""

ANKLE_COUPLING = 0.57
"""Share of the ankle's roll by which the lower limit of its pitch rises: its linkage (tendons of the vendor's MJCF)."""

# Reflected rotor inertia in [kg m^2] of the motor types (MJCF of the vendor's model).
_ARMATURE_7520_14 = 0.01017752004
_ARMATURE_7520_22 = 0.025101925
_ARMATURE_5020 = 0.003609725
_ARMATURE_4010 = 0.00425
_NATURAL_FREQUENCY = 2.0 * math.pi * 10.0
_DAMPING_RATIO = 2.0


def _gains(armature: float, stiffening: float = 1.0) -> dict[str, float]:
    """Return the gains that give a motor's own inertia 10 Hz and damping ratio 2, stiffened at constant ratio."""
    kp = armature * _NATURAL_FREQUENCY**2
    kd = 2.0 * _DAMPING_RATIO * armature * _NATURAL_FREQUENCY
    return {"kp": kp * stiffening, "kd": kd * math.sqrt(stiffening), "armature": armature}


# The walking policy was trained with these gains on the legs, so they stay as they are. Arms and waist are told where
# to be by us: with the policy's soft gains they sag by 0.2 to 0.3 rad, so they are stiffer: about as stiff as
# teleoperation of the real robot sets them.
_WAIST_STIFFENING = 8.0
_ARM_STIFFENING = 12.0

_HIP_SMALL, _HIP_LARGE = _gains(_ARMATURE_7520_14), _gains(_ARMATURE_7520_22)
_ANKLE = _gains(2.0 * _ARMATURE_5020)
_WAIST_YAW = _gains(_ARMATURE_7520_14, _WAIST_STIFFENING)
_WAIST = _gains(2.0 * _ARMATURE_5020, _WAIST_STIFFENING)
_ARM, _WRIST = _gains(_ARMATURE_5020, _ARM_STIFFENING), _gains(_ARMATURE_4010, _ARM_STIFFENING)
_FINGER = {"kp": 15.0, "kd": 0.5, "armature": 0.0005}


def _mirrored(lower: float, upper: float, sign: int) -> tuple[float, float]:
    return (lower, upper) if sign > 0 else (-upper, -lower)


def _leg(side: str, sign: int) -> list[Joint]:
    group = f"{side}_leg"
    roll = _mirrored(-0.5236, 2.9671, sign)
    return [
        Joint(f"{side}_hip_pitch_joint", group, -2.5307, 2.8798, 32.0, 88.0, **_HIP_SMALL, home=-0.312),
        Joint(f"{side}_hip_roll_joint", group, *roll, 20.0, 139.0, **_HIP_LARGE, home=0.0),
        Joint(f"{side}_hip_yaw_joint", group, -2.7576, 2.7576, 32.0, 88.0, **_HIP_SMALL, home=0.0),
        Joint(f"{side}_knee_joint", group, -0.087267, 2.8798, 20.0, 139.0, **_HIP_LARGE, home=0.669),
        Joint(f"{side}_ankle_pitch_joint", group, -0.87267, 0.5236, 30.0, 50.0, **_ANKLE, home=-0.363),
        Joint(f"{side}_ankle_roll_joint", group, -0.2618, 0.2618, 30.0, 50.0, **_ANKLE, home=0.0),
    ]


def _arm(side: str, sign: int) -> list[Joint]:
    group = f"{side}_arm"
    roll = _mirrored(-1.5882, 2.2515, sign)
    return [
        Joint(f"{side}_shoulder_pitch_joint", group, -3.0892, 2.6704, 37.0, 25.0, **_ARM, home=0.2),
        Joint(f"{side}_shoulder_roll_joint", group, *roll, 37.0, 25.0, **_ARM, home=sign * 0.2),
        Joint(f"{side}_shoulder_yaw_joint", group, -2.618, 2.618, 37.0, 25.0, **_ARM, home=0.0),
        Joint(f"{side}_elbow_joint", group, -1.0472, 2.0944, 37.0, 25.0, **_ARM, home=0.6),
        Joint(f"{side}_wrist_roll_joint", group, -1.972222054, 1.972222054, 37.0, 25.0, **_ARM, home=0.0),
        Joint(f"{side}_wrist_pitch_joint", group, -1.614429558, 1.614429558, 22.0, 5.0, **_WRIST, home=0.0),
        Joint(f"{side}_wrist_yaw_joint", group, -1.614429558, 1.614429558, 22.0, 5.0, **_WRIST, home=0.0),
    ]


def _hand(side: str, sign: int) -> list[Joint]:
    group = f"{side}_hand"
    thumb_1 = _mirrored(-0.61086523, 1.04719755, sign)
    thumb_2 = _mirrored(0.0, 1.74532925, sign)
    base, tip = _mirrored(-1.57079632, 0.0, sign), _mirrored(-1.74532925, 0.0, sign)
    return [
        Joint(f"{side}_hand_thumb_0_joint", group, -1.04719755, 1.04719755, 3.14, 2.45, **_FINGER, home=0.0),
        Joint(f"{side}_hand_thumb_1_joint", group, *thumb_1, 12.0, 1.4, **_FINGER, home=0.0),
        Joint(f"{side}_hand_thumb_2_joint", group, *thumb_2, 12.0, 1.4, **_FINGER, home=0.0),
        Joint(f"{side}_hand_middle_0_joint", group, *base, 12.0, 1.4, **_FINGER, home=0.0),
        Joint(f"{side}_hand_middle_1_joint", group, *tip, 12.0, 1.4, **_FINGER, home=0.0),
        Joint(f"{side}_hand_index_0_joint", group, *base, 12.0, 1.4, **_FINGER, home=0.0),
        Joint(f"{side}_hand_index_1_joint", group, *tip, 12.0, 1.4, **_FINGER, home=0.0),
    ]


def _waist() -> list[Joint]:
    return [
        Joint("waist_yaw_joint", "waist", -2.618, 2.618, 32.0, 88.0, **_WAIST_YAW, home=0.0),
        Joint("waist_roll_joint", "waist", -0.52, 0.52, 30.0, 50.0, **_WAIST, home=0.0),
        Joint("waist_pitch_joint", "waist", -0.52, 0.52, 30.0, 50.0, **_WAIST, home=0.0),
    ]


@cache
def g1_joints() -> JointTable:
    """Return the G1's joint table: legs, waist, arms in the vendor's order (wire, MJCF, policy), then Dex3 hands.

    Limits are the vendor's URDF; efforts of ankles and waist are those the walking policy was trained under.
    """
    body = [*_leg("left", 1), *_leg("right", -1), *_waist(), *_arm("left", 1), *_arm("right", -1)]
    return JointTable((*body, *_hand("left", 1), *_hand("right", -1)))


def _effector(side: str, sign: int) -> Effector:
    # "flat" folds the thumb out of the way and keeps the fingers on their stops: a plate to press with. "fist" curls
    # the outer links farther than "closed", so that finger tips, too, come to lie on a thin handle.
    postures = {
        "open": (0.0,) * 7,
        "flat": (0.0, sign * 1.0, sign * 1.2, 0.0, 0.0, 0.0, 0.0),
        "closed": (0.0, sign * 1.0, sign * 1.25, *([-sign * 1.2] * 4)),
        "fist": (0.0, sign * 1.0, sign * 1.6, *([-sign * 1.3, -sign * 1.7] * 2)),
    }
    return Effector(f"{side}_hand", f"{side[0]}_gripper", f"{side}_arm", f"{side}_hand", postures)


def _frames() -> list[Frame]:
    identity = pin.SE3.Identity()
    frames = [
        Frame("base_link", "pelvis", identity),
        Frame("torso", "torso_link", identity),
        Frame("imu_link", "pelvis", identity),
        Frame(
            "camera_link",
            "torso_link",
            pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.8307767239493009, 0.0), np.array([0.0576235, 0.01753, 0.42987])),
        ),
    ]
    for side, sign in (("left", 1), ("right", -1)):
        letter = side[0]
        frames += [
            Frame(f"{letter}_wrist", f"{side}_wrist_yaw_link", identity),
            # Centre of the closed hand's contact patch: x along the fingers, the palm faces the other hand.
            Frame(
                f"{letter}_gripper", f"{side}_wrist_yaw_link", pin.SE3(np.eye(3), np.array([0.15, -sign * 0.03, 0.0]))
            ),
            Frame(f"{letter}_sole", f"{side}_ankle_roll_link", pin.SE3(np.eye(3), np.array([0.0, 0.0, -SOLE_HEIGHT]))),
        ]
    return frames


def _contract(joints: JointTable) -> ActionContract:
    upper = joints.group(*UPPER_BODY_GROUPS)
    terms = [
        ActionTerm(
            name=joints.names[i],
            kind=ActionKind.JOINT_POSITION,
            unit="rad",
            frame="joint",
            lower=STANDING_WAIST_RANGE.get(joints.names[i], (float(joints.lower[i]),))[0],
            upper=STANDING_WAIST_RANGE.get(joints.names[i], (float(joints.upper[i]),))[-1],
        )
        for i in upper
    ]
    for name, unit, limit in BASE_VELOCITY_LIMITS:
        terms.append(
            ActionTerm(
                name=name, kind=ActionKind.BASE_VELOCITY, unit=unit, frame="base_footprint", lower=-limit, upper=limit
            )
        )
    terms.append(
        ActionTerm(
            name="base_height", kind=ActionKind.BASE_HEIGHT, unit="m", frame="base_footprint", lower=0.3, upper=0.8
        )
    )
    return ActionContract(robot="g1", control_interval=CONTROL_INTERVAL, terms=tuple(terms))


@cache
def g1() -> Robot:
    """Return the Unitree G1 with Dex3 hands.

    Its action has 35 numbers: 31 upper-body joint targets (waist 3, arms 14, hands 14), base velocity (vx, vy, wz) in
    the heading frame, base height.
    """
    joints = g1_joints()
    return Robot(
        name="g1",
        joints=joints,
        base_link="pelvis",
        standing_height=STANDING_HEIGHT,
        frames={frame.name: frame for frame in _frames()},
        effectors={e.name: e for e in (_effector("left", 1), _effector("right", -1))},
        cameras={"camera": Camera("camera", "camera_link", 640, 480, 79.5, 15.0)},
        contract=_contract(joints),
        urdf=g1_urdf(),
        pads={pad.name: pad for side in ("left", "right") for pad in dex3_pads(side)},
        wrench_frames=("l_sole", "r_sole", "l_wrist", "r_wrist"),
    )
