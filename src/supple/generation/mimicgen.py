# SPDX-License-Identifier: Apache-2.0
"""MimicGen as it is: the demonstrated hand path, moved rigidly with the object, by a robot that stays where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.episodes import Origin
from supple.generation.host import RejectionError
from supple.generation.sources import SkillSource, Squat
from supple.generation.task_runner import TaskRunner

__all__ = ["MimicGen"]

# Speed at which the hands are led to where a skill begins, in [m/s]: that of the demonstrations' own approaches.
_HAND_SPEED = 0.25


class MimicGen(TaskRunner):
    """Do a task as MimicGen does, with two hands if need be (Mandlekar et al. 2023, section 4).

    The hands are led in a straight line to where a skill begins and follow its adapted path, by the same inverse
    kinematics (all but the legs free) on the same controllers. Nothing is planned, nothing is checked for collisions
    and nobody walks: it is for scenes in which the robot starts where it can reach.
    """

    def go_to(self, sources: Sequence[SkillSource]) -> NDArray[np.float64]:
        """Stay.

        Raises:
            RejectionError: The hands do not reach from here.
        """
        with self.staged("plan"):
            planner = self.placements()
            if planner.reach(self._base(), self.q, *self._paths(sources)) is None:
                raise RejectionError(
                    Origin.PLANNING,
                    f"out of reach from where the robot stands, and MimicGen does not walk: {planner.failures[-1]}",
                )
        return self.q

    def start_below(self, sources: Sequence[SkillSource], squat: Squat | None) -> NDArray[np.float64]:
        """Begin with the arms as they are."""
        return self.q

    def approach(self, goal: NDArray[np.float64]) -> None:
        """Leave it to the interpolation with which the skill is entered."""

    def entry_steps(
        self, sources: Sequence[SkillSource], entry: Mapping[str, pin.SE3], adapted: Mapping[str, Sequence[pin.SE3]]
    ) -> int:
        """Return over how many steps the hands are led in a straight line to where the skills begin."""
        farthest = max(np.linalg.norm(adapted[name][0].translation - pose.translation) for name, pose in entry.items())
        least = super().entry_steps(sources, entry, adapted)
        return max(least, round(float(farthest) / (_HAND_SPEED * self._dt)))
