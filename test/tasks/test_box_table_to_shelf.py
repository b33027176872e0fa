# SPDX-License-Identifier: Apache-2.0
"""BoxTableToShelf: what is drawn, how the scene starts, and what counts as put on the shelf."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from layouts import assert_ranges_filled

from supple.cli.places import find_seed
from supple.episodes import load_seed
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.robots.g1 import UPPER_BODY_GROUPS
from supple.sim.clearance import ClearanceChecker
from supple.tasks import Environment, task_named
from supple.tasks.box_table_to_shelf import TARGET_BOARD

TASK = task_named("box_table_to_shelf")
PUBLISHED = {
    "D0": {"box_x": (0, 0), "box_y": (0, 0), "box_yaw": (0, 0), "shelf_x": (0, 0), "shelf_y": (-0.83, -0.83),
           "shelf_yaw": (0, 0), "robot_x": (0.73, 0.73), "robot_y": (-0.06, 0.06)},
    "D1": {"box_x": (-0.18, 0.18), "box_y": (-0.18, 0.18), "box_yaw": (-0.60, 0.60), "shelf_x": (-0.18, 0.18),
           "shelf_y": (-0.91, -0.55), "shelf_yaw": (-0.36, 0.36), "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05)},
}  # fmt: skip


@pytest.fixture(scope="module")
def environment():
    return Environment(TASK)


def drawn(layout):
    box, shelf, robot = (xyyaw_of(pose) for pose in (*map(layout.objects.get, ("box", "shelf")), layout.T_world_base))
    return {
        "box_x": box[0] - 1.079, "box_y": box[1] - 0.022, "box_yaw": wrap_angle(box[2] - np.pi),
        "shelf_x": shelf[0] - 0.55, "shelf_y": shelf[1], "shelf_yaw": wrap_angle(shelf[2] - np.pi / 2),
        "robot_x": robot[0], "robot_y": robot[1],
    }  # fmt: skip


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_samples_stay_within_the_published_ranges_and_span_most_of_them(distribution):
    # What would stand in each other is drawn again, so that corners are rare.
    assert_ranges_filled(TASK, distribution, drawn, PUBLISHED[distribution], share=0.6, count=60)


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_nothing_overlaps_at_the_start_and_the_box_stays_on_the_table(environment, distribution):
    checker = ClearanceChecker(environment.world)
    for index in range(8):
        layout = TASK.sample(distribution, np.random.default_rng([1, index]))
        environment.reset(layout)
        assert checker.overlaps(layout.T_world_base, layout.q) == []
        environment.world.step(20)
        assert environment.world.touching("box", "table")
        assert not environment.outcome().success


def put(environment, x=0.55, height=TARGET_BOARD + 0.0005, tilt=0.0, steps=40):
    """Put the box down, by hand, let it come to rest if it stands, and return what does not hold."""
    environment.reset(TASK.nominal())
    world = environment.world
    pose = pose_from_xyyaw(x, -0.75, 0.0, height) * pin.SE3(pin.utils.rotate("x", tilt), np.zeros(3))
    world.write_object(world.data, "box", pose)
    world.set_state(world.get_state())
    world.step(steps)
    return [criterion.name for criterion in TASK.criteria(world) if not criterion.holds]


def test_a_box_that_rests_on_the_middle_board_counts(environment):
    assert put(environment) == []


def test_another_board_the_table_and_the_air_do_not_count(environment):
    assert put(environment, height=0.352 + 0.0005) == ["box_height"]
    assert "box_on_shelf" in put(environment, x=1.3)
    assert {"box_on_shelf", "box_speed"} <= set(put(environment, height=TARGET_BOARD + 0.3))


def test_a_tilted_box_does_not_count(environment):
    assert "box_upright" in put(environment, tilt=0.6, steps=1)


def test_a_box_between_two_hands_is_in_neither_s_way(environment):
    """Hands that press a box are sent a little into it; where both hold it, it is carried by both."""
    seed = load_seed(find_seed(TASK.name, None)).episode
    environment.restore(seed.initial)
    world, checker = environment.world, ClearanceChecker(environment.world)
    step = int(np.argmax(seed.object_poses["box"][:, 2, 3]))
    world.set_state(seed.states[step])
    q = world.robot_state().q.copy()
    upper = TASK.robot.joints.group(*UPPER_BODY_GROUPS)
    q[upper] = seed.actions[step, : upper.size]
    base = world.robot_state().T_world_base
    assert {overlap.link.split("_")[0] for overlap in checker.overlaps(base, q)} == {"left", "right"}
    checker.carry(world.carried_objects(("box",)))
    assert checker.overlaps(base, q) == []
