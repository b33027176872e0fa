# SPDX-License-Identifier: Apache-2.0
"""The standing controller on the simulated robot: heights, pushes, loads, hands, rest; what it refuses."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.control.standing import HEIGHT_RANGE, StandingController
from supple.errors import JointError, SettingError, StateError, UnknownNameError
from supple.geometry import pose_error, pose_from_xyyaw, xyyaw_of
from supple.robots import PerfectBody, g1
from supple.robots.dex3 import PALM_CENTRE
from supple.sim.body import SimBody
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
JOINTS = ROBOT.joints
DT = ROBOT.contract.control_interval
FEET = ("left_ankle_roll_link", "right_ankle_roll_link")


def posture(pitch, roll, elbow):
    q = JOINTS.home.copy()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        q[JOINTS.group(f"{side}_arm")] = [pitch, sign * roll, 0.0, elbow, 0.0, 0.0, 0.0]
    return q


CLEAR = posture(-0.3, 0.4, 0.1)


class Stand:
    """The robot in a world, driven by the standing controller alone."""

    def __init__(self, world, q, controller=None):
        self.world = world
        world.clear()
        world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height), q)
        world.set_state(world.get_state())
        self.body = SimBody(world, DT)
        self.body.reset()
        self.controller = controller or StandingController(ROBOT)
        self.controller.set_posture(q)

    def feet(self):
        return np.array([self.world.object_pose(name).translation for name in FEET])

    def run(self, seconds, force=None):
        """Let time pass, with a force on the torso if given; return the largest tilt of a sole in [rad]."""
        tilt = 0.0
        for _ in range(round(seconds / DT)):
            if force is not None:
                torso = self.world.object_pose("torso_link").translation
                self.world.push("torso_link", np.asarray(force), torso + np.array([0.0, 0.0, 0.15]))
            self.body.write(self.controller.step(self.body.read(), DT))
            tilt = max(tilt, self.controller.support.foot_tilt)
        self.world.data.xfrc_applied[:] = 0.0
        return tilt

    @property
    def height(self):
        return self.controller.look(self.body.read()).height

    @property
    def upright(self):
        return self.world.object_pose(ROBOT.base_link).rotation[2, 2]


@pytest.fixture(scope="module")
def world():
    return World(g1_spec(), ROBOT)


@pytest.fixture(scope="module")
def shared():
    return StandingController(ROBOT)


@pytest.fixture(scope="module")
def settled(world, shared):
    """The physics state of a robot that stands with its arms clear of its thighs."""
    shared.reset()
    Stand(world, CLEAR, shared).run(1.5)
    return world.get_state()


@pytest.fixture
def stand(world, shared, settled):
    shared.reset()
    result = Stand(world, CLEAR, shared)
    world.set_state(settled)
    return result


def test_it_squats_to_the_lowest_height_and_rises_again_on_flat_feet(stand):
    low, high = HEIGHT_RANGE
    stand.controller.set_height(high)
    stand.run(1.0)
    feet = stand.feet()
    for height, seconds in ((low, 3.5), (high, 3.5)):
        stand.controller.set_height(height)
        assert np.degrees(stand.run(seconds)) < 0.5
        assert stand.height == pytest.approx(height, abs=0.003)
        assert np.abs(stand.controller.support.com).max() < 0.005
        assert stand.controller.settled
        assert np.linalg.norm((stand.feet() - feet)[:, :2], axis=1).max() < 0.003
    assert stand.controller.unsolved == 0


@pytest.mark.parametrize("angle", [0.0, 90.0, 180.0, 270.0])
def test_a_push_of_40_newtons_from_any_side_does_not_throw_it(stand, angle):
    stand.controller.set_height(ROBOT.standing_height)
    direction = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0.0])
    stand.run(0.2, force=40.0 * direction)
    stand.run(2.0)
    assert stand.upright > 0.99
    assert np.abs(stand.controller.support.com).max() < 0.01
    assert stand.controller.support.foot_tilt < 0.01


def test_a_hand_held_load_is_found_and_carried_at_arm_s_length():
    spec = g1_spec()
    load = spec.body("left_wrist_yaw_link").add_body(name="load", pos=[PALM_CENTRE[0], 0.0, 0.0])
    load.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.03, 0, 0], mass=2.0, contype=0, conaffinity=0)
    stand = Stand(World(spec, ROBOT), posture(-0.9, 0.15, 0.9))
    stand.run(3.0)
    before = stand.world.link_pose("l_gripper")
    stand.controller.set_hand("left_hand", before)
    stand.controller.set_height(0.68)
    stand.run(4.0)
    support = stand.controller.support
    reach = support.T_world_support.actInv(stand.world.link_pose("l_gripper")).translation
    assert reach[0] > 0.35
    assert -stand.controller.loads["l_wrist"][2] == pytest.approx(2.0 * 9.81, abs=1.0)
    assert np.abs(stand.controller.loads["r_wrist"][:3]).max() < 1.0
    # The centre of mass went back and to the other side, by the moment of the load.
    assert support.com[0] < -0.01
    assert support.com[1] < -0.003
    assert stand.height == pytest.approx(0.68, abs=0.01)
    assert pose_error(before, stand.world.link_pose("l_gripper"))[0] < 0.01
    assert stand.upright > 0.98


def test_it_stands_without_drifting(stand):
    stand.controller.set_height(0.6)
    stand.run(2.5)
    before, feet = stand.body.read().T_world_base, stand.feet()
    stand.run(8.0)
    after = stand.body.read().T_world_base
    np.testing.assert_allclose(after.translation, before.translation, atol=1e-3)
    np.testing.assert_allclose(xyyaw_of(after), xyyaw_of(before), atol=2e-3)
    np.testing.assert_allclose(stand.feet(), feet, atol=5e-4)


def test_orientation_and_centre_of_mass_go_where_they_are_told(stand):
    wanted = pin.rpy.rpyToMatrix(0.0, 0.1, 0.15)
    stand.controller.set_height(0.7)
    stand.controller.set_base_rotation(wanted)
    stand.controller.set_com([0.02, -0.03])
    stand.run(3.0)
    support = stand.controller.support
    np.testing.assert_allclose(support.com, [0.02, -0.03], atol=0.004)
    assert np.linalg.norm(pin.log3(support.base_rotation.T @ wanted)) < 0.04


def test_hands_stay_where_they_are_in_the_world_while_the_base_goes_down(stand):
    targets = {f"{side}_hand": stand.world.link_pose(f"{side[0]}_gripper") for side in ("left", "right")}
    for name, pose in targets.items():
        stand.controller.set_hand(name, pose)
    stand.controller.set_height(0.65)
    stand.run(3.0)
    for name, pose in targets.items():
        distance, angle = pose_error(stand.world.link_pose(f"{name[0]}_gripper"), pose)
        assert distance < 0.006
        assert angle < 0.05
        stand.controller.set_hand(name, None)
    stand.run(1.5)
    arms = JOINTS.group("left_arm", "right_arm")
    np.testing.assert_allclose(stand.body.read().q[arms], CLEAR[arms], atol=0.05)


def test_a_squat_waits_for_a_hand_that_is_in_the_way(world, shared):
    """With hanging arms the thumbs would meet the thighs."""
    shared.reset()
    stand = Stand(world, JOINTS.home, shared)
    stand.run(0.5)
    stand.controller.set_height(0.45)
    stand.run(3.0)
    assert stand.height > 0.55
    assert "thigh" in stand.controller.obstruction
    assert not world.touching("left_hip_roll_link", "left_wrist_yaw_link")
    assert stand.upright > 0.95
    stand.controller.set_posture(CLEAR)
    stand.run(4.0)
    assert stand.height == pytest.approx(0.45, abs=0.003)
    assert stand.controller.obstruction is None


def test_it_begins_with_what_the_robot_does(stand):
    """After a reset nothing is wanted: the command holds the stance, with torques like those that act already."""
    state = stand.body.read()
    stand.controller.reset()
    command = stand.controller.step(state, DT)
    command.check(JOINTS)
    assert command.source == "standing"
    np.testing.assert_array_equal(np.flatnonzero(command.active), stand.controller.table)
    legs = JOINTS.group("left_leg", "right_leg")
    torque = command.tau + command.kp * (command.q - state.q) + command.kd * (command.v - state.v)
    np.testing.assert_allclose(torque[legs], state.effort[legs], atol=4.0)


def test_a_reset_makes_the_controller_as_new(world, shared):
    def episode(controller):
        controller.reset()
        stand = Stand(world, CLEAR, controller)
        stand.controller.set_height(0.6)
        stand.run(0.6)
        return world.get_state()

    first = episode(shared)
    np.testing.assert_array_equal(episode(shared), first)
    np.testing.assert_array_equal(episode(StandingController(ROBOT)), first)


def test_what_cannot_be_is_refused_in_words(shared):
    shared.reset()
    for height in (0.2, 0.9, np.nan):
        with pytest.raises(SettingError, match=r"0\.35 to 0\.78 m, got"):
            shared.set_height(height)
    with pytest.raises(JointError, match="43 finite joint positions"):
        shared.set_posture(np.zeros(29))
    with pytest.raises(StateError, match="centre of mass"):
        shared.set_com([0.0, np.inf])
    with pytest.raises(StateError, match="rotation matrix"):
        shared.set_base_rotation(2.0 * np.eye(3))
    with pytest.raises(UnknownNameError, match="left_hand"):
        shared.set_hand("left_foot", pin.SE3.Identity())
    state = PerfectBody(JOINTS).read()
    with pytest.raises(StateError, match="not finite"):
        shared.step(replace(state, q=np.full(len(JOINTS), np.nan)), DT)
