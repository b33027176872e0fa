# SPDX-License-Identifier: Apache-2.0
"""Small datasets of really simulated episodes to report on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import simulated_attempts as simulated

from supple.episodes import DatasetWriter, Episode


@pytest.fixture(scope="session")
def walks() -> list[Episode]:
    """Return three short episodes from different starts, of different lengths."""
    runner = simulated.Runner("D1")
    return [runner.episode(attempt, steps) for attempt, steps in enumerate((20, 40, 30))]


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory, walks: list[Episode]) -> Path:
    """Return a finished dataset: two retained, one rejected and kept, nine rejected before they were carried out."""
    folder = tmp_path_factory.mktemp("dataset") / "box_lift_D1"
    with DatasetWriter(folder, simulated.card("D1"), keep_rejected=True) as writer:
        for episode in walks:
            writer.add(simulated.record(episode), episode)
        for attempt in range(len(walks), len(walks) + 9):
            writer.add(simulated.unplanned(attempt), None)
        writer.finalise()
    return folder
