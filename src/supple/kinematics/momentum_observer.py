# SPDX-License-Identifier: Apache-2.0
"""Forces from outside, told from joint torques alone by the robot's generalised momentum (De Luca et al. 2006)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import scipy.linalg.lapack
from numpy.typing import NDArray

from supple.errors import StateError
from supple.kinematics.model import KinematicModel
from supple.robots import Robot, RobotState

__all__ = ["ExternalWrenches", "MomentumObserver"]

Array = NDArray[np.float64]

# Expected errors by which the equations are weighed. A motor's torque is known to a share of what it can give; the six
# equations of the base, which no motor drives, hold the errors of all limbs' inertia in [N] and [Nm].
_TORQUE_ERROR = 0.02
_BASE_FORCE_ERROR, _BASE_TORQUE_ERROR = 5.0, 2.5
# What is expected of a wrench before anything is measured: it decides only where a stretched limb tells nothing.
_FORCE_EXPECTED, _TORQUE_EXPECTED = 300.0, 30.0
# States further apart than this say nothing about what happened in between, in [s].
_LONGEST_INTERVAL = 0.1
_SETTLED_AFTER = 3.0  # time constants


@dataclass(frozen=True, eq=False)
class ExternalWrenches:
    """What the surroundings do to a robot at one instant.

    Attributes:
        stamp_ns: Stamp of the state that it follows from, in [ns].
        wrench: Force in [N] and torque in [Nm] that act on the robot's link, about the origin of the frame and in its
            axes, by frame; shape (6,).
        unexplained: Root mean square of what these wrenches leave unexplained, in units of the expected error. It rises
            when the robot is touched elsewhere or its model is wrong: 0.01 in simulation while standing, 0.1 while
            walking, 0.12 while standing with 15 N at the torso (measured).
    """

    stamp_ns: int
    wrench: Mapping[str, Array]
    unexplained: float


class MomentumObserver:
    """Estimate the wrenches at a robot's limbs from positions, velocities and torques of its joints and its base.

    The generalised momentum p = M(q) v changes by dp/dt = C(q, v)' v - g(q) + S' tau + J' w, all of it known but the
    wrenches w. The momentum gained in an interval less the known part is a measurement of J' w, which a first-order
    low-pass filters: the observer of De Luca et al. in discrete time, free of drift and stable at any rate. The
    generalised forces of all joints and of the floating base are then told apart into one wrench for each limb by least
    squares, weighed by how well each joint's torque is known.

    Whatever touches the robot elsewhere is put down to its limbs; ``ExternalWrenches.unexplained`` tells. An object in
    the hands is outside: its weight and inertia are part of the wrench. Friction in the joints is not modelled.

    Args:
        robot: The robot.
        frames: Frames at which it may be touched; by default those that the robot names for it.
        cutoff: Bandwidth of the low-pass in [Hz].

    Raises:
        UnknownNameError: The robot has no such frame.
        StateError: The bandwidth is not positive.
    """

    def __init__(self, robot: Robot, frames: Sequence[str] | None = None, cutoff: float = 10.0) -> None:
        if not 0.0 < cutoff < math.inf:
            raise StateError(f"momentum observer: bandwidth must be positive, got {cutoff} Hz")
        self.frames = tuple(robot.wrench_frames if frames is None else frames)
        self._rate = 2.0 * math.pi * cutoff
        self._kinematics = KinematicModel(robot)
        model = self._kinematics.model
        model.armature[self._kinematics.iv] = robot.joints.armature
        self._model, self._data = model, model.createData()
        self._rest = np.zeros(model.nv)
        self._frame_ids = [self._kinematics.frame_id(name) for name in self.frames]
        error = np.empty(model.nv)
        error[:3], error[3:6] = _BASE_FORCE_ERROR, _BASE_TORQUE_ERROR
        error[self._kinematics.iv] = _TORQUE_ERROR * robot.joints.effort
        self._weight = 1.0 / error
        if robot.fixed_base:
            # What the base is bolted to holds it with forces that nobody measures: its equations tell nothing.
            self._weight[:6] = 0.0
        expected = np.tile(np.r_[np.full(3, _FORCE_EXPECTED), np.full(3, _TORQUE_EXPECTED)], len(self.frames))
        self._prior = np.diag(expected**-2.0)
        self.reset()

    def reset(self) -> None:
        """Forget what was measured, e.g. after the clock jumped or the robot was put elsewhere."""
        self._last: tuple[int, Array, Array] | None = None
        self._outside: Array | None = None
        self._settling = _SETTLED_AFTER / self._rate

    def step(self, state: RobotState) -> ExternalWrenches | None:
        """Take in one more state and return the wrenches, or nothing while the observer settles.

        Torques are those that acted in the interval which ends with the state. After an interval of more than 0.1 s, or
        a step back in time, the observer begins anew.

        Raises:
            StateError: The state is not finite; the observer stays as it was.
        """
        if not state.finite:
            raise StateError(f"state at {state.stamp_ns} ns is not finite; the momentum observer refuses it")
        q, v = self._tangent(state)
        momentum, drift = self._momentum(q, v)
        last, self._last = self._last, (state.stamp_ns, momentum, drift)
        if last is None:
            return None
        dt = (state.stamp_ns - last[0]) * 1e-9
        if not 0.0 < dt <= _LONGEST_INTERVAL:
            self.reset()
            self._last = (state.stamp_ns, momentum, drift)
            return None
        known = 0.5 * (drift + last[2])
        known[self._kinematics.iv] += state.effort
        measured = (momentum - last[1]) / dt - known
        if self._outside is None:
            self._outside = measured
        else:
            self._outside = self._outside - math.expm1(-self._rate * dt) * (measured - self._outside)
        self._settling -= dt
        return None if self._settling > 0.0 else self._told_apart(state.stamp_ns, q, self._outside)

    def _tangent(self, state: RobotState) -> tuple[Array, Array]:
        q = self._kinematics.configuration(state.T_world_base, state.q)
        v = np.empty(self._model.nv)
        v[:3] = state.T_world_base.rotation.T @ state.base_linear_velocity
        v[3:6] = state.base_angular_velocity
        v[self._kinematics.iv] = state.v
        return q, v

    def _momentum(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the generalised momentum and by what it would change without torques and touch, shape (nv,) each."""
        gravity = pin.computeGeneralizedGravity(self._model, self._data, q).copy()
        # Torques for accelerations equal to the velocities, at rest: M v + g.
        momentum = pin.rnea(self._model, self._data, q, self._rest, v) - gravity
        coriolis = pin.computeCoriolisMatrix(self._model, self._data, q, v)
        return momentum, v @ coriolis - gravity

    def _told_apart(self, stamp_ns: int, q: Array, outside: Array) -> ExternalWrenches:
        pin.computeJointJacobians(self._model, self._data, q)
        rows = np.vstack([pin.getFrameJacobian(self._model, self._data, i, pin.LOCAL) for i in self._frame_ids])
        rows *= self._weight
        wanted = outside * self._weight
        # Positive definite by the prior; NumPy's general solver takes four times as long.
        _, solution, _ = scipy.linalg.lapack.dposv(rows @ rows.T + self._prior, rows @ wanted)
        left = solution @ rows - wanted
        wrenches = dict(zip(self.frames, solution.reshape(-1, 6), strict=True))
        return ExternalWrenches(stamp_ns, wrenches, math.sqrt(left.dot(left) / left.size))
