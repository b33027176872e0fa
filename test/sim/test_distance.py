# SPDX-License-Identifier: Apache-2.0
"""Distances from simple shapes: MuJoCo's own outside, depth below the surface inside, none for other shapes."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from supple.sim.distance import distances_from

TYPE = mujoco.mjtGeom
SHAPES = {
    "sphere": (TYPE.mjGEOM_SPHERE, [0.2, 0, 0]),
    "capsule": (TYPE.mjGEOM_CAPSULE, [0.1, 0.25, 0]),
    "cylinder": (TYPE.mjGEOM_CYLINDER, [0.15, 0.25, 0]),
    "box": (TYPE.mjGEOM_BOX, [0.1, 0.2, 0.3]),
    "plane": (TYPE.mjGEOM_PLANE, [0, 0, 1]),
}
PROBE_RADIUS = 1e-3


@pytest.fixture(scope="module")
def scene():
    spec = mujoco.MjSpec()
    for name, (kind, size) in SHAPES.items():
        body = spec.worldbody.add_body(pos=[0.3, -0.2, 0.5], quat=[0.8, 0.36, 0.48, 0.0])
        if kind == TYPE.mjGEOM_PLANE:
            body = spec.worldbody
        body.add_geom(name=name, type=kind, size=size)
    spec.worldbody.add_geom(name="other", type=TYPE.mjGEOM_ELLIPSOID, size=[0.1, 0.2, 0.3])
    probe = spec.worldbody.add_body(name="probe", mocap=True)
    probe.add_geom(name="probe", type=TYPE.mjGEOM_SPHERE, size=[PROBE_RADIUS, 0, 0])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("name", SHAPES)
def test_outside_it_is_the_distance_that_mujoco_finds_for_a_tiny_ball(scene, name) -> None:
    model, data = scene
    points = np.random.default_rng(0).uniform(-1.0, 1.5, (60, 3))
    geom, probe = model.geom(name).id, model.geom("probe").id
    mine = distances_from(model, data, geom, points)
    compared = 0
    for point, distance in zip(points, mine, strict=True):
        if distance < 0.01:
            continue
        data.mocap_pos[0] = point
        mujoco.mj_kinematics(model, data)
        theirs = mujoco.mj_geomDistance(model, data, geom, probe, 10.0, None) + PROBE_RADIUS
        assert distance == pytest.approx(theirs, abs=2e-5)
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("name", SHAPES)
def test_below_the_surface_it_is_the_depth(scene, name) -> None:
    model, data = scene
    rng, geom = np.random.default_rng(1), model.geom(name).id
    inside = 0
    for local in rng.uniform(-0.3, 0.3, (200, 3)):
        point = data.geom_xpos[geom] + data.geom_xmat[geom].reshape(3, 3) @ local
        (distance,) = distances_from(model, data, geom, point[None])
        if distance >= 0.0:
            continue
        inside += 1
        # A ball that just reaches the surface from inside: nothing within it lies outside, something on it does.
        directions = rng.normal(size=(2000, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        within = distances_from(model, data, geom, point - 0.999 * distance * directions)
        beyond = distances_from(model, data, geom, point - 1.3 * distance * directions)
        assert within.max() < 0.0 < beyond.max()
    assert inside > 5


def test_shapes_without_a_formula_have_none(scene) -> None:
    model, data = scene
    assert distances_from(model, data, model.geom("other").id, np.zeros((1, 3))) is None
    assert distances_from(model, data, -1, np.zeros((1, 3))) is None
