# SPDX-License-Identifier: Apache-2.0
"""The learned walking policy of the G1 as a leg controller: velocity in, leg targets out, 50 Hz."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime as ort
from numpy.typing import ArrayLike, NDArray

from supple.errors import AssetError, StateError
from supple.robots import Robot, RobotCommand, RobotState
from supple.robots.assets import g1_policy
from supple.robots.g1 import LEG_GROUPS

__all__ = ["WalkingPolicy"]

Array = NDArray[np.float64]

_GAIT_PERIOD = 1.0
_ACTION_SCALE = 0.25
_ACTION_LIMIT = 100.0
# Below this the policy was only trained standing; steps in place are asked for with a velocity just above.
_SLOWEST_STEP = 0.011
# Phase of the left leg at which both feet are level; standing still from here leaves them side by side (measured).
_LEVEL_PHASE = (-2.45, -2.1)
_STEPS_BEFORE_STANDING = 1.5


class WalkingPolicy:
    """Holosoma's velocity policy (Apache-2.0, ONNX), with the upper body moved by somebody else.

    The policy was trained on 29 joints. Waist and arms follow other commands here, so their entries of the observation
    (position, velocity, last action) are zeroed: seeing arms where it did not send them, the policy barely walks.

    Commanded to stand, it goes on stepping for 1.5 s, so that the feet come side by side, and freezes in the gait phase
    in which both are level; a plain stop leaves one foot up to 20 cm ahead.

    Args:
        robot: The G1.
        policy: ``"ppo"`` or ``"fastsac"``.

    Raises:
        AssetError: The policy file is missing or speaks of other joints.
    """

    source = "locomotion"

    def __init__(self, robot: Robot, policy: str = "ppo") -> None:
        self._joints = robot.joints
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = g1_policy(policy)
        self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        metadata = self._session.get_modelmeta().custom_metadata_map
        names = json.loads(metadata["dof_names"])
        if tuple(names) != self._joints.names[: len(names)]:
            raise AssetError(
                f"{path.name} was trained on other joints: expected {self._joints.names[:29]}, got {names}"
            )
        self._n = len(names)
        self._legs = self._joints.group(*LEG_GROUPS)
        self._home = self._joints.home[: self._n]
        self._not_ours = np.setdiff1d(np.arange(self._n), self._legs)
        self._velocity = np.zeros(3)
        self.reset()

    def reset(self) -> None:
        """Forget the gait: standing still, no last action."""
        self._last_action = np.zeros(self._n)
        self._phase = np.array([np.pi, np.pi])
        self._velocity = np.zeros(3)
        self._stopping_for = 0.0
        self._stop = True
        self.standing = True

    @property
    def velocity(self) -> Array:
        """The commanded velocity (vx, vy, wz) in the heading frame in [m/s, m/s, rad/s]."""
        return self._velocity.copy()

    def command(self, velocity: ArrayLike, stop: bool = False) -> None:
        """Set the velocity to step with.

        Args:
            velocity: (vx, vy, wz) in the heading frame, clamped to the trained range of +-1 [m/s, m/s, rad/s].
            stop: Come to stand; the velocity then only corrects the last steps.

        Raises:
            StateError: Not three finite numbers.
        """
        value = np.asarray(velocity, dtype=np.float64)
        if value.shape != (3,) or not np.all(np.isfinite(value)):
            raise StateError(f"base velocity: expected three finite numbers (vx, vy, wz), got {value.tolist()}")
        self._velocity = np.clip(value, -1.0, 1.0)
        self._stop = stop

    def _advance_phase(self, dt: float) -> Array:
        """Advance the gait by one tick and return the velocity that the policy is to see."""
        self._stopping_for = self._stopping_for + dt if self._stop else 0.0
        if self.standing and self._stop:
            return np.zeros(3)
        if self.standing:
            self._phase = np.array([0.0, np.pi])
            self.standing = False
        else:
            self._phase = (self._phase + 2.0 * np.pi * dt / _GAIT_PERIOD + np.pi) % (2.0 * np.pi) - np.pi
        level = _LEVEL_PHASE[0] < self._phase[0] < _LEVEL_PHASE[1]
        if self._stop and level and self._stopping_for > _STEPS_BEFORE_STANDING:
            self._phase = np.array([np.pi, np.pi])
            self.standing = True
            return np.zeros(3)
        if np.hypot(*self._velocity[:2]) < _SLOWEST_STEP and abs(self._velocity[2]) < _SLOWEST_STEP:
            return np.array([_SLOWEST_STEP, 0.0, 0.0])
        return self._velocity

    def _observation(self, state: RobotState, velocity: Array) -> NDArray[np.float32]:
        q, v = state.q[: self._n] - self._home, state.v[: self._n].copy()
        action = self._last_action.copy()
        for array in (q, v, action):
            array[self._not_ours] = 0.0
        gravity = -state.T_world_base.rotation[2]
        parts = (
            action,
            state.base_angular_velocity * 0.25,
            velocity[2:],
            velocity[:2],
            np.cos(self._phase),
            q,
            v * 0.05,
            gravity,
            np.sin(self._phase),
        )
        return np.concatenate(parts).astype(np.float32)[None]

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the leg command for one tick.

        Args:
            state: Measured state.
            dt: Time since the last tick in [s].

        Raises:
            StateError: The state is not finite.
        """
        if not state.finite:
            raise StateError(f"robot state at {state.stamp_ns} ns is not finite; the walking policy refuses it")
        velocity = self._advance_phase(dt)
        output = self._session.run(None, {"actor_obs": self._observation(state, velocity)})[0][0]
        self._last_action = np.minimum(np.maximum(output.astype(np.float64), -_ACTION_LIMIT), _ACTION_LIMIT)
        command = RobotCommand.blank(self._joints, self.source, state.stamp_ns)
        command.q[self._legs] = self._home[self._legs] + _ACTION_SCALE * self._last_action[self._legs]
        command.active[self._legs] = True
        return command
