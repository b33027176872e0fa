# SPDX-License-Identifier: Apache-2.0
"""The scene that several tests of perception look at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def tabletop_scene():
    from tabletop import Tabletop

    scene = Tabletop()
    yield scene
    scene.camera.close()


@pytest.fixture
def tabletop(tabletop_scene):
    """The table, empty."""
    tabletop_scene.clear()
    return tabletop_scene
