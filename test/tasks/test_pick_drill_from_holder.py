# SPDX-License-Identifier: Apache-2.0
"""PickDrillFromHolder: what is drawn, how the drill hangs in its holder, and what counts as pulled out."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from layouts import assert_ranges_filled

from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.sim.clearance import ClearanceChecker
from supple.tasks import Environment, task_named

TASK = task_named("pick_drill_from_holder")
PUBLISHED = {
    "D0": {"x": (1.33, 1.37), "y": (-0.02, 0.02), "yaw": (-0.031, 0.031), "holder_y": (-0.02, 0.02)},
    "D1": {"x": (1.20, 1.50), "y": (-0.15, 0.15), "yaw": (-0.031, 0.031), "holder_y": (-0.02, 0.02)},
}


@pytest.fixture(scope="module")
def environment():
    return Environment(TASK)


def drawn(layout):
    shelf, holder = xyyaw_of(layout.objects["shelf"]), xyyaw_of(layout.objects["holder"])
    offset = layout.objects["drill"].translation - layout.objects["holder"].translation
    # As published: where the holder is, and the drill in it, is told in world axes.
    assert holder[0] - shelf[0] == pytest.approx(-0.75)
    np.testing.assert_allclose(offset[:2], [-0.14, -0.055], atol=1e-9)
    np.testing.assert_allclose(xyyaw_of(layout.T_world_base), [-0.5, 0.0, 0.0])
    row = {"x": shelf[0], "y": shelf[1], "yaw": wrap_angle(shelf[2] - np.pi / 2)}
    return row | {"holder_y": holder[1] - shelf[1]}


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_samples_fill_the_published_ranges(distribution):
    assert_ranges_filled(TASK, distribution, drawn, PUBLISHED[distribution])


def test_the_drill_hangs_still_between_two_teeth_that_let_it_out_on_one_side_only(environment):
    layout = TASK.sample("D1", np.random.default_rng(4))
    environment.reset(layout)
    world = environment.world
    assert ClearanceChecker(world).overlaps(layout.T_world_base, layout.q) == []
    world.step(80)
    pose = world.object_pose("drill")
    assert pose.translation == pytest.approx(layout.objects["drill"].translation, abs=3e-3)
    assert pose.rotation[2, 2] > 0.9999
    assert world.touching("drill", "holder")
    assert not environment.outcome().success
    # 5 N hold it back sideways; out of the slot, against friction alone, they take it.
    moved = {}
    for name, force in {"left": (0.0, 5.0, 0.0), "out": (-5.0, 0.0, 0.0)}.items():
        environment.reset(layout)
        for _ in range(80):
            world.push("drill", np.array(force), world.object_pose("drill").act(np.array([0.0, 0.0, 0.17])))
            world.step()
        moved[name] = float(np.linalg.norm((world.object_pose("drill").translation - pose.translation)[:2]))
        world.push("drill", np.zeros(3), np.zeros(3))
    assert moved["left"] < 0.02 < 0.1 < moved["out"]


def held(environment, *, out=True, tips=True):
    """Put the drill by hand to a finger tip of the right hand, or beside it, and the holder away from it or not."""
    layout = TASK.nominal()
    environment.reset(layout)
    world = environment.world
    tip = world.object_pose("right_hand_index_1_link").act(np.array([0.02, 0.0, 0.0]))
    drill = pose_from_xyyaw(tip[0], tip[1] + (0.028 if tips else 0.1), 0.0, tip[2] - 0.109)
    world.place_object("drill", drill)
    if not out:
        holder = drill.translation + np.array([0.14, 0.055, 0.1805])
        world.place_object("holder", pin.SE3(layout.objects["holder"].rotation, holder))
    world.set_state(world.get_state())
    return {criterion.name: criterion for criterion in TASK.criteria(world)}


@pytest.mark.parametrize(
    ("change", "fails"), [({}, []), ({"out": False}, ["drill_off_holder"]), ({"tips": False}, ["grasped"])]
)
def test_pulled_out_means_off_the_holder_with_a_finger_tip_on_it(environment, change, fails):
    found = held(environment, **change)
    assert [name for name, criterion in found.items() if not criterion.holds] == fails
