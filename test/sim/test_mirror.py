# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from supple.robots import RobotCommand
from supple.sim.mirror import Mirror
from supple.tasks import Environment, task_named


@pytest.fixture(scope="module")
def pair():
    """A simulated scene in motion (the robot falls, the box slides) and the mirror that is to show it."""
    task = task_named("box_lift")
    environment = Environment(task)
    environment.reset(task.sample("D1", np.random.default_rng(3)))
    joints = task.robot.joints
    for _ in range(25):
        environment.body.write(RobotCommand.damping(joints, "test"))
    world = environment.world
    world.push("box", np.array([6.0, 2.0, 8.0]), world.object_pose("box").translation + np.array([0.05, 0.0, 0.1]))
    for _ in range(5):
        environment.body.write(RobotCommand.damping(joints, "test"))
    other = Environment(task)
    other.reset(task.nominal())
    return environment, other


def shown(pair):
    environment, other = pair
    world, mirror = environment.world, Mirror(other.world)
    poses = environment.object_poses()
    mirror.show(world.robot_state(), poses, {name: world.object_twist(name) for name in poses})
    return world, other.world, mirror


def test_the_whole_physics_state_is_rebuilt_from_measurements(pair):
    world, copy, _ = shown(pair)
    assert np.abs(world.robot_state().v).max() > 0.1
    assert np.linalg.norm(world.object_twist("box")[3:]) > 0.05
    assert np.allclose(copy.get_state(), world.get_state(), atol=1e-9)
    assert copy.model_hash == world.model_hash


def test_frames_and_contacts_follow(pair):
    world, copy, _ = shown(pair)
    for frame in ("l_gripper", "r_wrist", "camera_link"):
        assert copy.link_pose(frame).isApprox(world.link_pose(frame), 1e-6)
    assert copy.object_pose("table").isApprox(world.object_pose("table"), 1e-9)
    assert copy.touching("box", "table") == world.touching("box", "table")


def test_forces_of_contact_points_are_summed_by_pair(pair):
    _, _, mirror = shown(pair)
    points = [
        ("left_wrist_yaw_link", "box", 2.0, 0.5),
        ("box", "left_hand_thumb_2_link", 3.0, 0.25),
        ("right_wrist_yaw_link", "box", 7.0, 1.0),
        ("box", "table", 11.0, 0.0),
        ("world", "left_ankle_roll_link", 100.0, 9.0),
    ]
    forces = mirror.pair_forces(points, [("left_wrist_yaw_link", "box"), ("table", "box"), ("table", "pelvis")])
    assert forces == {"left_wrist_yaw_link/box": (5.0, 0.75), "table/box": (11.0, 0.0), "table/pelvis": (0.0, 0.0)}
