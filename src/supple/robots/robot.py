# SPDX-License-Identifier: Apache-2.0
"""What a robot is: joints, frames, effectors, assets and the meaning of its actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pinocchio as pin

from supple.errors import UnknownNameError
from supple.robots.contract import ActionContract
from supple.robots.joints import JointTable
from supple.robots.touch import TactilePad

__all__ = ["Camera", "Effector", "Frame", "Robot"]


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link (REP-120 names where they exist).

    Attributes:
        name: Frame name as published on TF.
        link: Link of the URDF that it is fixed to.
        T_link_frame: Pose of the frame in the link's frame.
    """

    name: str
    link: str
    T_link_frame: pin.SE3


@dataclass(frozen=True)
class Effector:
    """A hand (or gripper) with the arm that carries it.

    Attributes:
        name: Name used by skills, e.g. ``"left_hand"``.
        frame: Name of its tool frame.
        arm: Joint group that moves it.
        fingers: Joint group of its fingers.
        postures: Finger positions in [rad] ([m] where they slide) in the order of the finger group, by posture name.
    """

    name: str
    frame: str
    arm: str
    fingers: str
    postures: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Camera:
    """A camera fixed to a link; its frame looks along +x (REP-103), the optical frame along +z.

    Attributes:
        name: Camera name; topics and frames begin with it.
        frame: Name of its body frame (+x forward).
        width: Image width in [px].
        height: Image height in [px].
        fovy: Vertical field of view in [deg].
        rate: Frames per second in [Hz].
    """

    name: str
    frame: str
    width: int
    height: int
    fovy: float
    rate: float


@dataclass(frozen=True)
class Robot:
    """A robot model: everything about it that does not change while it moves.

    Attributes:
        name: Name stored with data.
        joints: The one joint table.
        base_link: Link of the base.
        standing_height: Height of the base above the sole when standing at rest, in [m]; 0 for an arm.
        frames: Named frames by name.
        effectors: Hands by name.
        cameras: Cameras by name.
        contract: Meaning of its whole-body action.
        urdf: Path of the kinematic model.
        pads: Tactile sensors by name.
        wrench_frames: Frames in which the external wrench on a link is told: of feet and wrists.
        fixed_base: Whether the base is bolted down, as an arm's.
    """

    name: str
    joints: JointTable
    base_link: str
    standing_height: float
    frames: Mapping[str, Frame]
    effectors: Mapping[str, Effector]
    cameras: Mapping[str, Camera]
    contract: ActionContract
    urdf: Path
    pads: Mapping[str, TactilePad] = field(default_factory=dict)
    wrench_frames: tuple[str, ...] = ()
    fixed_base: bool = False

    def frame(self, name: str) -> Frame:
        """Return a named frame."""
        if name not in self.frames:
            raise UnknownNameError("frame", name, self.frames)
        return self.frames[name]

    def effector(self, name: str) -> Effector:
        """Return a hand by name."""
        if name not in self.effectors:
            raise UnknownNameError("effector", name, self.effectors)
        return self.effectors[name]
