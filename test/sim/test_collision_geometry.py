# SPDX-License-Identifier: Apache-2.0
"""Scene and robot as solids and spheres, against MuJoCo's own distances."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.errors import SceneError, UnknownNameError
from supple.geometry import pose_from_xyyaw
from supple.kinematics.collision import CollisionModel
from supple.kinematics.collision_spheres import link_spheres
from supple.robots.g1 import ARM_GROUPS
from supple.sim.collision_geometry import robot_solids, scene_solids
from supple.sim.g1_model import g1_spec
from supple.sim.world import World
from supple.tasks import Environment, task_named

TASK = task_named("box_lift")
JOINTS = TASK.robot.joints


@pytest.fixture(scope="module")
def world():
    environment = Environment(TASK)
    environment.reset(TASK.nominal())
    return environment.world


@pytest.fixture(scope="module")
def collisions(world):
    return CollisionModel(TASK.robot, link_spheres(robot_solids(world)))


def solid_geoms(model, bodies):
    touching = (model.geom_contype | model.geom_conaffinity) != 0
    return np.flatnonzero(bodies[model.geom_bodyid] & touching).tolist()


def test_every_solid_of_the_scene_stands_where_mujoco_has_it(world):
    solids = scene_solids(world)
    names = [solid.body for solid in solids.solids]
    assert set(names) == {"floor", "table", "box"}
    assert names.count("table") == 6
    assert "box" not in [solid.body for solid in scene_solids(world, ignore=["box"]).solids]
    with pytest.raises(UnknownNameError, match="bodx"):
        scene_solids(world, ignore=["bodx"])
    top = solids.distances(np.array([[*world.object_pose("table").translation[:2], 0.85]]))
    table = [i for i, name in enumerate(names) if name == "table"]
    assert top[table].min() == pytest.approx(0.05, abs=1e-6)


def test_spheres_are_as_far_from_the_scene_as_mujoco_s_shapes_less_the_inflation(world, collisions):
    model, data = world.model, mujoco.MjData(world.model)
    data.qpos[:] = world.data.qpos
    robot = world.robot_bodies()
    mine, theirs = solid_geoms(model, robot), solid_geoms(model, ~robot)
    solids = scene_solids(world, ignore=[])
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(12):
        q = JOINTS.home.copy()
        arms = JOINTS.group(*ARM_GROUPS)
        q[arms] += rng.uniform(-0.8, 0.8, len(arms))
        q = np.clip(q, JOINTS.lower, JOINTS.upper)
        base = pose_from_xyyaw(rng.uniform(1.0, 1.5), rng.uniform(-0.3, 0.3), rng.uniform(-0.5, 0.5), 0.765)
        world.write_robot(data, base, q)
        mujoco.mj_kinematics(model, data)
        distances = collisions.at(base, q, solids)
        for index, link in enumerate(collisions.spheres.links):
            body = world.body_id(link)
            geoms = [geom for geom in mine if model.geom_bodyid[geom] == body]
            for other in ("table", "box"):
                others = [geom for geom in theirs if model.geom_bodyid[geom] == world.body_id(other)]
                exact = min(mujoco.mj_geomDistance(model, data, a, b, 1.0, None) for a in geoms for b in others)
                rows = [i for i, solid in enumerate(solids.solids) if solid.body == other]
                found = distances.scene[np.ix_(rows, collisions.spheres.link == index)].min()
                # Penetration depths differ by definition; what matters is that both see one.
                if exact > 0.0:
                    compared += 1
                    assert exact - 0.016 < found < exact + 0.004, (link, other)
                elif exact < -0.004:
                    assert found < 0.0, (link, other)
    assert compared > 300


def test_what_the_spheres_pass_mujoco_passes_and_what_is_far_apart_the_spheres_pass(world, collisions):
    """Self-collision, over all links that either of both can see touching."""
    model, data = world.model, mujoco.MjData(world.model)
    spheres = collisions.spheres
    rng = np.random.default_rng(1)
    arms = JOINTS.group("waist", *ARM_GROUPS)
    seen = {True: 0, False: 0}
    mine = solid_geoms(model, world.robot_bodies())
    geoms_of = [[g for g in mine if model.geom_bodyid[g] == world.body_id(link)] for link in spheres.links]
    pairs = {tuple(sorted(spheres.link[[i, j]])) for i, j in np.argwhere(np.triu(collisions.meets)).tolist()}
    solids = scene_solids(World(g1_spec(), TASK.robot))
    for _ in range(30):
        q = JOINTS.home.copy()
        q[arms] = np.clip(q[arms] + rng.uniform(-1.0, 1.0, len(arms)), JOINTS.lower[arms], JOINTS.upper[arms])
        world.write_robot(data, pose_from_xyyaw(0.0, 0.0, 0.0, 0.765), q)
        mujoco.mj_kinematics(model, data)
        nearest = collisions.nearest_own(collisions.at(pose_from_xyyaw(0.0, 0.0, 0.0, 0.765), q, solids))
        exact = np.inf
        for first, second in pairs:
            geoms = geoms_of[first], geoms_of[second]
            exact = min(
                exact, *(mujoco.mj_geomDistance(model, data, a, b, 0.1, None) for a in geoms[0] for b in geoms[1])
            )
        free = nearest.distance >= 0.0
        seen[free] += 1
        if free:
            assert exact > -0.003
        else:
            assert exact < 0.02, nearest
    assert min(seen.values()) > 5


def test_a_mesh_is_covered_by_spheres_and_a_shape_without_formula_is_named():
    spec = g1_spec()
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.05, 0.05) for z in (-0.03, 0.03)])
    spec.add_mesh(name="brick", uservert=corners.ravel())
    body = spec.worldbody.add_body(name="stone", pos=[1.0, 0.0, 0.5])
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="brick", name="brick")
    world = World(spec, TASK.robot)
    mujoco.mj_kinematics(world.model, world.data)
    solids = scene_solids(world)
    stone = np.array([solid.body == "stone" for solid in solids.solids])
    points = np.random.default_rng(0).uniform(-0.25, 0.25, (200, 3))
    exact = np.linalg.norm(np.maximum(np.abs(points) - [0.1, 0.05, 0.03], 0.0), axis=1)
    found = solids.distances(points + np.array([1.0, 0.0, 0.5]))[stone].min(axis=0)
    outside = exact > 0.0
    assert (found[outside] < exact[outside] + 0.004).all()
    assert (found[outside] > exact[outside] - 0.015).all()
    spec = g1_spec()
    egg = spec.worldbody.add_body(name="egg")
    egg.add_geom(name="shell", type=mujoco.mjtGeom.mjGEOM_ELLIPSOID, size=[0.1, 0.1, 0.2])
    with pytest.raises(SceneError, match="geom 'shell' of 'egg'"):
        scene_solids(World(spec, TASK.robot))


def test_fingers_and_links_are_posed_in_their_own_frames(world):
    """Put together with the links' poses, the solids lie where MuJoCo has the geoms."""
    model, data = world.model, world.data
    for link, solids in robot_solids(world).items():
        geoms = [g for g in solid_geoms(model, world.robot_bodies()) if model.geom_bodyid[g] == world.body_id(link)]
        for geom, solid in zip(geoms, solids, strict=True):
            placed = world.object_pose(link) * solid.pose
            expected = pin.SE3(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
            np.testing.assert_allclose(placed.homogeneous, expected.homogeneous, atol=1e-6)
