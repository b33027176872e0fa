# SPDX-License-Identifier: Apache-2.0
"""PushShelfForward: what is drawn, how the cart rolls, and what counts as pushed there."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from layouts import assert_ranges_filled

from supple.geometry import wrap_angle, xyyaw_of
from supple.sim.clearance import ClearanceChecker
from supple.tasks import Environment, task_named

TASK = task_named("push_shelf_forward")
SAME = {"box_x": (-0.05, 0.05), "box_y": (-0.05, 0.05), "box_yaw": (-np.pi, np.pi)}
SAME |= {"target_x": (3.9, 4.1), "target_y": (-0.1, 0.1)}
PUBLISHED = {
    "D0": SAME | {"x": (1.4, 1.6), "y": (-0.1, 0.1), "yaw": (-0.063, 0.063)},
    "D1": SAME | {"x": (1.2, 1.8), "y": (-0.3, 0.3), "yaw": (-0.19, 0.19)},
}


@pytest.fixture(scope="module")
def environment():
    return Environment(TASK)


def drawn(layout):
    cart, box, target = (xyyaw_of(layout.objects[name]) for name in ("cart", "box", "target"))
    row = {"x": cart[0], "y": cart[1], "yaw": wrap_angle(cart[2] - np.pi)}
    row |= {"box_x": box[0] - cart[0], "box_y": box[1] - cart[1], "box_yaw": box[2]}
    return row | {"target_x": target[0], "target_y": target[1]}


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_samples_fill_the_published_ranges(distribution):
    assert_ranges_filled(TASK, distribution, drawn, PUBLISHED[distribution])


@pytest.mark.parametrize("index", range(4))
def test_the_cart_stands_still_with_the_box_on_it(environment, index):
    layout = TASK.sample("D1", np.random.default_rng([3, index]))
    environment.reset(layout)
    assert ClearanceChecker(environment.world).overlaps(layout.T_world_base, layout.q) == []
    environment.world.step(80)
    for name in ("cart", "box"):
        moved = environment.world.object_pose(name).translation - layout.objects[name].translation
        assert np.abs(moved).max() < 3e-3
    assert environment.world.touching("cart", "box")
    assert not environment.outcome().success


def pushed(environment, force, steps=200):
    """Push the cart in its middle along x for some steps and return how far it went in [m]."""
    layout = TASK.nominal()
    environment.reset(layout)
    world = environment.world
    for _ in range(steps):
        world.push("cart", np.array([force, 0.0, 0.0]), world.object_pose("cart").act(np.array([0.0, 0.0, 0.9])))
        world.step()
    world.push("cart", np.zeros(3), np.zeros(3))
    return float(world.object_pose("cart").translation[0] - layout.objects["cart"].translation[0])


def test_the_cart_weighs_17_kg_and_rolls_against_two_percent_of_its_weight(environment):
    weight = environment.world.model.body_subtreemass[environment.world.body_id("cart")]
    assert weight == pytest.approx(17.4, abs=0.1)
    # Rolling resistance holds it against 2.5 N; 10 N move it, wheels rolling.
    assert pushed(environment, 2.5) < 0.01
    assert 0.1 < pushed(environment, 10.0) < 0.5
    joint = environment.world.model.joint("cart_axle_0")
    turned = abs(float(environment.world.data.qpos[joint.qposadr[0]]))
    assert turned * 0.045 == pytest.approx(float(environment.world.object_pose("cart").translation[0] - 1.5), rel=0.05)


def arrived(environment, *, off=0.29, box=True, tilt=0.0, lean=0.0):
    """Put the cart by hand so far from the target, with the box on it, tilted or not, and the robot leaning or not."""
    layout = TASK.nominal()
    environment.reset(layout)
    world = environment.world
    there = layout.objects["target"].translation + np.array([0.0, off, 0.0])
    cart = pin.SE3(pin.rpy.rpyToMatrix(tilt, 0.0, 0.0), there)
    world.place_object("cart", cart)
    world.place_object("box", cart * pin.SE3(np.eye(3), np.array([0.1, 0.0, 1.165 - 1e-4 + (0.0 if box else 0.01)])))
    base = layout.T_world_base
    world.place_robot(pin.SE3(pin.rpy.rpyToMatrix(0.0, lean, 0.0), base.translation), layout.q)
    world.set_state(world.get_state())
    return {criterion.name: criterion for criterion in TASK.criteria(world)}


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({}, []),
        ({"off": 0.31}, ["target_distance"]),
        ({"box": False}, ["box_on_cart"]),
        ({"tilt": 0.66}, ["cart_upright"]),
        ({"lean": 0.66}, ["upright"]),
    ],
)
def test_pushed_there_means_within_thirty_centimetres_upright_and_with_the_box(environment, change, fails):
    found = arrived(environment, **change)
    assert [name for name, criterion in found.items() if not criterion.holds] == fails
    assert found["target_distance"].value == pytest.approx(change.get("off", 0.29))
