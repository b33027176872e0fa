# SPDX-License-Identifier: Apache-2.0
"""Settings of generation, stored with every dataset."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["GenerationSettings"]


class GenerationSettings(BaseModel):
    """How episodes are made from a seed.

    Attributes:
        arm_noise: Standard deviation of the motion noise on arm targets while a skill runs, in [rad]; the noisy targets
            are executed, the clean ones stored as labels.
        interpolation_steps: Control steps over which a skill is entered from where the hands are.
        settle_time: Standing still before anything starts, in [s].
        walk_timeout: Longest walk in [s].
        arrival_tolerance: Accepted distance to the place to stand in [m]; what is left is planned around.
        arrival_yaw_tolerance: Accepted heading error at the place to stand in [rad].
        approach_speed: Largest joint speed of the approach in [rad/s].
        hold_time: How long the last targets are held after the last skill, in [s].
        placements: Most places to stand (clear of furniture) that are tried before planning gives up.
        replans: How often a robot that ended up out of reach may walk again.
        strategy: How an attempt is made: Supple's way, or that of DexMimicGen+, with which it is compared.
        planning: Whether places to stand, ways round things and arm paths are planned; else the robot walks straight to
            where the demonstration stood and moves its arms straight. This switch and the next two show what a part is
            worth.
        replanning: Whether arms are planned anew from where a walk really ended.
        collision_checks: Whether what is planned keeps clear of the scene and of the robot itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm_noise: float = Field(default=0.01, ge=0.0, le=0.2)
    interpolation_steps: int = Field(default=5, ge=0)
    settle_time: float = Field(default=0.4, ge=0.0)
    walk_timeout: float = Field(default=40.0, gt=0.0)
    arrival_tolerance: float = Field(default=0.05, gt=0.0)
    arrival_yaw_tolerance: float = Field(default=0.06, gt=0.0)
    approach_speed: float = Field(default=1.0, gt=0.0)
    hold_time: float = Field(default=2.0, ge=0.0)
    placements: int = Field(default=60, ge=1)
    replans: int = Field(default=2, ge=0)
    strategy: Literal["supple", "dexmimicgen_plus"] = "supple"
    planning: bool = True
    replanning: bool = True
    collision_checks: bool = True
