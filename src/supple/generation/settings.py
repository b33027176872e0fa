# SPDX-License-Identifier: Apache-2.0
"""Settings of generation, stored with every dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from supple.errors import SettingError
from supple.tasks import Skill

__all__ = ["GenerationSettings", "SkillSettings"]

Selection = Literal["random", "nearest_object", "nearest_robot"]
Strategy = Literal["supple", "dexmimicgen_plus", "mimicgen"]


def _ordered(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"expected the fewest steps first, got {bounds[0]} and {bounds[1]}")
    return bounds


Noise = Annotated[float, Field(ge=0.0, le=0.2)]
Steps = Annotated[int, Field(ge=0)]
Offsets = Annotated[tuple[int, int], AfterValidator(_ordered)]


class SkillSettings(BaseModel):
    """How one skill is done; what is absent is as for all skills, or else the task's own.

    Attributes:
        arm_noise: Standard deviation of the motion noise on arm targets while it runs, in [rad].
        interpolation_steps: Control steps over which it is entered from where the hands are.
        term_offset_range: Fewest and most control steps by which its end is moved in each attempt, drawn uniformly,
            both included; negative ones trim it, positive ones go on with what was shown after it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm_noise: Noise | None = None
    interpolation_steps: Steps | None = None
    term_offset_range: Offsets | None = None


class GenerationSettings(BaseModel):
    """How episodes are made from demonstrations.

    Attributes:
        arm_noise: Standard deviation of the motion noise on arm targets while a skill runs, in [rad]; the noisy targets
            are executed, the clean ones stored as labels. Absent, each skill has its task's own.
        interpolation_steps: Control steps over which a skill is entered from where the hands are; absent likewise.
        term_offset_range: Fewest and most control steps by which a skill's end is moved; absent likewise.
        skills: What is special about single skills, by their signal, e.g. ``"pick_right_hand"``.
        selection: How a skill's demonstration is chosen among several: any, one whose object lay nearest to where the
            object is now, or one whose carried-over path begins nearest to where the hand is now.
        selection_top: From how many of the nearest demonstrations one is drawn.
        settle_time: Standing still before anything starts, in [s].
        walk_timeout: Longest walk in [s].
        arrival_tolerance: Accepted distance to the place to stand in [m]; what is left is planned around.
        arrival_yaw_tolerance: Accepted heading error at the place to stand in [rad].
        approach_speed: Largest joint speed of the approach in [rad/s].
        hold_time: How long the last targets are held after the last skill, in [s].
        placements: Most places to stand (clear of furniture) that are tried before planning gives up.
        replans: How often a robot that ended up out of reach may walk again.
        strategy: How an attempt is made: Supple's way, or one of those with which it is compared: that of DexMimicGen+,
            and that of MimicGen, which does not walk.
        planning: Whether places to stand, ways round things and arm paths are planned; else the robot walks straight to
            where the demonstration stood and moves its arms straight. This switch and the next two show what a part is
            worth.
        replanning: Whether arms are planned anew from where a walk really ended.
        collision_checks: Whether what is planned keeps clear of the scene and of the robot itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm_noise: Noise | None = None
    interpolation_steps: Steps | None = None
    term_offset_range: Offsets | None = None
    skills: dict[str, SkillSettings] = {}
    selection: Selection = "random"
    selection_top: int = Field(default=3, ge=1)
    settle_time: float = Field(default=0.4, ge=0.0)
    walk_timeout: float = Field(default=40.0, gt=0.0)
    arrival_tolerance: float = Field(default=0.05, gt=0.0)
    arrival_yaw_tolerance: float = Field(default=0.06, gt=0.0)
    approach_speed: float = Field(default=1.0, gt=0.0)
    hold_time: float = Field(default=2.0, ge=0.0)
    placements: int = Field(default=60, ge=1)
    replans: int = Field(default=2, ge=0)
    strategy: Strategy = "supple"
    planning: bool = True
    replanning: bool = True
    collision_checks: bool = True

    def of_skill(self, skill: Skill) -> Skill:
        """Return a skill with what these settings say about it.

        Args:
            skill: The skill with its task's own values.
        """
        own, changes = self.skills.get(skill.signal, SkillSettings()), {}
        for name in SkillSettings.model_fields:
            for given in (getattr(own, name), getattr(self, name)):
                if given is not None:
                    changes[name] = given
                    break
        return replace(skill, **changes)

    def resolved(self, skills: Sequence[Skill]) -> GenerationSettings:
        """Return the same settings with every skill of a task spelt out, so that they can be stored with a dataset.

        Raises:
            SettingError: There is no such skill.
        """
        signals = {skill.signal: self.of_skill(skill) for skill in skills}
        if unknown := sorted(self.skills.keys() - signals.keys()):
            raise SettingError(f"settings of unknown skill {unknown[0]!r} (available: {', '.join(sorted(signals))})")
        told = {
            signal: SkillSettings(**{name: getattr(skill, name) for name in SkillSettings.model_fields})
            for signal, skill in signals.items()
        }
        return self.model_copy(update={"skills": told})
