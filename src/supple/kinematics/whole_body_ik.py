# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of base, waist and arms with pink: hands to poses, feet and balance kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pink
import pinocchio as pin
from numpy.typing import NDArray
from pink.exceptions import NoSolutionFound
from pink.limits import ConfigurationLimit, Limit, VelocityLimit
from pink.tasks import FrameTask, PostureTask, Task

from supple.errors import StateError, UnknownNameError
from supple.geometry import pose_error, pose_from_xyyaw, xyyaw_of
from supple.kinematics.balance import support_margin
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.model import KinematicModel
from supple.robots import Robot
from supple.robots.g1 import STANDING_WAIST_RANGE

__all__ = ["IkSolution", "WholeBodyIK"]

Array = NDArray[np.float64]

_POSITION_COST = 10.0
_ORIENTATION_COST = 4.0
_POSTURE_COST = 3e-2
_BASE = "base"
# Largest change of a joint per iteration in [rad] (or [m]); pink leaves joints without limit that have none at all.
_FREE = 0.25
_LOCKED = 1e-9
_UNBOUND = 1e3


@dataclass(frozen=True)
class IkSolution:
    """A configuration and how well it does what was asked.

    Attributes:
        T_world_base: Base pose.
        q: Joint positions in [rad], table order, shape (n,).
        position_error: Largest distance of a hand to its target in [m].
        orientation_error: Largest angle of a hand to its target in [rad].
        iterations: Steps taken.
        converged: Whether both errors are within tolerance.
        support_margin: Distance of the centre of mass to the edge of the feet's support in [m]; negative outside.
        freed: Joint groups that were free to move (``"base"`` among them if the base was).
    """

    T_world_base: pin.SE3
    q: Array
    position_error: float
    orientation_error: float
    iterations: int
    converged: bool
    support_margin: float
    freed: tuple[str, ...]


class _Chain:
    """A model of waist and arms on a fixed or sliding base, in which groups can be locked."""

    def __init__(self, robot: Robot, planar: bool) -> None:
        joints = robot.joints
        urdf = str(robot.urdf)
        full = pin.buildModelFromUrdf(urdf, pin.JointModelPlanar()) if planar else pin.buildModelFromUrdf(urdf)
        self.table = joints.group("waist", *(effector.arm for effector in robot.effectors.values()))
        moving = {joints.names[i] for i in self.table}
        # Legs and fingers carry neither hand frame nor waist: their positions do not matter here.
        locked = [full.getJointId(name) for name in joints.names if name not in moving]
        self.model = pin.buildReducedModel(full, locked, pin.neutral(full))
        ids = [self.model.getJointId(joints.names[i]) for i in self.table]
        self.iq = np.array([self.model.joints[i].idx_q for i in ids])
        self.iv = np.array([self.model.joints[i].idx_v for i in ids])
        for name, (lower, upper) in STANDING_WAIST_RANGE.items():
            index = self.model.joints[self.model.getJointId(name)].idx_q
            self.model.lowerPositionLimit[index], self.model.upperPositionLimit[index] = lower, upper
        self.lower, self.upper = self.model.lowerPositionLimit[self.iq], self.model.upperPositionLimit[self.iq]
        for effector in robot.effectors.values():
            frame = robot.frame(effector.frame)
            link = self.model.frames[self.model.getFrameId(frame.link)]
            placement = link.placement * frame.T_link_frame
            self.model.addFrame(pin.Frame(frame.name, link.parentJoint, 0, placement, pin.FrameType.OP_FRAME))
        self.data = self.model.createData()
        self.frames = {e.name: self.model.getFrameId(e.frame) for e in robot.effectors.values()}
        self.tasks = {
            e.name: FrameTask(e.frame, _POSITION_COST, _ORIENTATION_COST, lm_damping=1e-4)
            for e in robot.effectors.values()
        }
        cost = np.full(self.model.nv, _POSTURE_COST)
        self.posture = PostureTask(cost[3:] if planar else cost)
        self._groups = [joints.joints[i].group for i in self.table]
        self._bounded: dict[tuple[str, ...], tuple[pin.Model, tuple[Limit, ...]]] = {}

    def moving(self, free: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return which of the chain's joints belong to the freed groups."""
        return np.array([group in free for group in self._groups])

    def bounded(self, free: tuple[str, ...]) -> tuple[pin.Model, tuple[Limit, ...]]:
        """Return the model with limits that keep positions in range and everything still that is not freed."""
        if free not in self._bounded:
            speed = np.full(self.model.nv, _LOCKED if _BASE not in free else _FREE)
            moving = self.moving(free)
            speed[self.iv] = np.where(moving, _FREE, _LOCKED)
            model = self.model.copy()
            model.velocityLimit[:] = speed
            # What is locked stays where it was measured, also beyond its limits; bounds would ask it to come back.
            model.lowerPositionLimit[self.iq[~moving]], model.upperPositionLimit[self.iq[~moving]] = -_UNBOUND, _UNBOUND
            self._bounded[free] = model, (ConfigurationLimit(model), VelocityLimit(model))
        return self._bounded[free]


class WholeBodyIK:
    """Find joint positions (and a place to stand) that bring the hands to their targets.

    The legs stay as they are: the walking policy owns them, and no command of ours would bend them. A freed base
    therefore slides over the floor with both feet under it, to be walked to afterwards.

    Args:
        robot: The robot.
        solver: QP solver known to qpsolvers; daqp is the fastest that did not fail.
    """

    def __init__(self, robot: Robot, solver: str = "daqp") -> None:
        self.robot = robot
        self.kinematics = KinematicModel(robot)
        self._solver = solver
        self._tracking = HandTracking(robot)
        self._fixed = _Chain(robot, planar=False)
        self._planar = _Chain(robot, planar=True)

    def _check_free(self, free: Sequence[str]) -> tuple[str, ...]:
        known = {*self.robot.joints.groups, _BASE}
        for name in free:
            if name not in known:
                raise UnknownNameError("joint group", name, known)
        return tuple(sorted(free))

    def solve(
        self,
        T_world_base: pin.SE3,
        q: Array,
        targets: Mapping[str, pin.SE3],
        free: Sequence[str] = ("waist", "left_arm", "right_arm"),
        posture: Array | None = None,
        iterations: int = 60,
        position_tolerance: float = 2e-3,
        orientation_tolerance: float = 0.02,
    ) -> IkSolution:
        """Iterate until the hands are at their targets or no progress is left.

        Args:
            T_world_base: Base pose to start from; kept unless ``"base"`` is freed.
            q: Joint positions to start from in [rad], shape (n,).
            targets: World pose wanted of each effector's frame, by effector name; others are left alone.
            free: Joint groups that may move; ``"base"`` lets the robot stand elsewhere.
            posture: Joint positions to stay near where the hands leave a choice; ``q`` if absent.
            iterations: Most steps to take.
            position_tolerance: Accepted distance in [m].
            orientation_tolerance: Accepted angle in [rad].

        Raises:
            UnknownNameError: An effector or joint group does not exist.
            StateError: A target or joint position is not finite.
        """
        free = self._check_free(free)
        planar = _BASE in free
        chain = self._planar if planar else self._fixed
        # The planar chain lives in a frame at the base's height, upright; the fixed one in the base frame itself.
        anchor = pin.SE3(np.eye(3), np.array([0.0, 0.0, T_world_base.translation[2]])) if planar else T_world_base
        start = self._start(chain, T_world_base, q, free)
        goals = self._goals(anchor, targets)
        configuration = pink.Configuration(chain.bounded(free)[0], chain.data, start, copy_data=False)
        near = start if posture is None else self._start(chain, T_world_base, posture, free)
        tasks = self._tasks(chain, goals, near)
        errors, count = self._errors(chain, configuration, goals), 0
        while count < iterations and (errors[0] > position_tolerance or errors[1] > orientation_tolerance):
            velocity = self._step(chain, configuration, tasks, free)
            configuration.integrate_inplace(velocity, 1.0)
            errors, count = self._errors(chain, configuration, goals), count + 1
            if np.abs(velocity).max() < 1e-5:
                break
        base, joints = self._finish(chain, configuration.q, T_world_base, q, free)
        margin = support_margin(self.kinematics, self.kinematics.configuration(base, joints))
        converged = errors[0] <= position_tolerance and errors[1] <= orientation_tolerance
        return IkSolution(base, joints, errors[0], errors[1], count, converged, margin, free)

    def track(
        self, T_world_base: pin.SE3, q: Array, targets: Mapping[str, pin.SE3], posture: Array | None = None
    ) -> Array:
        """Take one step of :meth:`HandTracking.step`, near ``q`` where no posture is given."""
        return self._tracking.step(T_world_base, q, targets, q if posture is None else posture)

    def _goals(self, anchor: pin.SE3, targets: Mapping[str, pin.SE3]) -> dict[str, pin.SE3]:
        goals = {}
        for name, target in targets.items():
            goals[self.robot.effector(name).name] = goal = anchor.actInv(target)
            # Comparisons with NaN are false: such a target would count as reached.
            if not np.isfinite(goal.homogeneous).all():
                raise StateError(f"target of {name!r} (or the base pose) is not finite")
        return goals

    def _start(self, chain: _Chain, base: pin.SE3, q: Array, free: tuple[str, ...]) -> Array:
        if not np.isfinite(q).all():
            bad = [self.robot.joints.names[i] for i in np.flatnonzero(~np.isfinite(q))]
            raise StateError(f"joint positions are not finite for {', '.join(bad)}")
        configuration = np.zeros(chain.model.nq)
        if _BASE in free:
            x, y, yaw = xyyaw_of(base)
            configuration[:4] = x, y, np.cos(yaw), np.sin(yaw)
        # The solver refuses a start outside the limits; measured joints can lie a little beyond.
        within = np.clip(q[chain.table], chain.lower, chain.upper)
        configuration[chain.iq] = np.where(chain.moving(free), within, q[chain.table])
        return configuration

    def _finish(
        self, chain: _Chain, configuration: Array, base: pin.SE3, q: Array, free: tuple[str, ...]
    ) -> tuple[pin.SE3, Array]:
        joints, moving = q.copy(), chain.moving(free)
        joints[chain.table[moving]] = configuration[chain.iq[moving]]
        if _BASE in free:
            x, y, cosine, sine = configuration[:4]
            base = pose_from_xyyaw(x, y, float(np.arctan2(sine, cosine)), float(base.translation[2]))
        return base, joints

    @staticmethod
    def _tasks(chain: _Chain, goals: Mapping[str, pin.SE3], near: Array) -> list[Task]:
        for name, goal in goals.items():
            chain.tasks[name].set_target(goal)
        chain.posture.set_target(near)
        return [*(chain.tasks[name] for name in goals), chain.posture]

    def _step(
        self, chain: _Chain, configuration: pink.Configuration, tasks: list[Task], free: tuple[str, ...]
    ) -> Array:
        try:
            return pink.solve_ik(
                configuration,
                tasks,
                1.0,
                solver=self._solver,
                damping=1e-6,
                limits=chain.bounded(free)[1],
                safety_break=False,
            )
        except NoSolutionFound:
            # Cannot happen for a start inside the limits, short of a solver's numerical trouble: stay where we are.
            return np.zeros(chain.model.nv)

    @staticmethod
    def _errors(chain: _Chain, configuration: pink.Configuration, goals: Mapping[str, pin.SE3]) -> tuple[float, float]:
        worst = (0.0, 0.0)
        for name, goal in goals.items():
            error = pose_error(configuration.data.oMf[chain.frames[name]], goal)
            worst = max(worst[0], error[0]), max(worst[1], error[1])
        return worst
