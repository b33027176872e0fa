# SPDX-License-Identifier: Apache-2.0
"""The standing controller: both feet on the floor, the base at a height, hands where they are wanted."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from supple.control.standing.balance_qp import BalanceQP, Solution
from supple.control.standing.references import BalanceReference, HandReference, SmoothReference, SmoothRotation
from supple.control.standing.support import Support
from supple.control.standing.thigh_guard import thigh_clearance
from supple.errors import JointError, SettingError, StateError
from supple.geometry import minimum_jerk
from supple.kinematics.momentum_observer import MomentumObserver
from supple.robots import Robot, RobotCommand, RobotState

__all__ = ["HEIGHT_RANGE", "StandingController"]

Array = NDArray[np.float64]

HEIGHT_RANGE = (0.35, 0.78)
"""Heights of the base above the soles in [m] that the standing controller serves."""

# How fast references may move: height [m/s, m/s^2], centre of mass, orientation [rad/s, rad/s^2], joints, hands.
_HEIGHT_SPEED, _HEIGHT_ACCELERATION = 0.25, 0.8
_COM_SPEED, _COM_ACCELERATION = 0.1, 0.2
_TURN_SPEED, _TURN_ACCELERATION = 0.6, 2.0
_JOINT_SPEED, _JOINT_ACCELERATION = 4.0, 20.0
_HAND_SPEED, _HAND_ACCELERATION = 0.5, 2.0
_HAND_TURN_SPEED, _HAND_TURN_ACCELERATION = 2.0, 8.0
# Whoever had the legs before may have braced them against each other; that torque is let go over this time, in [s].
_TAKE_OVER_TIME = 0.4
# Pitch of the base in [rad] per height below the one from which it leans. The ankles' range forces about as much with
# hanging arms and a straight waist; spread over the whole way it changes slowly.
_LEAN_BELOW, _LEAN_SLOPE, _MOST_LEAN = 0.70, 1.875, 0.6
# What the hands are believed to carry follows the momentum observer with this time constant in [s]: a push passes, a
# load stays. It is smoothed as forces in the world: the observer's own filter works on joint torques, which change with
# the posture.
_LOAD_TIME = 1.0
_LOAD_CUTOFF = 10.0
_MOST_LOAD = 60.0
_NO_WRENCH = np.zeros(6)
# A squat stops this far before a thigh meets a hand, in [m], and so much earlier for its speed, in [s].
_THIGH_CLEARANCE, _THIGH_BRAKING = 0.015, 0.12


class StandingController:
    """Balance on both feet by inverse dynamics, with the base at a commanded height and orientation.

    It begins where the robot stands: the first step after a reset takes the measured stance as its reference, and every
    target is then approached smoothly. Everything but hand targets is relative to the soles, so that drift of the
    odometry does not matter. What the hands carry is estimated from joint torques and taken into account.

    Args:
        robot: The robot.

    Attributes:
        support: How the robot stood at the last step.
        unsolved: Ticks in a row for which no solution was found and the last one was held.
        loads: What the hands are believed to carry: wrench of the surroundings on each wrist, about its frame's origin,
            in world axes in [N] and [Nm], shape (6,).
        obstruction: What keeps the base from going lower, in words; none when nothing does.
    """

    source = "standing"

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._joints = robot.joints
        self._qp = BalanceQP(robot)
        self._observer = MomentumObserver(robot, cutoff=_LOAD_CUTOFF)
        self._wrists = tuple(name for name in robot.wrench_frames if name.endswith("_wrist"))
        self.table = self._qp.table
        self.reset()

    def reset(self) -> None:
        """Forget stance and targets; the next step holds what is measured."""
        self._observer.reset()
        self.support: Support | None = None
        self.unsolved = 0
        self.obstruction: str | None = None
        self._solution: Solution | None = None
        self._wanted_height: float | None = None
        self._wanted_com: Array | None = None
        self._wanted_rotation: Array | None = None
        self._wanted_posture: Array | None = None
        self._hands: dict[str, tuple[SmoothReference, SmoothRotation]] = {}
        self._hand_targets: dict[str, pin.SE3] = {}
        self._released: list[str] = []
        self._carried = np.zeros(self.table.size)
        self._carried_for = 0.0
        self.loads: dict[str, Array] = {}

    # -- targets -----------------------------------------------------------------------------------------------------

    def set_height(self, height: float) -> None:
        """Set the height of the base above the soles in [m].

        Raises:
            SettingError: Outside HEIGHT_RANGE, or not finite.
        """
        low, high = HEIGHT_RANGE
        if not low <= height <= high:
            raise SettingError(f"height of the base: expected {low} to {high} m, got {height}")
        self._wanted_height = float(height)

    def set_com(self, offset: ArrayLike) -> None:
        """Set where the centre of mass is to be, x and y in the support frame in [m], shape (2,).

        Raises:
            StateError: Not two finite numbers.
        """
        self._wanted_com = _finite("centre of mass", offset, (2,))

    def set_base_rotation(self, rotation: ArrayLike | None) -> None:
        """Set the orientation of the base in the support frame; without one it leans forward as the ankles need.

        Args:
            rotation: Rotation matrix, shape (3, 3), or nothing.

        Raises:
            StateError: Not a rotation matrix.
        """
        value = None if rotation is None else _finite("rotation of the base", rotation, (3, 3))
        if value is not None and (np.abs(value @ value.T - np.eye(3)).max() > 1e-4 or np.linalg.det(value) < 0.0):
            raise StateError(f"rotation of the base: expected a rotation matrix, got {value.tolist()}")
        self._wanted_rotation = value

    def set_posture(self, q: ArrayLike) -> None:
        """Set the positions of waist and arms in [rad], as an array of all joints in table order, shape (n,).

        Legs and fingers in it carry no meaning.

        Raises:
            JointError: Wrong shape or not finite.
        """
        value = np.asarray(q, dtype=np.float64)
        if value.shape != (len(self._joints),) or not np.all(np.isfinite(value)):
            raise JointError(f"posture: expected {len(self._joints)} finite joint positions, got shape {value.shape}")
        self._wanted_posture = value[self.table]

    def set_hand(self, effector: str, T_world_hand: pin.SE3 | None) -> None:
        """Set where a hand's tool frame is to be in the world; none lets its arm follow the posture again.

        Raises:
            UnknownNameError: The robot has no such hand.
        """
        self._robot.effector(effector)
        if T_world_hand is None:
            self._hand_targets.pop(effector, None)
            if self._hands.pop(effector, None) is not None:
                self._released.append(effector)
        else:
            self._hand_targets[effector] = T_world_hand.copy()

    # -- the loop ----------------------------------------------------------------------------------------------------

    @property
    def com_reference(self) -> Array:
        """Where the centre of mass was to be at the last step, x and y in the support frame in [m], shape (2,)."""
        return self._com.value.copy()

    @property
    def base_reference(self) -> pin.SE3 | None:
        """Height and orientation in which the base was to be at the last step, in the support frame; none before one.

        Where it is to be ahead and aside follows from the balance and is not part of it.
        """
        if self.support is None:
            return None
        return pin.SE3(self._rotation.value.copy(), np.array([0.0, 0.0, float(self._height.value[0])]))

    @property
    def settled(self) -> bool:
        """Whether the base has come to rest where the targets want it."""
        support = self.support
        if support is None or self._wanted_height is None:
            return False
        still = abs(support.height_rate) < 0.02 and float(np.abs(support.com_rate).max()) < 0.02
        arrived = abs(support.height - self._wanted_height) < 0.01
        return still and arrived and float(np.abs(support.com - self._com_target()).max()) < 0.015

    def look(self, state: RobotState) -> Support:
        """Return how the robot stands; targets and references stay as they are."""
        return self._qp.update(state)

    def _begin(self, state: RobotState, support: Support) -> None:
        self._height = SmoothReference([support.height], _HEIGHT_SPEED, _HEIGHT_ACCELERATION)
        # The centre of mass is slowed down gently: to stop it at once would take all of the toes.
        self._com = SmoothReference(support.com, _COM_SPEED, _COM_ACCELERATION, velocity=support.com_rate)
        self._rotation = SmoothRotation(support.base_rotation, _TURN_SPEED, _TURN_ACCELERATION)
        posture = state.q[self.table]
        if self._wanted_posture is not None:
            # Arms go on as they are told, not from where they are: what they press must not slip from the hands.
            posture = np.where(self._qp.upper, self._wanted_posture, posture)
        self._posture = SmoothReference(posture, _JOINT_SPEED, _JOINT_ACCELERATION, bandwidth=10.0)

    def _free_height(self) -> float:
        """Return the height to go to: the wanted one, unless a thigh would meet a hand on the way down."""
        now = float(self._height.value[0])
        wanted = now if self._wanted_height is None else self._wanted_height
        self.obstruction = None
        if wanted > now - 0.002:
            return wanted
        clearance, what = thigh_clearance(self._qp.pose_of)
        if clearance > _THIGH_CLEARANCE + _THIGH_BRAKING * abs(float(self._height.velocity[0])):
            return wanted
        self.obstruction = what
        return now

    def _com_target(self) -> Array:
        wanted = np.zeros(2) if self._wanted_com is None else self._wanted_com
        return wanted + self._qp.com_for(self.loads)

    def _follow(self, state: RobotState, dt: float) -> None:
        self._height.target = np.array([self._free_height()])
        self._com.target = self._com_target()
        lean = min(max(_LEAN_SLOPE * (_LEAN_BELOW - float(self._height.value[0])), 0.0), _MOST_LEAN)
        upright = pin.rpy.rpyToMatrix(0.0, lean, 0.0)
        self._rotation.target = upright if self._wanted_rotation is None else self._wanted_rotation
        if self._wanted_posture is not None:
            self._posture.target = self._wanted_posture
        for name in self._released:
            arm = self._qp.arm_of[name]
            self._posture.value[arm], self._posture.velocity[arm] = state.q[self.table][arm], 0.0
        self._released.clear()
        for follower in (self._height, self._com, self._rotation, self._posture):
            follower.step(dt)
        for name, pose in self._hand_targets.items():
            if name not in self._hands:
                now = self._qp.pose_of(self._robot.effector(name).frame)
                self._hands[name] = (
                    SmoothReference(now.translation, _HAND_SPEED, _HAND_ACCELERATION),
                    SmoothRotation(now.rotation, _HAND_TURN_SPEED, _HAND_TURN_ACCELERATION),
                )
            position, rotation = self._hands[name]
            position.target, rotation.target = pose.translation, pose.rotation
            position.step(dt)
            rotation.step(dt)

    def _reference(self) -> BalanceReference:
        height = np.concatenate([self._height.value, self._height.velocity, self._height.acceleration])
        com = np.stack([self._com.value, self._com.velocity, self._com.acceleration])
        hands = {
            name: HandReference(pin.SE3(turn.value, place.value), np.r_[place.velocity, turn.velocity])
            for name, (place, turn) in self._hands.items()
        }
        return BalanceReference(height, com, self._rotation.value, self._posture.value, hands)

    def _observe_loads(self, state: RobotState, dt: float) -> None:
        measured = self._observer.step(state)
        if measured is None:
            return
        share = min(1.0, dt / _LOAD_TIME)
        for frame in self._wrists:
            force = self._qp.to_world(frame, measured.wrench[frame])
            push = force[:3]
            push *= min(1.0, _MOST_LOAD / max(math.sqrt(push.dot(push)), 1e-9))
            before = self.loads.get(frame, _NO_WRENCH)
            self.loads[frame] = before + share * (force - before)

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the command for legs, waist and arms for one tick.

        Args:
            state: Measured state.
            dt: Time since the last tick in [s].

        Raises:
            StateError: The state is not finite.
        """
        support = self._qp.update(state)
        if self.support is None:
            self._begin(state, support)
        self.support = support
        self._observe_loads(state, dt)
        self._follow(state, dt)
        solution = self._qp.solve(self._reference(), self.loads)
        self.unsolved = 0 if solution is not None else self.unsolved + 1
        if self._solution is None and solution is not None:
            self._carried = np.where(self._qp.upper, 0.0, state.effort[self.table] - solution.torque)
        self._solution = solution or self._solution
        if self._solution is None:
            raise StateError(f"no balance exists at {state.stamp_ns} ns: is the robot standing on both feet?")
        self._carried_for += dt
        return self._command(state, self._solution, dt)

    def _command(self, state: RobotState, solution: Solution, dt: float) -> RobotCommand:
        """Return targets in the middle of the coming motion: servos then add, on average, what the plan misses.

        Joints that follow the posture are sent its positions: their servos are stiffer than the plan and bring them
        there against friction.
        """
        q, v = state.q[self.table], state.v[self.table]
        target = q + 0.5 * dt * v + dt * dt * solution.acceleration / 6.0
        rate = v + 0.5 * dt * solution.acceleration
        follows = self._qp.upper.copy()
        for name in self._hands:
            follows[self._qp.arm_of[name]] = False
        command = RobotCommand.blank(self._joints, self.source, state.stamp_ns)
        command.q[self.table] = np.where(follows, self._posture.value, target)
        command.v[self.table] = np.where(follows, self._posture.velocity, rate)
        fading = 1.0 - minimum_jerk(self._carried_for / _TAKE_OVER_TIME)
        command.tau[self.table] = solution.torque + fading * self._carried
        command.active[self.table] = True
        return command


def _finite(what: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise StateError(f"{what}: expected finite numbers of shape {shape}, got {array.tolist()}")
    return array
