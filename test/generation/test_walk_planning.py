# SPDX-License-Identifier: Apache-2.0
"""Walks in generation: straight on where that is free, round what is in the way, and a reason where there is no way."""

from __future__ import annotations

from typing import ClassVar

import mujoco
import numpy as np
import pytest

from supple.errors import PlanningError
from supple.generation import GenerationSettings
from supple.generation.attempt import AttemptRunner
from supple.generation.demonstrations import Demonstration
from supple.generation.walk_planning import WalkPlanner
from supple.geometry import pose_from_xyyaw
from supple.planning.base_space import BaseSpace
from supple.robots import g1
from supple.sim.clearance import ClearanceChecker
from supple.sim.g1_model import g1_spec
from supple.sim.outlines import robot_outlines, scene_outlines
from supple.sim.world import World
from supple.tasks.box_lift import BoxLift

ROBOT = g1()
HEIGHT = ROBOT.standing_height
HOME = ROBOT.joints.home
FAR = 20.0


@pytest.fixture(scope="module")
def scene():
    """A pillar, a low table and two walls that are put where a test wants them."""
    spec = g1_spec()
    sizes = {"pillar": [0.1, 0.1, 0.8], "table": [0.3, 0.5, 0.28], "left": [3.0, 0.05, 1.0], "right": [3.0, 0.05, 1.0]}
    for name, size in sizes.items():
        spec.worldbody.add_body(name=name).add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=[0, 0, size[2]])
    return World(spec, ROBOT)


def arranged(scene, patience=4, **places):
    """Put things at (x, y) and the rest far away, the robot to the origin."""
    for name in ("pillar", "table", "left", "right"):
        x, y = places.get(name, (FAR, FAR))
        scene.place_object(name, pose_from_xyyaw(x, y, 0.0))
    scene.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, HEIGHT), HOME)
    scene.set_state(scene.get_state())
    return WalkPlanner(scene, pose_from_xyyaw(0.0, 0.0, 0.0, HEIGHT), HOME, patience=patience)


def place(x, y, yaw=0.0):
    return pose_from_xyyaw(x, y, yaw, HEIGHT)


def test_a_free_walk_is_straight(scene):
    ways = arranged(scene, pillar=(1.0, 0.8))
    assert ways.leads_to(place(2.0, 0.0))
    assert ways.path is None


def test_what_stands_in_between_is_walked_round(scene):
    ways = arranged(scene, pillar=(1.0, 0.0))
    assert ways.leads_to(place(2.0, 0.0, 0.5))
    np.testing.assert_allclose(ways.path.waypoints[-1], [2.0, 0.0, 0.5], atol=1e-9)
    beside = np.abs(ways.path.waypoints[:, 0] - 1.0) < 0.1
    assert (np.abs(ways.path.waypoints[beside, 1]) > 0.35).all()
    other = ways.path_from(np.array([0.5, 0.8, 0.0]))
    np.testing.assert_allclose(other.waypoints[[0, -1]], [[0.5, 0.8, 0.0], [2.0, 0.0, 0.5]], atol=1e-9)


def test_hands_a_finger_above_a_table_do_not_block_the_place(scene):
    """The hands hang 11 mm above it: outlines call that the same height, MuJoCo does not."""
    ways = arranged(scene, table=(2.0, 0.0))
    goal = place(1.5, 0.0)
    assert not ClearanceChecker(scene).overlaps(goal, HOME)
    assert not BaseSpace(robot_outlines(scene, HOME), scene_outlines(scene)).free([[1.5, 0.0, 0.0]])[0]
    assert ways.leads_to(goal)


def test_places_without_a_way_are_put_up_with_a_few_times(scene):
    ways = arranged(scene, patience=1, left=(0.0, 0.37), right=(0.0, -0.37), pillar=(1.0, 0.0))
    assert not ways.leads_to(place(2.0, 0.0))
    assert len(ways.failures) == 1
    assert "no way to walk" in ways.failures[0]
    with pytest.raises(PlanningError, match="inside pillar"):
        ways.leads_to(place(2.0, 0.02))


def test_a_straight_walk_that_is_close_but_free_is_better_than_none(scene):
    ways = arranged(scene, left=(0.0, 0.37), right=(0.0, -0.37))
    assert ways.leads_to(place(2.0, 0.0))
    assert ways.path is None


class Obstructed(BoxLift):
    """The same task with a pillar in the robot's way."""

    objects: ClassVar[tuple[str, ...]] = (*BoxLift.objects, "pillar")

    def spec(self, visual=False):
        spec = super().spec(visual)
        pillar = spec.worldbody.add_body(name="pillar")
        pillar.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.06, 0.06, 0.7], pos=[0.0, 0.0, 0.7])
        return spec

    def sample(self, distribution, rng):
        layout = super().sample(distribution, rng)
        layout.objects["pillar"] = pose_from_xyyaw(0.45, 0.1, 0.3)
        return layout


def test_an_attempt_walks_round_a_pillar_without_touching_it(seed):
    shown = [Demonstration("seed", Obstructed(), seed)]
    runner = AttemptRunner(Obstructed(), shown, GenerationSettings(hold_time=0.1))
    record, episode = runner.run(0, 0, "D0")
    assert record.stage in {"success_test", "hold", "skill:lift"}, record.reason
    assert np.abs(episode.observations["base_pose"][:, 1]).max() > 0.3
    world = runner.environment.world
    for physics in episode.states[::5]:
        world.set_state(physics)
        assert not world.touching(ROBOT.base_link, "pillar")
