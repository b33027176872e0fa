# SPDX-License-Identifier: Apache-2.0
"""Generation: from one demonstration to many physically checked episodes."""

from __future__ import annotations

from supple.generation.engine import Job
from supple.generation.generate import GenerationSummary, generate
from supple.generation.ray_engine import attempts_on_ray
from supple.generation.settings import GenerationSettings, SkillSettings

__all__ = ["GenerationSettings", "GenerationSummary", "Job", "SkillSettings", "attempts_on_ray", "generate"]
