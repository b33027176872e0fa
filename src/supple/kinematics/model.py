# SPDX-License-Identifier: Apache-2.0
"""The Pinocchio model of a robot, addressed by the robot's own joint table and frame names."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import JointError, UnknownNameError
from supple.geometry import quaternion_of
from supple.robots import Robot

__all__ = ["KinematicModel"]

Array = NDArray[np.float64]


class KinematicModel:
    """Forward kinematics, centre of mass and gravity of a robot with a free-flyer base.

    The URDF orders joints as it likes (Pinocchio: alphabetically among siblings); this class maps them by name.

    Args:
        robot: The robot.

    Attributes:
        robot: The robot.
        model: Pinocchio model; configuration is (base position 3, base quaternion xyzw 4, joints in URDF order).
        iq: Positions of the table's joints in the configuration vector, shape (n,).
        iv: Positions of the table's joints in the tangent vector, shape (n,).
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.model = pin.buildModelFromUrdf(str(robot.urdf), pin.JointModelFreeFlyer())
        urdf_names = set(self.model.names[2:])
        if urdf_names != set(robot.joints.names):
            missing, extra = set(robot.joints.names) - urdf_names, urdf_names - set(robot.joints.names)
            raise JointError(f"{robot.urdf.name}: missing {sorted(missing)}, not in the table {sorted(extra)}")
        for frame in robot.frames.values():
            parent = self.model.getFrameId(frame.link)
            if parent >= self.model.nframes:
                raise UnknownNameError("link", frame.link, (f.name for f in self.model.frames))
            if not self.model.existFrame(frame.name):
                link = self.model.frames[parent]
                placement = link.placement * frame.T_link_frame
                self.model.addFrame(pin.Frame(frame.name, link.parentJoint, parent, placement, pin.FrameType.OP_FRAME))
        ids = [self.model.getJointId(name) for name in robot.joints.names]
        self.iq = np.array([self.model.joints[i].idx_q for i in ids])
        self.iv = np.array([self.model.joints[i].idx_v for i in ids])
        self.data = self.model.createData()

    def configuration(self, T_world_base: pin.SE3, q: Array) -> Array:
        """Return the configuration vector for a base pose and joint positions (n,) in table order, in [rad]."""
        result = np.empty(self.model.nq)
        result[:3], result[3:7] = T_world_base.translation, quaternion_of(T_world_base)
        result[self.iq] = q
        return result

    def split(self, configuration: Array) -> tuple[pin.SE3, Array]:
        """Return the base pose and the joint positions (n,) in table order of a configuration vector."""
        base = pin.XYZQUATToSE3(configuration[:7])
        return base, configuration[self.iq].copy()

    def frame_id(self, name: str) -> int:
        """Return Pinocchio's index of a frame or link."""
        if not self.model.existFrame(name):
            raise UnknownNameError("frame", name, (f.name for f in self.model.frames))
        return int(self.model.getFrameId(name))

    def frame_poses(self, configuration: Array, *names: str) -> list[pin.SE3]:
        """Return the world poses of frames in a configuration."""
        pin.framesForwardKinematics(self.model, self.data, configuration)
        return [self.data.oMf[self.frame_id(name)].copy() for name in names]

    def center_of_mass(self, configuration: Array) -> Array:
        """Return the centre of mass in the world frame in [m], shape (3,)."""
        return pin.centerOfMass(self.model, self.data, configuration).copy()

    def gravity_torques(self, configuration: Array) -> Array:
        """Return the joint torques (n,) in table order that hold the robot against gravity, in [Nm]."""
        return pin.computeGeneralizedGravity(self.model, self.data, configuration)[self.iv].copy()
