# SPDX-License-Identifier: Apache-2.0
"""The G1 as spheres, made once for all tests of kinematics."""

from __future__ import annotations

import pytest

from supple.kinematics.collision import CollisionModel
from supple.kinematics.collision_spheres import link_spheres
from supple.robots import g1
from supple.sim.collision_geometry import robot_solids
from supple.sim.g1_model import g1_spec
from supple.sim.world import World


@pytest.fixture(scope="session")
def links():
    return robot_solids(World(g1_spec(), g1()))


@pytest.fixture(scope="session")
def collisions(links):
    return CollisionModel(g1(), link_spheres(links))
