# SPDX-License-Identifier: Apache-2.0
"""DexMimicGen+, what Supple's generation is compared with: DexMimicGen with a walk to where the demonstration stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.generation.sources import SkillSource
from supple.generation.task_runner import TaskRunner

__all__ = ["DexMimicGenPlus"]

# Speed at which the hands are led to where a skill begins, in [m/s]: that of the demonstrations' own approaches.
_HAND_SPEED = 0.25


class DexMimicGenPlus(TaskRunner):
    """Do a task as the baseline of the HumanoidMimicGen paper does.

    The walk of the demonstration is labelled by hand: it ends where the demonstration stood, relative to the object,
    and is walked in a straight line. Then the hands are led in a straight line to where the skill begins and follow its
    adapted path, by the same inverse kinematics (all but the legs free) on the same controllers. Nothing is planned and
    nothing is checked for collisions.
    """

    def go_to(self, sources: Sequence[SkillSource]) -> NDArray[np.float64]:
        """Walk straight to where the demonstration stood."""
        with self.staged("walk"):
            self.walk(self.shown_place(sources))
        return self.q

    def approach(self, goal: NDArray[np.float64]) -> None:
        """Leave it to the interpolation with which the skill is entered."""

    def entry_steps(self, entry: Mapping[str, pin.SE3], adapted: Mapping[str, Sequence[pin.SE3]]) -> int:
        """Return over how many steps the hands are led in a straight line to where the skills begin."""
        farthest = max(np.linalg.norm(adapted[name][0].translation - pose.translation) for name, pose in entry.items())
        return max(self.settings.interpolation_steps, round(float(farthest) / (_HAND_SPEED * self._dt)))
