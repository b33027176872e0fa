# SPDX-License-Identifier: Apache-2.0
"""DexMimicGen+, what Supple's generation is compared with: DexMimicGen with a walk to where the demonstration stood."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from supple.generation.mimicgen import MimicGen
from supple.generation.sources import SkillSource

__all__ = ["DexMimicGenPlus"]


class DexMimicGenPlus(MimicGen):
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
