# SPDX-License-Identifier: Apache-2.0
"""A recorder that turns states and actions, one after the other, into an episode."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.episodes.episode import Episode, InitialState, Outcome
from supple.errors import DatasetError
from supple.robots import Robot, RobotState

__all__ = ["EpisodeRecorder"]

Array = NDArray[np.float64]


class EpisodeRecorder:
    """Collect an episode while it happens: ``observe`` a state, ``act``, ``observe`` the next, and so on.

    Args:
        robot: The robot.
        initial: What a reset needs to begin again.
    """

    def __init__(self, robot: Robot, initial: InitialState) -> None:
        self._robot = robot
        self._initial = initial
        self._rows: defaultdict[str, list[Any]] = defaultdict(list)
        names = "observations", "effector_poses", "target_poses", "object_poses", "contacts", "start_signals", "signals"
        self._groups: dict[str, defaultdict[str, list[Any]]] = {name: defaultdict(list) for name in names}

    @property
    def steps(self) -> int:
        """Number of actions recorded so far."""
        return len(self._rows["actions"])

    def observe(
        self,
        state: RobotState,
        physics: Array,
        effectors: Mapping[str, pin.SE3],
        objects: Mapping[str, pin.SE3],
        contacts: Mapping[str, tuple[float, float]],
    ) -> None:
        """Record a state.

        Args:
            state: The robot's measurement.
            physics: Full physics state, shape (S,).
            effectors: World pose of each effector's frame.
            objects: World pose of each object.
            contacts: Normal and tangential force in [N] by pair.

        Raises:
            DatasetError: Two states without an action between them.
        """
        if len(self._rows["states"]) != self.steps:
            raise DatasetError(f"state {len(self._rows['states'])} recorded without an action after the one before")
        self._rows["states"].append(physics)
        self._rows["stamps_ns"].append(state.stamp_ns)
        observations = self._groups["observations"]
        for key in ("q", "v", "effort"):
            observations[key].append(getattr(state, key))
        observations["base_pose"].append(np.concatenate((state.base_position, state.base_quaternion)))
        observations["base_twist"].append(np.concatenate((state.base_linear_velocity, state.base_angular_velocity)))
        observations["base_acceleration"].append(state.base_acceleration)
        for group, poses in (("effector_poses", effectors), ("object_poses", objects)):
            for name, pose in poses.items():
                self._groups[group][name].append(pose.homogeneous)
        for name, force in contacts.items():
            self._groups["contacts"][name].append(force)

    def act(
        self,
        action: Array,
        executed: Array,
        targets: Mapping[str, pin.SE3],
        started: Mapping[str, bool] | None = None,
        finished: Mapping[str, bool] | None = None,
    ) -> None:
        """Record what is done in the last observed state.

        Args:
            action: Clean action, shape (A,).
            executed: What is really commanded, shape (A,).
            targets: World pose that each effector is sent to.
            started: Whether each skill has begun.
            finished: Whether each skill is finished.

        Raises:
            DatasetError: No state was observed since the last action.
        """
        if len(self._rows["states"]) != self.steps + 1:
            raise DatasetError(f"action {self.steps} recorded without observing the state before it")
        self._rows["actions"].append(np.array(action))
        self._rows["executed"].append(np.array(executed))
        for name, pose in targets.items():
            self._groups["target_poses"][name].append(pose.homogeneous)
        for group, signals in (("start_signals", started), ("signals", finished)):
            for name, value in (signals or {}).items():
                self._groups[group][name].append(value)

    def finish(
        self,
        *,
        task: str,
        distribution: str,
        attempt: int,
        seed: int,
        source: str,
        outcome: Outcome,
        versions: Mapping[str, str],
        sources: Mapping[str, str] | None = None,
        soundness: Mapping[str, float] | None = None,
    ) -> Episode:
        """Return the episode; the last thing recorded must be a state.

        Raises:
            DatasetError: Nothing was recorded, or the state after the last action is missing.
        """
        if self.steps == 0 or len(self._rows["states"]) != self.steps + 1:
            raise DatasetError(f"episode ends with {self.steps} actions and {len(self._rows['states'])} states")
        return Episode(
            task=task,
            distribution=distribution,
            robot=self._robot.name,
            contract=self._robot.contract,
            attempt=attempt,
            seed=seed,
            source=source,
            sources=sources or {},
            soundness=soundness or {},
            initial=self._initial,
            actions=np.array(self._rows["actions"]),
            executed=np.array(self._rows["executed"]),
            states=np.array(self._rows["states"]),
            stamps_ns=np.array(self._rows["stamps_ns"], dtype=np.int64),
            outcome=outcome,
            versions=versions,
            **{
                group: {name: np.array(rows) for name, rows in values.items()} for group, values in self._groups.items()
            },
        )
