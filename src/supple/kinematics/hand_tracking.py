# SPDX-License-Identifier: Apache-2.0
"""Waist and arms that follow moving hand targets: one step of differential inverse kinematics per control tick."""

from __future__ import annotations

from collections.abc import Mapping

import daqp
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import StateError
from supple.robots import Robot
from supple.robots.g1 import STANDING_WAIST_RANGE

__all__ = ["HandTracking"]

Array = NDArray[np.float64]

_COST = np.array([10.0, 10.0, 10.0, 4.0, 4.0, 4.0])
_POSTURE_COST = 3e-2
# The waist carries half the robot's mass: moved at every whim of the hands, it would rock the balance. While tracking
# it stays near the posture it began in and gives way only where the arms do not reach.
_WAIST_COST = 1.0
_DAMPING, _ERROR_DAMPING = 1e-6, 1e-4
# Largest change of a joint that the problem allows in [rad], and the share of the way to its limit.
_LARGEST, _SHARE = 0.25, 0.5
# Most that a joint moves in one step in [rad]: 4 rad/s at 50 Hz, what the real arms are trusted with.
_MOST = 0.08


class HandTracking:
    """Follow hand targets that move a little each tick; the base is where it is and the legs are someone else's.

    Each step solves the quadratic program of differential inverse kinematics, as pink poses it, with position limits
    as bounds.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        joints = robot.joints
        self._table = joints.group("waist", *(effector.arm for effector in robot.effectors.values()))
        moving = {joints.names[i] for i in self._table}
        full = pin.buildModelFromUrdf(str(robot.urdf))
        # Legs and fingers carry neither hand frame nor waist: their positions do not matter here.
        locked = [full.getJointId(name) for name in joints.names if name not in moving]
        self._model = model = pin.buildReducedModel(full, locked, pin.neutral(full))
        self._iq = np.array([model.joints[model.getJointId(joints.names[i])].idx_q for i in self._table])
        for name, (lower, upper) in STANDING_WAIST_RANGE.items():
            index = model.joints[model.getJointId(name)].idx_q
            model.lowerPositionLimit[index], model.upperPositionLimit[index] = lower, upper
        self._lower, self._upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
        self._frames = {}
        for effector in robot.effectors.values():
            frame = robot.frame(effector.frame)
            link = model.frames[model.getFrameId(frame.link)]
            placement = link.placement * frame.T_link_frame
            self._frames[effector.name] = model.addFrame(
                pin.Frame(frame.name, link.parentJoint, 0, placement, pin.FrameType.OP_FRAME)
            )
        self._data = model.createData()
        cost = np.full(model.nv, _POSTURE_COST)
        cost[self._iq[[joints.joints[i].group == "waist" for i in self._table]]] = _WAIST_COST
        self._posture_weight = cost**2
        self._diagonal = np.arange(model.nv)
        self._no_rows, self._sense = np.zeros((0, model.nv)), np.zeros(model.nv, dtype=np.int32)

    def step(self, T_world_base: pin.SE3, q: Array, targets: Mapping[str, pin.SE3], posture: Array) -> Array:
        """Return joint positions (n,) in [rad], table order, one step nearer to the targets.

        No joint moves by more than 0.08 rad (4 rad/s at 50 Hz); a target that jumps is followed as fast as that allows.
        Joints other than waist and arms stay as they are.

        Args:
            T_world_base: Where the base is.
            q: What the last tick returned, shape (n,).
            targets: World pose wanted of each effector's frame, by effector name; others are left alone.
            posture: Joint positions to stay near where the hands leave a choice, shape (n,).

        Raises:
            UnknownNameError: An effector does not exist.
            StateError: A target, the base pose or a joint position is not finite.
        """
        if not np.isfinite(q).all():
            bad = [self._robot.joints.names[i] for i in np.flatnonzero(~np.isfinite(q))]
            raise StateError(f"joint positions are not finite for {', '.join(bad)}")
        model, data = self._model, self._data
        # Measured joints can lie a little beyond their limits, where the program would have no solution.
        start = np.clip(self._chain(q), self._lower, self._upper)
        pin.computeJointJacobians(model, data, start)
        weight = self._posture_weight
        diagonal = weight + _DAMPING
        gradient = weight * (start - np.clip(self._chain(posture), self._lower, self._upper))
        hessian = np.zeros((model.nv, model.nv))
        for name, target in targets.items():
            frame = self._frames[self._robot.effector(name).name]
            T_frame_target = pin.updateFramePlacement(model, data, frame).actInv(T_world_base.actInv(target))
            error = _COST * pin.log6(T_frame_target).vector
            # Comparisons with NaN are false: such a target would count as reached.
            if not np.isfinite(error).all():
                raise StateError(f"target of {name!r} (or the base pose) is not finite")
            jacobian = pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL)
            weighed = _COST[:, None] * (pin.Jlog6(T_frame_target.inverse()) @ jacobian)
            hessian += weighed.T @ weighed
            gradient -= error @ weighed
            diagonal = diagonal + _ERROR_DAMPING * (error @ error)
        hessian[self._diagonal, self._diagonal] += diagonal
        upper = np.minimum(_SHARE * (self._upper - start), _LARGEST)
        lower = np.maximum(_SHARE * (self._lower - start), -_LARGEST)
        move, _, flag, _ = daqp.solve(hessian, gradient, self._no_rows, upper, lower, self._sense)
        result = q.copy()
        # No solution cannot be for a start inside the limits, short of numerical trouble: then stay.
        if flag > 0:
            move = move * min(1.0, _MOST / max(float(np.abs(move).max()), 1e-12))
            start += move
        result[self._table] = start[self._iq]
        return result

    def _chain(self, q: Array) -> Array:
        """Return the positions of waist and arms in the order of the reduced model."""
        result = np.empty(self._model.nq)
        result[self._iq] = q[self._table]
        return result
