# SPDX-License-Identifier: Apache-2.0
"""A task made ready to run: the simulated world, its body, resets and the success test over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from supple.episodes.episode import InitialState, Outcome
from supple.episodes.recorder import EpisodeRecorder
from supple.errors import StateError
from supple.geometry import pose_from_quaternion, quaternion_of
from supple.robots import RobotState
from supple.sim.body import SimBody
from supple.sim.world import World
from supple.tasks.task import Layout, Task

__all__ = ["Environment"]


class Environment:
    """One task in one simulated world.

    Args:
        task: The task.
        visual: With what only pictures need.

    Attributes:
        task: The task.
        world: The simulation.
        body: The robot in it.
    """

    def __init__(self, task: Task, visual: bool = False) -> None:
        self.task = task
        self.world = World(task.spec(visual), task.robot)
        self.body = SimBody(self.world, task.robot.contract.control_interval)
        self._held = 0.0
        self._materials: dict[str, float] = {}
        self._goal: dict[str, float] = {}
        self._rows: dict[str, np.ndarray] = {}

    def reset(self, layout: Layout) -> InitialState:
        """Put robot, objects and materials where a layout says and return what repeats it."""
        self.world.clear()
        rows = {name: np.r_[pose.translation, quaternion_of(pose)] for name, pose in layout.objects.items()}
        self._place(rows, layout.materials, layout.goal)
        self.world.place_robot(layout.T_world_base, layout.q)
        self._begin(self.world.get_state())
        return self.snapshot()

    def restore(self, initial: InitialState) -> None:
        """Begin an episode again.

        Raises:
            StateError: It was recorded in another scene.
        """
        if initial.model_hash != self.world.model_hash:
            raise StateError(
                f"the episode was recorded with model {initial.model_hash}, this scene is {self.world.model_hash}: "
                "another task, robot model, controller gains or scene"
            )
        self.world.clear()
        self._place(initial.objects, initial.materials, initial.goal)
        self._begin(np.asarray(initial.state))

    def _place(
        self, objects: Mapping[str, np.ndarray], materials: Mapping[str, float], goal: Mapping[str, float]
    ) -> None:
        self._materials, self._goal = dict(materials), dict(goal)
        self._rows = {name: np.array(row) for name, row in objects.items()}
        self.task.apply_materials(self.world, materials)
        for name, row in objects.items():
            self.world.place_object(name, pose_from_quaternion(row[:3], row[3:], f"object {name}"))

    def _begin(self, state: np.ndarray) -> None:
        self.world.set_state(state)
        self.body.reset()
        self._held = 0.0

    def snapshot(self) -> InitialState:
        """Return what repeats the episode from the present state on (with controllers that remember nothing)."""
        # Fixed objects keep the very numbers they were placed by: a turn through a matrix would change the last bits.
        objects = {
            name: self._rows[name] if self.world.is_fixed(name) else np.r_[pose.translation, quaternion_of(pose)]
            for name, pose in self.object_poses().items()
        }
        return InitialState(self.world.get_state(), self.world.model_hash, objects, self._materials, self._goal)

    def object_poses(self) -> dict[str, pin.SE3]:
        """Return the world pose of each of the task's objects."""
        return {name: self.world.object_pose(name) for name in self.task.objects}

    def effector_poses(self) -> dict[str, pin.SE3]:
        """Return the world pose of each effector's frame."""
        return {name: self.world.link_pose(effector.frame) for name, effector in self.task.robot.effectors.items()}

    def record(self, recorder: EpisodeRecorder, state: RobotState | None = None) -> dict[str, pin.SE3]:
        """Record the present state and return the effectors' poses in it.

        Args:
            recorder: Where to.
            state: The robot's measurement of this state, if it was read already.
        """
        forces = self.world.contact_forces(self.task.contact_pairs)
        state, physics = state or self.body.read(), self.world.get_state()
        effectors = self.effector_poses()
        recorder.observe(state, physics, effectors, self.object_poses(), forces)
        return effectors

    def observe_success(self) -> bool:
        """Evaluate the success test after one control interval; true once it has held long enough without a break."""
        holds = all(criterion.holds for criterion in self.task.criteria(self.world))
        self._held = self._held + self.body.control_interval if holds else 0.0
        return self._held >= self.task.hold - 1e-9

    def outcome(self) -> Outcome:
        """Return the verdict on the present, final state; the test must also have held for the time before it."""
        criteria = list(self.task.criteria(self.world))
        measures = {criterion.name: criterion.value for criterion in criteria} | {"held_for": self._held}
        failed = [criterion.text for criterion in criteria if not criterion.holds]
        if failed:
            return Outcome(False, measures, "; ".join(failed))
        if self._held < self.task.hold - 1e-9:
            return Outcome(False, measures, f"success held for {self._held:.2f} s, wanted {self.task.hold:.1f} s")
        return Outcome(True, measures, "success")
