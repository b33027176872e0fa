# SPDX-License-Identifier: Apache-2.0
"""Forces of the simulator: contacts as arrays; wrenches on links that balance, shift, and leave out what is within."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from supple.geometry import pose_from_xyyaw
from supple.robots import g1
from supple.sim.forces import LinkWrenches, contact_forces
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()


@pytest.fixture(scope="module")
def compiled():
    return World(g1_spec(), ROBOT)


@pytest.fixture
def world(compiled):
    """The robot in its home posture, its soles 1 mm in the floor, about to be pressed out of it."""
    compiled.clear()
    compiled.data.xfrc_applied[:] = 0.0
    compiled.place_robot(pose_from_xyyaw(0.3, -0.2, 0.7, 1.0), ROBOT.joints.home)
    mujoco.mj_kinematics(compiled.model, compiled.data)
    above = compiled.link_pose("l_sole").translation[2]
    compiled.place_robot(pose_from_xyyaw(0.3, -0.2, 0.7, 1.0 - above - 0.001), ROBOT.joints.home)
    compiled.set_state(compiled.get_state())
    return compiled


def external(world: World, link: str) -> np.ndarray:
    """Force and moment about the link's origin in the world frame, as MuJoCo's inverse dynamics has them."""
    mujoco.mj_rnePostConstraint(world.model, world.data)
    inside = world.attached_to(link)
    total = world.data.cfrc_ext[inside].sum(axis=0)
    body = world.body_id(link)
    arm = world.data.subtree_com[world.model.body_rootid[body]] - world.data.xpos[body]
    return np.r_[total[3:], total[:3] + np.cross(arm, total[3:])]


def test_contacts_are_those_of_the_world_with_forces_on_the_second_body(world) -> None:
    found, known = contact_forces(world), world.contacts()
    assert len(found) == len(known) > 4
    for i, contact in enumerate(known):
        assert [world.model.body(b).name for b in found.body[i]] == [contact.body1, contact.body2]
        np.testing.assert_array_equal(found.position[i], contact.position)
        np.testing.assert_array_equal(found.frame[i, 0], contact.normal)
        assert found.force[i, 0] == contact.normal_force
        assert np.hypot(*found.force[i, 1:]) == pytest.approx(contact.tangential_force)
        assert found.force_in_world[i] @ contact.normal == pytest.approx(contact.normal_force)


def test_wrenches_are_those_of_mujocos_inverse_dynamics(world) -> None:
    wrenches = LinkWrenches(world).read()
    assert set(wrenches) == set(ROBOT.wrench_frames)
    assert np.linalg.norm(wrenches["l_sole"][:3]) > 10.0
    for name, wrench in wrenches.items():
        pose, frame = world.link_pose(name), ROBOT.frame(name)
        expected = external(world, frame.link)
        force, moment = pose.rotation @ wrench[:3], pose.rotation @ wrench[3:]
        np.testing.assert_allclose(force, expected[:3], atol=1e-9)
        arm = world.object_pose(frame.link).translation - pose.translation
        np.testing.assert_allclose(moment, expected[3:] + np.cross(arm, expected[:3]), atol=1e-9)


def test_a_push_adds_its_force_and_its_moment_about_the_frame(world) -> None:
    before = LinkWrenches(world).read()
    force, point = np.array([3.0, -4.0, 12.0]), world.link_pose("l_wrist").act(np.array([0.1, 0.02, -0.05]))
    world.push("left_wrist_yaw_link", force, point)
    pose, after = world.link_pose("l_wrist"), LinkWrenches(world).read()
    added = after["l_wrist"] - before["l_wrist"]
    np.testing.assert_allclose(pose.rotation @ added[:3], force, atol=1e-12)
    np.testing.assert_allclose(pose.rotation @ added[3:], np.cross(point - pose.translation, force), atol=1e-9)
    np.testing.assert_array_equal(after["r_wrist"], before["r_wrist"])


def test_forces_on_the_feet_and_weight_are_what_changes_the_momentum(world) -> None:
    model, data, reader = world.model, world.data, LinkWrenches(world)
    mass = model.body_mass[world.robot_bodies()].sum()

    def momentum() -> np.ndarray:
        mujoco.mj_subtreeVel(model, data)
        return mass * data.subtree_linvel[world.body_id("pelvis")]

    before, impulse = momentum(), np.zeros(3)
    for _ in range(60):
        world.step(1)
        assert {name for c in world.contacts() for name in (c.body1, c.body2)} <= {
            "world", "left_ankle_roll_link", "right_ankle_roll_link",
        }  # fmt: skip
        # Poses have moved on since the contacts; a force's direction in the world is not changed by that much.
        wrenches = reader.read()
        force = sum(world.link_pose(name).rotation @ wrenches[name][:3] for name in ("l_sole", "r_sole"))
        impulse += model.opt.timestep * (force + mass * model.opt.gravity)
    assert np.linalg.norm(impulse) > 1.0
    np.testing.assert_allclose(momentum() - before, impulse, atol=0.02 * np.linalg.norm(impulse))


def test_what_touches_within_a_link_is_no_external_wrench(world) -> None:
    joints, rng = ROBOT.joints, np.random.default_rng(0)
    fingers = joints.group("left_hand")
    for _ in range(500):
        q = joints.home.copy()
        q[fingers] = rng.uniform(joints.lower[fingers], joints.upper[fingers])
        world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 1.5), q)
        world.set_state(world.get_state())
        if any(c.normal_force > 1.0 for c in world.contacts()):
            break
    contacts = world.contacts()
    assert contacts, "some posture of the hand touches itself"
    assert all("left_" in name for c in contacts for name in (c.body1, c.body2))
    np.testing.assert_allclose(LinkWrenches(world).read()["l_wrist"], 0.0, atol=1e-9)


def test_a_robot_in_the_air_feels_nothing(world) -> None:
    world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 1.5), ROBOT.joints.home)
    world.set_state(world.get_state())
    assert len(contact_forces(world)) == 0
    assert all(np.array_equal(wrench, np.zeros(6)) for wrench in LinkWrenches(world).read().values())
