# SPDX-License-Identifier: Apache-2.0
"""TF of a robot: every link of its description below its parent, fixed ones once, moving ones by forward kinematics."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import AssetError
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.kinematics.model import KinematicModel
from supple.robots import Robot
from supple.robots.description import BASE_FRAME, robot_description

__all__ = ["FOOTPRINT_FRAME", "WORLD_FRAME", "TransformTree", "base_transforms"]

WORLD_FRAME = "odom"
"""Frame of a robot's odometry, fixed to the world (REP-105)."""

FOOTPRINT_FRAME = "base_footprint"
"""Frame on the floor below the base, with its heading (REP-120)."""


def base_transforms(T_world_base: pin.SE3) -> dict[tuple[str, str], pin.SE3]:
    """Return the pose of ``base_link`` in ``odom`` and of ``base_footprint`` in ``base_link``, by (parent, child)."""
    footprint = pose_from_xyyaw(*xyyaw_of(T_world_base))
    return {(WORLD_FRAME, BASE_FRAME): T_world_base, (BASE_FRAME, FOOTPRINT_FRAME): T_world_base.actInv(footprint)}


class TransformTree:
    """The tree of frames of a robot's description.

    Args:
        robot: The robot.

    Attributes:
        description: The URDF that the tree is of, for the topic ``robot_description``.
        fixed: Pose of each fixed frame in its parent, by (parent, child); camera and optical frames included.
    """

    def __init__(self, robot: Robot) -> None:
        self.description = robot_description(robot)
        self._model = KinematicModel(robot)
        self._moving: list[tuple[tuple[str, str], int, int]] = []
        fixed = {}
        for joint in ET.fromstring(self.description).iterfind("joint"):
            parent, child = _link(joint, "parent"), _link(joint, "child")
            if joint.get("type") == "fixed":
                fixed[parent, child] = _origin(joint)
            else:
                self._moving.append(((parent, child), self._model.frame_id(parent), self._model.frame_id(child)))
        self.fixed: Mapping[tuple[str, str], pin.SE3] = MappingProxyType(fixed)

    def moving(self, q: NDArray[np.float64]) -> dict[tuple[str, str], pin.SE3]:
        """Return the pose of each moving link in its parent link, by (parent, child).

        Args:
            q: Joint positions in [rad], table order, shape (n,).
        """
        model, data = self._model.model, self._model.data
        pin.framesForwardKinematics(model, data, self._model.configuration(pin.SE3.Identity(), q))
        return {names: data.oMf[parent].actInv(data.oMf[child]) for names, parent, child in self._moving}


def _link(joint: ET.Element, role: str) -> str:
    element = joint.find(role)
    if element is None or not element.get("link"):
        raise AssetError(f"joint {joint.get('name')!r} of the URDF names no {role} link")
    return str(element.get("link"))


def _origin(joint: ET.Element) -> pin.SE3:
    origin = joint.find("origin")
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = (np.array([float(x) for x in origin.get(key, "0 0 0").split()]) for key in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)
