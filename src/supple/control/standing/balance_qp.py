# SPDX-License-Identifier: Apache-2.0
"""The balance as a quadratic program: joint accelerations and foot wrenches that follow references best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import daqp
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.standing.references import BalanceReference, HandReference
from supple.control.standing.support import GRAVITY, LEAST_PRESSURE, SOLE_MIDDLE, Support, wrench_cone
from supple.errors import StateError
from supple.geometry import quaternion_of
from supple.kinematics.model import KinematicModel
from supple.robots import Robot, RobotState
from supple.robots.g1 import ANKLE_COUPLING, ARM_GROUPS, LEG_GROUPS

__all__ = ["BalanceQP", "Solution"]

Array = NDArray[np.float64]

_TORQUE_SHARE = 0.95
_EVEN = np.array([1.0, 1.0, 0.1, 100.0, 30.0, 100.0])

# Weights of the least-squares costs and gains of the wanted accelerations (squared natural frequency in [1/s^2]).
_COM_WEIGHT, _COM_GAIN = 100.0, 40.0
_HEIGHT_WEIGHT, _HEIGHT_GAIN = 30.0, 60.0
_ROTATION_WEIGHT, _PITCH_WEIGHT, _ROTATION_GAIN = 10.0, 1.0, 80.0
_UPPER_WEIGHT, _UPPER_GAIN = 1.0, 60.0
_LEG_WEIGHT, _LEG_DAMPING = 0.01, 2.0
_HAND_WEIGHTS, _HAND_GAIN, _LED_ARM_WEIGHT = np.repeat([10.0, 2.0], 3), 100.0, 0.005
_CONTACT_WEIGHT, _CONTACT_DAMPING = 1e3, 30.0
_FORCE_WEIGHT = 1e-5
_REGULARISATION = 1e-6
# All but the contacts' are critical.
_COM_DAMPING, _HEIGHT_DAMPING, _ROTATION_DAMPING, _UPPER_DAMPING, _HAND_DAMPING = (
    2.0 * math.sqrt(gain) for gain in (_COM_GAIN, _HEIGHT_GAIN, _ROTATION_GAIN, _UPPER_GAIN, _HAND_GAIN)
)

# Within this time a joint must be able to come to rest before its limit, in [s].
_LIMIT_HORIZON = 0.08
_LIMIT_MARGIN = 0.02
_ACCELERATION, _BASE_ACCELERATION = 400.0, 1e3
_UNBOUNDED = 1e4
_EQUALITY = 5  # daqp's mark for a row that must be met


@dataclass(frozen=True)
class Solution:
    """What the balance asks of the joints.

    Attributes:
        acceleration: Of the balanced joints in [rad/s^2], shape (n,).
        torque: Of the balanced joints in [Nm], shape (n,).
        wrenches: Force and moment of the floor on each sole's ankle link, at the ankle, in its axes, shape (2, 6).
    """

    acceleration: Array
    torque: Array
    wrenches: Array


class BalanceQP:
    """Inverse dynamics of a robot on both feet, solved once per tick.

    Unknowns are the accelerations of the floating base and of the joints (fingers count as rigid) and a wrench for each
    foot: 47 for the G1. Dynamics, torque limits and wrench cones hold exactly; joint limits as bounds on accelerations;
    feet that keep still, centre of mass, height, orientation, posture and hands are costs by weight.

    Args:
        robot: The robot.

    Attributes:
        table: Positions in the joint table of the balanced joints (all but fingers), shape (n,).
        upper: Which of them are above the legs, bool, shape (n,).
        arm_of: Places of an effector's arm among them, by effector.
        mass: Mass of the robot in [kg].
    """

    def __init__(self, robot: Robot) -> None:
        joints = robot.joints
        full = KinematicModel(robot).model
        self.table = joints.group(*LEG_GROUPS, "waist", *ARM_GROUPS)
        names = [joints.names[i] for i in self.table]
        fingers = [full.getJointId(name) for name in joints.names if name not in names]
        self._model = model = pin.buildReducedModel(full, fingers, pin.neutral(full))
        self._data = model.createData()
        ids = [model.getJointId(name) for name in names]
        self._iq = np.array([model.joints[i].idx_q for i in ids])
        self._iv = np.array([model.joints[i].idx_v for i in ids])
        armature = np.zeros(model.nv)
        armature[self._iv] = joints.armature[self.table]
        model.armature = armature
        self._lower = joints.lower[self.table] + _LIMIT_MARGIN
        self._upper = joints.upper[self.table] - _LIMIT_MARGIN
        self._ankles = [(names.index(f"{s}_ankle_pitch_joint"), names.index(f"{s}_ankle_roll_joint")) for s in _SIDES]
        self._base = model.getFrameId(robot.base_link)
        self._feet = [model.getFrameId(f"{side}_ankle_roll_link") for side in _SIDES]
        self._soles = [model.getFrameId(f"{side[0]}_sole") for side in _SIDES]
        self._hands = {name: model.getFrameId(effector.frame) for name, effector in robot.effectors.items()}
        position = {index: i for i, index in enumerate(self.table)}
        self.arm_of = {
            name: np.array([position[i] for i in joints.group(effector.arm)])
            for name, effector in robot.effectors.items()
        }
        self.upper = ~np.isin(self.table, joints.group(*LEG_GROUPS))
        self._wrist_of = {frame: model.getFrameId(frame) for frame in robot.wrench_frames}
        self.mass = float(sum(inertia.mass for inertia in model.inertias))
        self._nv = model.nv
        self._rest = np.zeros(model.nv)
        self._lower_half = np.tri(model.nv, k=-1, dtype=bool)
        self._build_constants(joints.effort[self.table])

    def _build_constants(self, effort: Array) -> None:
        """Build what is the same in every tick: unknowns are accelerations (nv), then a wrench for each foot."""
        nv = self._nv
        cone, size = wrench_cone(), nv + 12
        rows = cone.shape[0]
        # Rows of the dynamics, which change, and those of both wrenches' cones.
        self._constraints = np.zeros((nv + 2 * rows, size))
        self._constraints[nv : nv + rows, nv : nv + 6] = self._constraints[nv + rows :, nv + 6 :] = cone
        least = np.zeros(rows)
        least[0] = LEAST_PRESSURE
        bounds = (np.full(nv, _BASE_ACCELERATION), np.full(12, _UNBOUNDED), np.zeros(nv))
        self._high = np.concatenate([*bounds, np.full(2 * rows, _UNBOUNDED)])
        self._low = np.concatenate([*(-bound for bound in bounds), least, least])
        # No motor drives the base: its six equations hold exactly.
        self._torque = np.zeros(nv)
        self._torque[self._iv] = _TORQUE_SHARE * effort
        self._sense = np.zeros(size + nv + 2 * rows, dtype=np.int32)
        self._sense[size : size + 6] = _EQUALITY

        # Rows of the weighted least squares: centre of mass (2), height, rotation (3), and each foot (6).
        self._rows = np.zeros((18, nv))
        turn = [_ROTATION_WEIGHT, _PITCH_WEIGHT, _ROTATION_WEIGHT]
        self._row_weight = np.r_[np.full(2, _COM_WEIGHT), _HEIGHT_WEIGHT, turn, np.full(12, _CONTACT_WEIGHT)]
        force_weight = _FORCE_WEIGHT * np.tile(_EVEN, 2)
        even = np.zeros(12)
        even[[2, 8]] = 0.5 * self.mass * GRAVITY
        self._hessian = np.diag(_REGULARISATION + np.r_[np.zeros(nv), force_weight])
        self._gradient = np.r_[np.zeros(nv), -force_weight * even]
        self._posture_weight = np.where(self.upper, _UPPER_WEIGHT, _LEG_WEIGHT)

    def update(self, state: RobotState) -> Support:
        """Compute everything that depends on the state, and return how the robot stands.

        Raises:
            StateError: The state is not finite.
        """
        if not state.finite:
            raise StateError(f"robot state at {state.stamp_ns} ns is not finite; the standing controller refuses it")
        model, data = self._model, self._data
        q, v = np.empty(model.nq), np.empty(self._nv)
        base = state.T_world_base
        q[:3], q[3:7] = base.translation, quaternion_of(base)
        q[self._iq] = self._q = state.q[self.table]
        v[:3], v[3:6] = base.rotation.T @ state.base_linear_velocity, state.base_angular_velocity
        v[self._iv] = self._v = state.v[self.table]
        self._tangent = v
        pin.computeAllTerms(model, data, q, v)
        # What follows from joint accelerations of zero: by how much frames and the centre of mass accelerate anyway.
        pin.forwardKinematics(model, data, q, v, self._rest)
        pin.updateFramePlacements(model, data)
        pin.centerOfMass(model, data, q, v, self._rest)
        self._J_base = pin.getFrameJacobian(model, data, self._base, pin.LOCAL_WORLD_ALIGNED)
        self._base_velocity = self._J_base @ v
        self._J_feet = [pin.getFrameJacobian(model, data, frame, pin.LOCAL) for frame in self._feet]
        self._feet_velocity = [J @ v for J in self._J_feet]
        soles = [data.oMf[i] for i in self._soles]
        directions = [sole.rotation for sole in soles]
        middles = [sole.translation + SOLE_MIDDLE * R[:, 0] for sole, R in zip(soles, directions, strict=True)]
        x_axis = directions[0][:, 0] + directions[1][:, 0]
        rotation = pin.rpy.rpyToMatrix(0.0, 0.0, math.atan2(x_axis[1], x_axis[0]))
        support = pin.SE3(rotation, 0.5 * (middles[0] + middles[1]))
        self._support = Support(
            support,
            float(base.translation[2] - support.translation[2]),
            float(self._base_velocity[2]),
            support.actInv(data.com[0])[:2],
            (rotation.T @ data.vcom[0])[:2],
            rotation.T @ base.rotation,
            max(math.acos(min(1.0, R[2, 2])) for R in directions),
            max(math.sqrt(speed[:3].dot(speed[:3])) for speed in self._feet_velocity),
            abs(float(middles[0][2] - middles[1][2])),
        )
        return self._support

    def pose_of(self, name: str) -> pin.SE3:
        """Return the world pose of a link or frame in the last state."""
        return self._data.oMf[self._model.getFrameId(name)].copy()

    def to_world(self, frame: str, wrench: Array) -> Array:
        """Return a wrench (6,) about a frame's origin, given in the frame's axes, in world axes."""
        rotation = self._data.oMf[self._wrist_of[frame]].rotation
        return (wrench.reshape(2, 3) @ rotation.T).ravel()

    def com_for(self, wrenches: Mapping[str, Array]) -> Array:
        """Return the centre of mass x, y in the support frame in [m] that keeps the pressure in the soles' middle.

        Args:
            wrenches: Wrench of the surroundings on the robot by frame, about its origin, in world axes, shape (6,).
        """
        about_x = about_y = 0.0
        support = self._support.T_world_support
        for frame, wrench in wrenches.items():
            x, y, z = (self._data.oMf[self._wrist_of[frame]].translation - support.translation).tolist()
            force_x, force_y, force_z, torque_x, torque_y, _ = wrench.tolist()
            about_x += y * force_z - z * force_y + torque_x
            about_y += z * force_x - x * force_z + torque_y
        return np.array([-about_y, about_x]) @ support.rotation[:2, :2] / (self.mass * GRAVITY)

    def solve(self, reference: BalanceReference, wrenches: Mapping[str, Array]) -> Solution | None:
        """Return the best accelerations, torques and foot wrenches in the state of the last update.

        Args:
            reference: What to follow.
            wrenches: Known wrenches of the surroundings on the robot, as in ``com_for``.

        Returns:
            The solution, or nothing when no wrench of the feet within their cones fits the dynamics.
        """
        model, data, nv = self._model, self._data, self._nv
        size = nv + 12
        bias = data.nle.copy()
        for name, wrench in wrenches.items():
            bias -= wrench @ pin.getFrameJacobian(model, data, self._wrist_of[name], pin.LOCAL_WORLD_ALIGNED)
        dynamics = self._constraints[:nv]
        dynamics[:, :nv] = data.M
        # Pinocchio fills in the upper half.
        np.copyto(dynamics[:, :nv], dynamics[:, :nv].T.copy(), where=self._lower_half)
        np.negative(self._J_feet[0].T, out=dynamics[:, nv : nv + 6])
        np.negative(self._J_feet[1].T, out=dynamics[:, nv + 6 :])
        self._bound_accelerations()
        self._high[size : size + nv], self._low[size : size + nv] = self._torque - bias, -self._torque - bias
        hessian, gradient = self._costs(reference)
        x, _, flag, _ = daqp.solve(hessian, gradient, self._constraints, self._high, self._low, self._sense)
        if flag < 1 or not np.isfinite(x).all():
            return None
        torque = dynamics @ x + bias
        return Solution(x[self._iv], torque[self._iv], x[nv:].reshape(2, 6))

    def _bound_accelerations(self) -> None:
        lower, upper = self._lower.copy(), self._upper
        for pitch, roll in self._ankles:
            lower[pitch] += ANKLE_COUPLING * abs(self._q[roll])
        coasting, share = self._q + self._v * _LIMIT_HORIZON, 2.0 / _LIMIT_HORIZON**2
        most = np.maximum(np.minimum(share * (upper - coasting), _ACCELERATION), -_ACCELERATION)
        least = np.maximum(np.minimum(share * (lower - coasting), _ACCELERATION), -_ACCELERATION)
        self._low[self._iv], self._high[self._iv] = np.minimum(least, most), most

    def _costs(self, reference: BalanceReference) -> tuple[Array, Array]:
        """Return H and g of the costs 0.5 x' H x + g' x that the references stand for."""
        model, data, nv = self._model, self._data, self._nv
        support = self._support
        R = support.T_world_support.rotation
        rows, wanted = self._rows, np.empty(18)

        com, com_rate, com_acceleration = reference.com
        rows[:2] = (R.T @ data.Jcom)[:2]
        error = _COM_GAIN * (com - support.com) + _COM_DAMPING * (com_rate - support.com_rate)
        wanted[:2] = com_acceleration + error - (R.T @ data.acom[0])[:2]

        drift = pin.getFrameClassicalAcceleration(model, data, self._base, pin.LOCAL_WORLD_ALIGNED).vector
        height, rate, acceleration = reference.height
        rows[2] = self._J_base[2]
        lift = _HEIGHT_GAIN * (height - support.height) + _HEIGHT_DAMPING * (rate - support.height_rate)
        wanted[2] = acceleration + lift - drift[2]

        tilt = pin.log3(reference.base_rotation @ support.base_rotation.T)
        rows[3:6] = R.T @ self._J_base[3:]
        turn = _ROTATION_DAMPING * self._base_velocity[3:] + drift[3:]
        wanted[3:6] = _ROTATION_GAIN * tilt - R.T @ turn

        for first, frame, J, velocity in zip((6, 12), self._feet, self._J_feet, self._feet_velocity, strict=True):
            rows[first : first + 6] = J
            drift = pin.getFrameAcceleration(model, data, frame, pin.LOCAL).vector
            wanted[first : first + 6] = -_CONTACT_DAMPING * velocity - drift

        weight = self._posture_weight
        if reference.hands:
            weight = weight.copy()
            for name in reference.hands:
                weight[self.arm_of[name]] = _LED_ARM_WEIGHT
        led = _UPPER_GAIN * (reference.posture - self._q) - _UPPER_DAMPING * self._v
        posture = np.where(self.upper, led, -_LEG_DAMPING * self._v)

        H, g = self._hessian.copy(), self._gradient.copy()
        weighted = rows.T * self._row_weight
        H[:nv, :nv] += weighted @ rows
        g[:nv] -= weighted @ wanted
        H[self._iv, self._iv] += weight
        g[self._iv] -= weight * posture
        for name, hand in reference.hands.items():
            J, wish = self._hand_rows(self._hands[name], hand)
            weighted = J.T * _HAND_WEIGHTS
            H[:nv, :nv] += weighted @ J
            g[:nv] -= weighted @ wish
        return H, g

    def _hand_rows(self, frame: int, hand: HandReference) -> tuple[Array, Array]:
        J = pin.getFrameJacobian(self._model, self._data, frame, pin.LOCAL_WORLD_ALIGNED)
        drift = pin.getFrameClassicalAcceleration(self._model, self._data, frame, pin.LOCAL_WORLD_ALIGNED).vector
        pose, target = self._data.oMf[frame], hand.T_world_hand
        error = np.r_[target.translation - pose.translation, pin.log3(target.rotation @ pose.rotation.T)]
        return J, _HAND_GAIN * error + _HAND_DAMPING * (hand.twist - J @ self._tangent) - drift


_SIDES = ("left", "right")
