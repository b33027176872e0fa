# SPDX-License-Identifier: Apache-2.0
"""Tasks with a drill on desks: what is drawn, the drill, the shelf in the way, and what counts as success."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from layouts import assert_ranges_filled

from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.sim.clearance import ClearanceChecker
from supple.tasks import Environment, task_named

LIFT, ROUND, CARRY = (task_named(name) for name in ("drill_lift", "drill_lift_obstacle", "drill_pick_place"))
TABLE_TOP = 0.80
# As published: the drill relative to its table's position, in world axes.
LIFT_RANGES = {
    "D0": {"x": (1.98, 2.02), "y": (-0.02, 0.02), "yaw": (-0.063, 0.063), "drill_x": (-0.28, -0.24)}
    | {"drill_y": (-0.05, 0.05), "drill_yaw": (-0.157, 0.157)},
    "D1": {"x": (1.84, 2.16), "y": (-0.16, 0.16), "yaw": (-0.50, 0.50), "drill_x": (-0.42, -0.10)}
    | {"drill_y": (-0.40, 0.40), "drill_yaw": (-1.26, 1.26)},
}
ROUND_RANGES = {
    "D0": LIFT_RANGES["D0"]
    | {"drill_y": (0.45, 0.50), "shelf_x": (0.68, 0.72), "shelf_y": (-0.10, 0.10), "shelf_yaw": (-0.063, 0.063)},
    "D1": {"x": (1.88, 2.12), "y": (-0.12, 0.12), "yaw": (-0.38, 0.38), "drill_x": (-0.38, -0.14)}
    | {"drill_y": (0.28, 0.67), "drill_yaw": (-0.94, 0.94)}
    | {"shelf_x": (0.58, 0.82), "shelf_y": (-0.60, 0.60), "shelf_yaw": (-0.38, 0.38)},
}
CARRY_RANGES = {
    "D0": {"x": (1.18, 1.22), "y": (-0.02, 0.02), "target_x": (-0.02, 0.02), "target_y": (1.18, 1.22)}
    | {"drill_x": (-0.28, -0.24), "drill_y": (-0.05, 0.05), "drill_yaw": (-0.157, 0.157)},
    "D1": {"x": (1.08, 1.32), "y": (-0.12, 0.12), "target_x": (-0.12, 0.12), "target_y": (1.08, 1.32)}
    | {"drill_x": (-0.38, -0.14), "drill_y": (-0.30, 0.30), "drill_yaw": (-0.94, 0.94)},
}


@pytest.fixture(scope="module")
def lift():
    return Environment(LIFT)


@pytest.fixture(scope="module")
def way_round():
    return Environment(ROUND)


@pytest.fixture(scope="module")
def carry():
    return Environment(CARRY)


def drawn(layout):
    table = xyyaw_of(layout.objects["table" if "table" in layout.objects else "source_table"])
    drill = xyyaw_of(layout.objects["drill"])
    row = {"x": table[0], "y": table[1], "yaw": wrap_angle(table[2] - np.pi)}
    row |= {"drill_x": drill[0] - table[0], "drill_y": drill[1] - table[1], "drill_yaw": drill[2]}
    if "target_table" in layout.objects:
        target = xyyaw_of(layout.objects["target_table"])
        row |= {"target_x": target[0], "target_y": target[1]}
    if "obstacle" in layout.objects:
        shelf = xyyaw_of(layout.objects["obstacle"])
        row |= {"shelf_x": shelf[0], "shelf_y": shelf[1], "shelf_yaw": wrap_angle(shelf[2] - np.pi)}
    return row


@pytest.mark.parametrize(("task", "ranges"), [(LIFT, LIFT_RANGES), (ROUND, ROUND_RANGES), (CARRY, CARRY_RANGES)])
@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_samples_fill_the_published_ranges(task, ranges, distribution):
    assert_ranges_filled(task, distribution, drawn, ranges[distribution])
    masses = [task.sample(distribution, np.random.default_rng(i)).materials["drill.mass"] for i in range(60)]
    assert 0.5 <= min(masses) < 0.53
    assert 0.67 < max(masses) <= 0.7


@pytest.mark.parametrize("name", ["lift", "way_round", "carry"])
def test_drills_stand_on_their_table_and_stay_there(name, request):
    """In some published layouts the drill would stand in the air beside a turned table; they are drawn again."""
    environment = request.getfixturevalue(name)
    checker = ClearanceChecker(environment.world)
    for index in range(10):
        layout = environment.task.sample("D1", np.random.default_rng([2, index]))
        environment.reset(layout)
        assert checker.overlaps(layout.T_world_base, layout.q) == []
        environment.world.step(60)
        pose = environment.world.object_pose("drill")
        assert pose.translation == pytest.approx(layout.objects["drill"].translation, abs=2e-3)
        assert pose.rotation[2, 2] > 0.999
        assert not environment.outcome().success


def test_the_shelf_stands_between_the_robot_and_the_table_with_the_published_size(way_round):
    layout = ROUND.nominal()
    way_round.reset(layout)
    model, shelf = way_round.world.model, layout.objects["obstacle"].translation
    corners = [
        model.geom(f"obstacle_post_{i}").pos + sign * model.geom(f"obstacle_post_{i}").size
        for i in range(4)
        for sign in (-1, 1)
    ]
    np.testing.assert_allclose(np.ptp(corners, axis=0), 0.7 * np.array([0.594, 1.254, 2.22]), atol=1e-9)
    tops = [
        float(model.geom(f"obstacle_board_{i}").pos[2] + model.geom(f"obstacle_board_{i}").size[2]) for i in range(3)
    ]
    np.testing.assert_allclose(tops, [0.308, 0.637, 1.071])
    assert layout.T_world_base.translation[0] < shelf[0] - 0.3 < shelf[0] + 0.3 < layout.objects["table"].translation[0]
    # Straight ahead on the way to the drill the robot would be in the shelf.
    found = ClearanceChecker(way_round.world).overlaps(pose_from_xyyaw(shelf[0], 0.1, 0.5, 0.79), layout.q)
    assert {overlap.other for overlap in found} == {"obstacle"}


def test_the_drill_weighs_what_was_drawn_with_its_centre_of_mass_in_the_grip(lift):
    lift.reset(LIFT.nominal())
    body = lift.world.model.body("drill")
    assert body.mass[0] == pytest.approx(0.6)
    assert np.abs(body.ipos[:2]).max() < 1e-9
    assert 0.08 < body.ipos[2] < 0.12


def held(environment, *, up, tips):
    """Put the drill by hand so far above the table, a finger tip of the right hand on its handle or not."""
    layout = LIFT.nominal()
    environment.reset(layout)
    world = environment.world
    tip = world.object_pose("right_hand_index_1_link").act(np.array([0.02, 0.0, 0.0]))
    # The robot is moved to the drill, not the other way round, so that the height can be chosen.
    drill = pose_from_xyyaw(tip[0], tip[1], 0.0, TABLE_TOP + up)
    drill.translation[:2] += np.array([0.0, 0.028 if tips else 0.1])
    base = layout.T_world_base.copy()
    base.translation[2] += drill.translation[2] + 0.109 - tip[2]
    world.place_robot(base, layout.q)
    world.place_object("drill", drill)
    world.set_state(world.get_state())
    return {criterion.name: criterion for criterion in LIFT.criteria(world)}


@pytest.mark.parametrize(
    ("change", "fails"),
    [({}, []), ({"up": 0.0995}, ["drill_height"]), ({"tips": False}, ["grasped"])],
)
def test_lifted_means_ten_centimetres_up_with_a_finger_tip_on_it(lift, change, fails):
    found = held(lift, **({"up": 0.11, "tips": True} | change))
    assert [name for name, criterion in found.items() if not criterion.holds] == fails


def placed(environment, *, tilt=0.0, table="target_table", speed=0.0, near=False):
    """Put the drill by hand onto a table, tilted, moving or close to a hand."""
    layout = CARRY.nominal()
    place = layout.objects[table] * pin.SE3(np.eye(3), np.array([0.25, 0.0, TABLE_TOP]))
    rotation = pin.rpy.rpyToMatrix(0.0, tilt, 0.0)
    # Turned about an edge of its battery.
    lowest = 0.055 * np.sin(abs(tilt))
    drill = pin.SE3(rotation, place.translation + np.array([0.0, 0.0, lowest - 2e-4]))
    environment.reset(layout)
    world = environment.world
    if near:
        wrist = world.link_pose("l_wrist").translation
        base = layout.T_world_base.copy()
        base.translation[:] += drill.translation + np.array([0.0, -0.02, 0.09]) - wrist
        world.place_robot(base, layout.q)
    world.place_object("drill", drill)
    joint = world.model.joint("drill_joint")
    world.data.qvel[joint.dofadr[0]] = speed
    world.set_state(world.get_state())
    return {criterion.name: criterion for criterion in CARRY.criteria(world)}


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({}, []),
        ({"tilt": 0.33}, ["drill_upright"]),
        ({"table": "source_table"}, ["drill_on_target"]),
        ({"speed": 0.0025}, ["drill_speed"]),
        ({"near": True}, ["hand_distance"]),
    ],
)
def test_put_down_means_at_rest_upright_on_the_target_and_let_go(carry, change, fails):
    found = placed(carry, **change)
    assert [name for name, criterion in found.items() if not criterion.holds] == fails
    assert found["drill_speed"].value == pytest.approx(change.get("speed", 0.0), abs=1e-9)


def test_a_drill_that_nothing_but_the_hand_touches_is_carried_and_goes_where_the_hand_goes(carry):
    world, layout = carry.world, CARRY.nominal()
    carry.reset(layout)
    assert world.carried_objects(CARRY.objects) == {}
    tip = world.object_pose("right_hand_index_1_link").act(np.array([0.02, 0.0, 0.0]))
    world.place_object("drill", pose_from_xyyaw(tip[0], tip[1] + 0.028, 0.0, tip[2] - 0.109))
    world.set_state(world.get_state())
    assert world.carried_objects(CARRY.objects) == {"drill": "right_wrist_yaw_link"}
    checker = ClearanceChecker(world)
    away = pose_from_xyyaw(-2.0, 0.0, 1.0, layout.T_world_base.translation[2])
    checker.carry(world.carried_objects(CARRY.objects))
    assert checker.overlaps(layout.T_world_base, layout.q) == checker.overlaps(away, layout.q) == []
    # Brought low over the table, hand and arm are clear of it, the drill's foot is not.
    table = layout.objects["source_table"].translation
    low = pose_from_xyyaw(table[0] - 0.62, table[1], 0.0, layout.T_world_base.translation[2] - 0.28)
    assert {(o.link, o.other) for o in checker.overlaps(low, layout.q)} >= {("drill", "source_table")}
    checker.carry({})
    assert all(o.link != "drill" for o in checker.overlaps(low, layout.q))
