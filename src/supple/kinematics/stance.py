# SPDX-License-Identifier: Apache-2.0
"""A robot on its feet: a model whose root is where the feet stand, so that body and place can move apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import SettingError, StateError
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.kinematics.balance import SOLES, support_edges
from supple.kinematics.model import KinematicModel
from supple.robots import Robot

__all__ = ["BASE", "STANCE", "Footing", "StanceModel", "Standing"]

Array = NDArray[np.float64]

STANCE = slice(0, 3)
"""Where the feet stand: x, y, yaw of the stance frame in the world; entries of the coordinates."""

BASE = slice(3, 9)
"""Where the base is above the feet: x, y, z, yaw, pitch, roll in the stance frame; entries of the coordinates."""


@dataclass(frozen=True)
class Footing:
    """What legs and base may do.

    Attributes:
        step: Whether the robot may stand elsewhere: both feet slide over the floor together, to be walked to.
        heights: Lowest and highest base above the floor in [m] between which the legs may bend, the base leaning and
            turning as well; None keeps the legs as they are.
        feet: World poses of the soles, left first, to stand on; where they are if absent.
    """

    step: bool = False
    heights: tuple[float, float] | None = None
    feet: tuple[pin.SE3, pin.SE3] | None = None

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        if self.heights is not None and not 0.0 < self.heights[0] <= self.heights[1]:
            raise SettingError(f"base heights: lowest and highest in [m], got {self.heights}")

    @property
    def moves(self) -> bool:
        """Whether the base may move at all."""
        return self.step or self.heights is not None


@dataclass(frozen=True, eq=False)
class Standing:
    """How the robot stands at the beginning of a search.

    Attributes:
        x: Coordinates, shape (nv,).
        soles: Poses of both soles in the stance frame, left first.
        edges: Edges of the support polygon in the stance frame, shape (k, 3), as :func:`support_edges` gives them.
    """

    x: Array
    soles: tuple[pin.SE3, ...]
    edges: Array


class StanceModel:
    """The robot's kinematic tree on nine more joints: three for the stance frame, six from there to the base.

    The stance frame lies on the floor between the soles, with their mean heading. Feet that stand are still in it while
    the base squats and leans above them, and it slides over the floor when the robot is to stand elsewhere. All joints
    have one coordinate, so that coordinates are a vector and their differences are velocities.

    Args:
        robot: The robot.

    Attributes:
        model: Pinocchio model.
        data: Its data, as :meth:`update` leaves it.
        columns: Coordinates of the table's joints, shape (n,).
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        root = pin.JointModelComposite()
        for joint in (pin.JointModelPX(), pin.JointModelPY(), pin.JointModelRZ(), pin.JointModelTranslation()):
            root.addJoint(joint)
        for joint in (pin.JointModelRZ(), pin.JointModelRY(), pin.JointModelRX()):
            root.addJoint(joint)
        self.model = pin.buildModelFromUrdf(str(robot.urdf), root)
        for frame in robot.frames.values():
            if not self.model.existFrame(frame.name):
                parent = self.model.getFrameId(frame.link)
                link = self.model.frames[parent]
                placement = link.placement * frame.T_link_frame
                self.model.addFrame(pin.Frame(frame.name, link.parentJoint, parent, placement, pin.FrameType.OP_FRAME))
        self.data = self.model.createData()
        self.columns = np.array([self.model.joints[self.model.getJointId(name)].idx_v for name in robot.joints.names])
        self.sole_ids = tuple(self.model.getFrameId(name) for name in SOLES)
        self.hand_ids = {e.name: self.model.getFrameId(e.frame) for e in robot.effectors.values()}
        self._kinematics = KinematicModel(robot)
        self._arms = {e.name: self._arm(e.frame, robot.joints.group(e.arm)) for e in robot.effectors.values()}

    def _arm(self, frame: str, joints: NDArray[np.intp]) -> tuple[int, float]:
        """Return the first joint of an arm, and how far from it the hand can be when the arm is straight in [m]."""
        chain = {self.model.getJointId(self.robot.joints.names[i]) for i in joints}
        hand = self.model.frames[self.model.getFrameId(frame)]
        length, joint = float(np.linalg.norm(hand.placement.translation)), hand.parentJoint
        while self.model.parents[joint] in chain:
            length += float(np.linalg.norm(self.model.jointPlacements[joint].translation))
            joint = self.model.parents[joint]
        return int(joint), length

    def standing(self, T_world_base: pin.SE3, q: Array, feet: Sequence[pin.SE3] | None = None) -> Standing:
        """Return coordinates and support of a robot that stands.

        Args:
            T_world_base: Base pose.
            q: Joint positions in [rad], table order, shape (n,).
            feet: World poses on which the soles are to stand, left first; where they are if absent.

        Raises:
            StateError: The base pose or a joint position is not finite.
        """
        if not np.isfinite(q).all():
            bad = [self.robot.joints.names[i] for i in np.flatnonzero(~np.isfinite(q))]
            raise StateError(f"joint positions are not finite for {', '.join(bad)}")
        if not np.isfinite(T_world_base.homogeneous).all():
            raise StateError("the base pose is not finite")
        if feet is None:
            feet = self._kinematics.frame_poses(self._kinematics.configuration(T_world_base, q), *SOLES)
        planted = [xyyaw_of(foot) for foot in feet]
        headings = [np.array([np.cos(yaw), np.sin(yaw)]) for _, _, yaw in planted]
        yaw = float(np.arctan2(*np.mean(headings, axis=0)[::-1]))
        place = np.mean([foot[:2] for foot in planted], axis=0)
        stance = pose_from_xyyaw(place[0], place[1], yaw)
        base = stance.actInv(T_world_base)
        x = np.empty(self.model.nv)
        x[STANCE] = *place, yaw
        x[BASE] = *base.translation, *pin.rpy.matrixToRpy(base.rotation)[::-1]
        x[self.columns] = q
        soles = tuple(stance.actInv(foot) for foot in feet)
        return Standing(x, soles, support_edges(soles))

    def pose(self, x: Array) -> tuple[pin.SE3, Array]:
        """Return the base pose and the joint positions (n,) in table order of coordinates."""
        stance = pose_from_xyyaw(*x[STANCE])
        position, angles = x[BASE][:3], x[BASE][3:]
        return stance * pin.SE3(pin.rpy.rpyToMatrix(*angles[::-1]), position), x[self.columns].copy()

    def update(self, x: Array) -> None:
        """Compute poses and Jacobians of everything for coordinates."""
        pin.jacobianCenterOfMass(self.model, self.data, x)
        pin.updateFramePlacements(self.model, self.data)

    def beyond_arm(self, name: str, target: pin.SE3) -> bool:
        """Tell whether a target is farther from the shoulder than the straight arm is long."""
        shoulder, length = self._arms[name]
        return bool(np.linalg.norm(target.translation - self.data.oMi[shoulder].translation) > length)

    def hand_error(self, name: str, target: pin.SE3) -> tuple[Array, Array]:
        """Return what a hand lacks to its target as a twist in its own frame (6,), and how that changes (6, nv)."""
        return self._error(self.hand_ids[name], target)

    def sole_error(self, foot: int, x: Array, sole: pin.SE3) -> tuple[Array, Array]:
        """Return the same for a sole and its pose in the stance frame; sliding with the stance changes nothing."""
        error, jacobian = self._error(self.sole_ids[foot], pose_from_xyyaw(*x[STANCE]) * sole)
        jacobian[:, STANCE] = 0.0
        return error, jacobian

    def _error(self, frame: int, target: pin.SE3) -> tuple[Array, Array]:
        offset = self.data.oMf[frame].actInv(target)
        jacobian = pin.getFrameJacobian(self.model, self.data, frame, pin.LOCAL)
        return pin.log6(offset).vector, -pin.Jlog6(offset.inverse()) @ jacobian

    def balance(self, x: Array, edges: Array) -> tuple[Array, Array]:
        """Return how far the centre of mass is inside each edge of the support in [m] (k,); its gradient (k, nv)."""
        yaw = float(x[2])
        turn = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        com = turn @ (self.data.com[0][:2] - x[:2])
        jacobian = turn @ self.data.Jcom[:2]
        jacobian[:, STANCE] = 0.0
        return -(edges[:, :2] @ com + edges[:, 2]), -edges[:, :2] @ jacobian

    def point_jacobian(self, joint: int, point: Array, direction: Array) -> Array:
        """Return how fast a world point on a joint's link moves along a world direction, shape (nv,)."""
        jacobian = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL_WORLD_ALIGNED)
        lever = pin.skew(point - self.data.oMi[joint].translation) @ direction
        return np.concatenate([direction, lever]) @ jacobian

    def limits(self, ranges: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
        """Return lower and upper bounds of all coordinates, (nv,) each; those of some joints narrowed by name."""
        lower, upper = np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        lower[self.columns], upper[self.columns] = self.robot.joints.lower, self.robot.joints.upper
        for name, interval in ranges.items():
            lower[self.columns[self.robot.joints.index(name)]], upper[self.columns[self.robot.joints.index(name)]] = (
                interval
            )
        return lower, upper
