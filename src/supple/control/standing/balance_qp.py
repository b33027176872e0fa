# SPDX-License-Identifier: Apache-2.0
"""The balance as a quadratic program: joint accelerations and foot wrenches that follow references best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import daqp
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.standing.references import BalanceReference
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
_HAND_WEIGHT, _HAND_TURN_WEIGHT, _HAND_GAIN, _LED_ARM_WEIGHT = 10.0, 2.0, 100.0, 0.005
_CONTACT_WEIGHT, _CONTACT_DAMPING = 1e3, 30.0
_FORCE_WEIGHT = 1e-5
_REGULARISATION = 1e-6

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


class _Costs:
    """Rows of a weighted least-squares cost, collected into H and g."""

    def __init__(self, size: int) -> None:
        self.H = np.zeros((size, size))
        self.g = np.zeros(size)
        self.H[np.diag_indices(size)] = _REGULARISATION

    def add(self, weight: float | Array, J: Array, wanted: Array) -> None:
        """Add weight * |J a - wanted|^2 of the accelerations a."""
        weighted, n = J.T * weight, J.shape[1]
        self.H[:n, :n] += weighted @ J
        self.g[:n] -= weighted @ wanted


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
        self._n, self._nv = len(self.table), model.nv
        self._below = np.tril_indices(self._nv, -1)
        self._build_constants(joints.effort[self.table])

    def _build_constants(self, effort: Array) -> None:
        """Build what is the same in every tick: unknowns are accelerations (nv), then a wrench for each foot."""
        cone, size = wrench_cone(), self._nv + 12
        rows = cone.shape[0]
        self._cones = np.zeros((2 * rows, size))
        self._cones[:rows, self._nv : self._nv + 6], self._cones[rows:, self._nv + 6 :] = cone, cone
        least = np.zeros(rows)
        least[0] = LEAST_PRESSURE
        self._least, self._most = np.tile(least, 2), np.full(2 * rows, _UNBOUNDED)
        self._free = np.full(12, _UNBOUNDED)
        # No motor drives the base: its six equations hold exactly.
        self._torque = np.zeros(self._nv)
        self._torque[self._iv] = _TORQUE_SHARE * effort
        self._sense = np.zeros(size + self._nv + 2 * rows, dtype=np.int32)
        self._sense[size : size + 6] = _EQUALITY
        self._force_weight = _FORCE_WEIGHT * np.tile(_EVEN, 2)
        self._even = np.zeros(12)
        self._even[[2, 8]] = 0.5 * self.mass * GRAVITY

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
        q[self._iq] = state.q[self.table]
        v[:3], v[3:6] = base.rotation.T @ state.base_linear_velocity, state.base_angular_velocity
        v[self._iv] = state.v[self.table]
        self._q, self._v = state.q[self.table], state.v[self.table]
        self._tangent = v
        pin.computeAllTerms(model, data, q, v)
        pin.forwardKinematics(model, data, q, v, np.zeros(self._nv))
        pin.updateFramePlacements(model, data)
        pin.centerOfMass(model, data, q, v, np.zeros(self._nv))
        soles = [data.oMf[i] for i in self._soles]
        middles = [sole.act(np.array([SOLE_MIDDLE, 0.0, 0.0])) for sole in soles]
        x_axis = soles[0].rotation[:, 0] + soles[1].rotation[:, 0]
        rotation = pin.rpy.rpyToMatrix(0.0, 0.0, float(np.arctan2(x_axis[1], x_axis[0])))
        support = pin.SE3(rotation, 0.5 * (middles[0] + middles[1]))
        J_base = pin.getFrameJacobian(model, data, self._base, pin.LOCAL_WORLD_ALIGNED)
        feet = [np.linalg.norm((J @ v)[:3]) for J in map(self._foot_jacobian, self._feet)]
        self._support = Support(
            support,
            float(base.translation[2] - support.translation[2]),
            float((J_base @ v)[2]),
            support.actInv(data.com[0])[:2],
            (rotation.T @ data.vcom[0])[:2],
            rotation.T @ base.rotation,
            float(max(np.arccos(min(1.0, sole.rotation[2, 2])) for sole in soles)),
            float(max(feet)),
            float(abs(middles[0][2] - middles[1][2])),
        )
        return self._support

    def _foot_jacobian(self, frame: int) -> Array:
        return pin.getFrameJacobian(self._model, self._data, frame, pin.LOCAL)

    def pose_of(self, name: str) -> pin.SE3:
        """Return the world pose of a link or frame in the last state."""
        return self._data.oMf[self._model.getFrameId(name)].copy()

    def to_world(self, frame: str, wrench: Array) -> Array:
        """Return a wrench (6,) about a frame's origin, given in the frame's axes, in world axes."""
        rotation = self._data.oMf[self._wrist_of[frame]].rotation
        return np.r_[rotation @ wrench[:3], rotation @ wrench[3:]]

    def com_for(self, wrenches: Mapping[str, Array]) -> Array:
        """Return the centre of mass x, y in the support frame in [m] that keeps the pressure in the soles' middle.

        Args:
            wrenches: Wrench of the surroundings on the robot by frame, about its origin, in world axes, shape (6,).
        """
        moment = np.zeros(2)
        support = self._support.T_world_support
        for frame, wrench in wrenches.items():
            x, y, z = self._data.oMf[self._wrist_of[frame]].translation - support.translation
            force_x, force_y, force_z = wrench[:3]
            moment += y * force_z - z * force_y + wrench[3], z * force_x - x * force_z + wrench[4]
        moment = support.rotation[:2, :2].T @ moment
        return np.array([-moment[1], moment[0]]) / (self.mass * GRAVITY)

    def solve(self, reference: BalanceReference, wrenches: Mapping[str, Array]) -> Solution | None:
        """Return the best accelerations, torques and foot wrenches in the state of the last update.

        Args:
            reference: What to follow.
            wrenches: Known wrenches of the surroundings on the robot, as in ``com_for``.

        Returns:
            The solution, or nothing when no wrench of the feet within their cones fits the dynamics.
        """
        model, data, nv = self._model, self._data, self._nv
        J_feet = [self._foot_jacobian(i) for i in self._feet]
        M = data.M.copy()
        M[self._below] = M.T[self._below]
        bias = data.nle.copy()
        for name, wrench in wrenches.items():
            bias -= pin.getFrameJacobian(model, data, self._wrist_of[name], pin.LOCAL_WORLD_ALIGNED).T @ wrench
        costs = self._costs(reference, J_feet)
        dynamics = np.hstack([M, -J_feet[0].T, -J_feet[1].T])
        lower, upper = self._acceleration_bounds()
        high = np.concatenate([upper, self._free, self._torque - bias, self._most])
        low = np.concatenate([lower, -self._free, -self._torque - bias, self._least])
        A = np.ascontiguousarray(np.vstack([dynamics, self._cones]))
        x, _, flag, _ = daqp.solve(costs.H, costs.g, A, high, low, self._sense)
        if flag < 1 or not np.all(np.isfinite(x)):
            return None
        torque = dynamics @ x + bias
        return Solution(x[self._iv], torque[self._iv], x[nv:].reshape(2, 6))

    def _acceleration_bounds(self) -> tuple[Array, Array]:
        lower, upper = self._lower.copy(), self._upper
        for pitch, roll in self._ankles:
            lower[pitch] += ANKLE_COUPLING * abs(self._q[roll])
        horizon = _LIMIT_HORIZON
        coasting = self._q + self._v * horizon
        most = np.clip(2.0 * (upper - coasting) / horizon**2, -_ACCELERATION, _ACCELERATION)
        least = np.clip(2.0 * (lower - coasting) / horizon**2, -_ACCELERATION, _ACCELERATION)
        low, high = np.full(self._nv, -_BASE_ACCELERATION), np.full(self._nv, _BASE_ACCELERATION)
        low[self._iv], high[self._iv] = np.minimum(least, most), most
        return low, high

    def _costs(self, reference: BalanceReference, J_feet: list[Array]) -> _Costs:
        model, data, v, nv = self._model, self._data, self._tangent, self._nv
        support = self._support
        R = support.T_world_support.rotation
        costs = _Costs(nv + 12)

        k, d = _COM_GAIN, 2.0 * np.sqrt(_COM_GAIN)
        com, com_rate, com_acceleration = reference.com
        wanted = com_acceleration + k * (com - support.com) + d * (com_rate - support.com_rate)
        costs.add(_COM_WEIGHT, (R.T @ data.Jcom)[:2], wanted - (R.T @ data.acom[0])[:2])

        J = pin.getFrameJacobian(model, data, self._base, pin.LOCAL_WORLD_ALIGNED)
        drift = pin.getFrameClassicalAcceleration(model, data, self._base, pin.LOCAL_WORLD_ALIGNED).vector
        height, rate, acceleration = reference.height
        k, d = _HEIGHT_GAIN, 2.0 * np.sqrt(_HEIGHT_GAIN)
        lift = acceleration + k * (height - support.height) + d * (rate - support.height_rate)
        costs.add(_HEIGHT_WEIGHT, J[2:3], np.array([lift - drift[2]]))

        k, d = _ROTATION_GAIN, 2.0 * np.sqrt(_ROTATION_GAIN)
        error = pin.log3(reference.base_rotation @ support.base_rotation.T)
        turn = k * error - R.T @ (d * (J @ v)[3:] + drift[3:])
        costs.add(np.array([_ROTATION_WEIGHT, _PITCH_WEIGHT, _ROTATION_WEIGHT]), R.T @ J[3:], turn)

        weight = np.where(self.upper, _UPPER_WEIGHT, _LEG_WEIGHT)
        led = _UPPER_GAIN * (reference.posture - self._q) - 2.0 * np.sqrt(_UPPER_GAIN) * self._v
        posture = np.where(self.upper, led, -_LEG_DAMPING * self._v)
        for name, hand in reference.hands.items():
            weight[self.arm_of[name]] = _LED_ARM_WEIGHT
            self._add_hand(costs, self._hands[name], hand.T_world_hand, hand.twist)
        costs.H[self._iv, self._iv] += weight
        costs.g[self._iv] -= weight * posture

        for frame, J_foot in zip(self._feet, J_feet, strict=True):
            drift = pin.getFrameAcceleration(model, data, frame, pin.LOCAL).vector
            costs.add(_CONTACT_WEIGHT, J_foot, -_CONTACT_DAMPING * (J_foot @ v) - drift)
        forces = np.arange(nv, nv + 12)
        costs.H[forces, forces] += self._force_weight
        costs.g[nv:] -= self._force_weight * self._even
        return costs

    def _add_hand(self, costs: _Costs, frame: int, target: pin.SE3, twist: Array) -> None:
        J = pin.getFrameJacobian(self._model, self._data, frame, pin.LOCAL_WORLD_ALIGNED)
        drift = pin.getFrameClassicalAcceleration(self._model, self._data, frame, pin.LOCAL_WORLD_ALIGNED).vector
        pose = self._data.oMf[frame]
        error = np.r_[target.translation - pose.translation, pin.log3(target.rotation @ pose.rotation.T)]
        k, d = _HAND_GAIN, 2.0 * np.sqrt(_HAND_GAIN)
        weight = np.repeat([_HAND_WEIGHT, _HAND_TURN_WEIGHT], 3)
        costs.add(weight, J, k * error + d * (twist - J @ self._tangent) - drift)


_SIDES = ("left", "right")
