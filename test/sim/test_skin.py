# SPDX-License-Identifier: Apache-2.0
"""The skin: forces are kept, patches are where things touch, backs of fingers feel nothing, physics stays as it was."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from supple.errors import SensorError
from supple.geometry import pose_from_xyyaw
from supple.robots import g1
from supple.sim.g1_model import g1_spec
from supple.sim.skin import SKIN_STIFFNESS, TactileSkin, indentation
from supple.sim.world import World

ROBOT = g1()
PADS = ROBOT.pads
BALL, PLATE = 0.006, (0.15, 0.15, 0.01)
TYPE = mujoco.mjtGeom
FAR = {"ball": 5.0, "plate": 6.0, "block": 7.0}


def scene() -> mujoco.MjSpec:
    spec = g1_spec()
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.02
    spec.add_mesh(name="block", uservert=corners.ravel().tolist())
    for name, shape in (
        ("ball", {"type": TYPE.mjGEOM_SPHERE, "size": [BALL, 0, 0]}),
        ("plate", {"type": TYPE.mjGEOM_BOX, "size": PLATE}),
        ("block", {"type": TYPE.mjGEOM_MESH, "meshname": "block"}),
    ):
        body = spec.worldbody.add_body(name=name, pos=[FAR[name], 0.0, 1.0])
        body.add_freejoint(name=f"{name}_joint")
        body.add_geom(name=f"{name}_shape", mass=0.5, **shape)
    return spec


@pytest.fixture(scope="module")
def compiled():
    return World(scene(), ROBOT)


@pytest.fixture
def world(compiled):
    """The robot in the air, hands open, everything else far away."""
    compiled.clear()
    compiled.place_robot(pose_from_xyyaw(0.2, -0.3, 0.4, 1.5), ROBOT.joints.home)
    mujoco.mj_kinematics(compiled.model, compiled.data)
    return compiled


@pytest.fixture
def skin(world):
    return TactileSkin(world)


def put(world: World, name: str, pose: pin.SE3, velocity=(0.0, 0.0, 0.0)) -> None:
    """Put an object somewhere, moving, with all forces of contact known."""
    world.place_object(name, pose)
    adr = world.model.joint(f"{name}_joint").dofadr[0]
    world.data.qvel[adr : adr + 3] = velocity
    world.set_state(world.get_state())


def at_taxel(world: World, pad: str, taxel: int, height: float) -> pin.SE3:
    """Pose at a height above a taxel's middle, z along its normal."""
    grid, link = PADS[pad].taxels(), world.object_pose(PADS[pad].link)
    normal = grid.normal[taxel]
    side = np.cross(normal, [0.0, 0.0, 1.0] if abs(normal[2]) < 0.9 else [1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    rotation = np.column_stack([side, np.cross(normal, side), normal])
    return link * pin.SE3(rotation, grid.position[taxel] + height * normal)


def pushed(world: World, name: str) -> float:
    """Sum of normal forces that an object exerts, as the world tells."""
    return sum(c.normal_force for c in world.contacts() if name in (c.body1, c.body2))


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("taxel", [0, 4, 7, 11])
def test_a_ball_is_felt_where_it_presses_with_its_whole_force(world, skin, pad, taxel) -> None:
    put(world, "ball", at_taxel(world, pad, taxel, BALL - 0.0005))
    touch = skin.touches()[pad]
    assert pushed(world, "ball") > 0.1
    assert touch.normal_force == pytest.approx(pushed(world, "ball"), rel=0.02)
    assert int(np.argmax(touch.pressure)) == taxel
    assert touch.bodies == ("ball",)
    np.testing.assert_allclose(touch.pressure @ skin.layouts[pad].area, touch.normal_force)
    # The skin spreads it a little, so that a load between two taxels is told from one on either.
    assert 0.3 < touch.pressure.max() * skin.layouts[pad].area[taxel] / touch.normal_force < 0.999
    np.testing.assert_allclose(skin.pressure()[skin.at[pad]], touch.pressure)


@pytest.mark.parametrize("pad", ["left_index_1", "right_thumb_1", "left_middle_0"])
def test_the_back_of_a_finger_feels_nothing(world, skin, pad) -> None:
    grid, link = PADS[pad].taxels(), world.object_pose(PADS[pad].link)
    radius, normal = PADS[pad].patch.capsule.radius, grid.normal[4]
    put(world, "ball", link * pin.SE3(np.eye(3), grid.position[4] - (2.0 * radius + BALL - 0.0005) * normal))
    assert pushed(world, "ball") > 0.1
    assert not skin.pressure().any()
    assert all(touch.bodies == () and math.isnan(touch.slip_speed) for touch in skin.touches().values())


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_plate_presses_evenly_on_all_of_a_flat_palm(world, skin, side) -> None:
    fingers = ROBOT.joints.group(f"{side}_hand")
    q = ROBOT.joints.home.copy()
    q[fingers] = ROBOT.effector(f"{side}_hand").postures["open"]
    world.place_robot(pose_from_xyyaw(0.2, -0.3, 0.4, 1.5), q)
    mujoco.mj_kinematics(world.model, world.data)
    # Beside the thumb, which stands out of the palm: the plate's edge runs along it.
    pad = f"{side}_palm_2"
    pose = at_taxel(world, pad, 4, PLATE[2] - 0.0005)
    palm = world.object_pose(PADS[pad].link)
    shift = palm.rotation @ np.array([0.0, 0.0, PLATE[0] - 0.008])
    put(world, "plate", pin.SE3(pose.rotation, pose.translation + shift))
    touching = {name for c in world.contacts() for name in (c.body1, c.body2)}
    assert touching >= {"plate", PADS[pad].link}
    load = sum(c.normal_force for c in world.contacts() if {c.body1, c.body2} == {"plate", PADS[pad].link})
    touches = skin.touches()
    assert sum(touches[f"{side}_palm_{i}"].normal_force for i in range(3)) == pytest.approx(load)
    covered = touches[pad].pressure[np.arange(12) % 3 == (2 if side == "left" else 0)]
    assert covered.min() > 0.0
    assert covered.max() < 2.0 * covered.min()


def test_what_slides_is_told_with_its_speed_and_friction(world, skin) -> None:
    pad, speed = "left_palm_0", 0.03
    pose = at_taxel(world, pad, 4, BALL - 0.0005)
    put(world, "ball", pose, speed * pose.rotation[:, 0] - 0.05 * pose.rotation[:, 2])
    touch, (contact,) = skin.touches()[pad], [c for c in world.contacts() if "ball" in (c.body1, c.body2)]
    assert touch.slip_speed == pytest.approx(speed, rel=1e-3)
    assert touch.tangential_force == pytest.approx(contact.tangential_force, rel=1e-9)
    assert touch.tangential_force > 0.05


def test_what_moves_with_the_robot_does_not_slide(world, skin) -> None:
    pad, twist = "left_index_1", np.array([0.3, -0.2, 0.1, 0.0, 0.0, 0.0])
    (base,) = world.model.body(ROBOT.base_link).dofadr
    world.data.qvel[base : base + 6] = twist
    put(world, "ball", at_taxel(world, pad, 7, BALL - 0.0005), twist[:3])
    assert skin.touches()[pad].slip_speed == pytest.approx(0.0, abs=1e-6)


def test_a_shape_without_a_formula_is_felt_near_its_points_of_contact(world, skin) -> None:
    pad = "left_palm_2"
    beside_the_thumb = world.object_pose(PADS[pad].link).rotation @ np.array([0.0, 0.0, 0.012])
    pose = at_taxel(world, pad, 4, 0.02 - 0.0005)
    put(world, "block", pin.SE3(pose.rotation, pose.translation + beside_the_thumb))
    assert len(world.contacts()) > 2
    touches = skin.touches()
    felt = sum(touches[f"left_palm_{i}"].normal_force for i in range(3))
    assert felt == pytest.approx(pushed(world, "block"), rel=1e-6)
    assert felt > 0.1
    layout = skin.layouts[pad]
    centre = (touches[pad].pressure * layout.area) @ layout.position / touches[pad].normal_force
    assert np.linalg.norm(centre - layout.position[4]) < 0.02


def test_looking_does_not_change_physics_by_a_bit(world) -> None:
    put(world, "ball", at_taxel(world, "left_index_1", 4, BALL - 0.0005))
    state, ends = world.get_state(), []
    for look in (False, True):
        world.set_state(state)
        for _ in range(20):
            world.step(1)
            if look:
                TactileSkin(world).touches()
        ends.append(world.get_state())
    np.testing.assert_array_equal(*ends)


def test_a_pad_on_a_shape_of_another_link_is_refused(world) -> None:
    wrong = replace(PADS["left_index_1"], shape="left_palm")
    robot = replace(ROBOT, pads={"left_index_1": wrong})
    with pytest.raises(SensorError, match="shape 'left_palm' is no part of link 'left_hand_index_1_link'"):
        TactileSkin(World(scene(), robot))


gaps = arrays(np.float64, 30, elements=st.floats(-0.01, 0.01))
areas = arrays(np.float64, 30, elements=st.floats(1e-7, 1e-4))


@given(gap=gaps, area=areas, load=st.floats(1e-12, 1e-6))
def test_the_springs_that_are_reached_carry_the_load_to_one_depth(gap, area, load) -> None:
    depth = indentation(gap, area, load)
    assert depth @ area == pytest.approx(load, rel=1e-6)
    reached = depth > 0.0
    surface = depth[reached] + gap[reached]
    np.testing.assert_allclose(surface, surface[0], atol=1e-9)
    assert (gap[~reached] >= surface[0] - 1e-9).all()


@given(gap=gaps, area=areas, load=st.floats(1e-12, 1e-6), shift=st.floats(-0.01, 0.01))
def test_only_differences_of_gaps_count(gap, area, load, shift) -> None:
    np.testing.assert_allclose(indentation(gap + shift, area, load), indentation(gap, area, load), atol=1e-9)


@pytest.mark.parametrize("force", [1.0, 5.0, 20.0])
def test_a_ball_on_a_plane_sinks_in_as_deep_as_theory_says(force) -> None:
    # Winkler: F = pi K R d^2 for a ball of radius R on springs of stiffness K per area.
    radius, step = 0.009, 1e-4
    x, y = np.meshgrid(np.arange(-0.008, 0.008, step), np.arange(-0.008, 0.008, step))
    gap = ((x**2 + y**2) / (2.0 * radius)).ravel()
    depth = indentation(gap, np.full(gap.shape, step**2), force / SKIN_STIFFNESS)
    assert depth.max() == pytest.approx(math.sqrt(force / (math.pi * SKIN_STIFFNESS * radius)), rel=0.01)
