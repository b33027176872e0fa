# SPDX-License-Identifier: Apache-2.0
"""The tree of frames: each link once, composed along the tree it is where forward kinematics puts it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.kinematics.model import KinematicModel
from supple.kinematics.transforms import TransformTree, base_transforms
from supple.robots import robot_named


@pytest.fixture(scope="module")
def tree() -> TransformTree:
    return TransformTree(robot_named("g1"))


def test_composed_along_the_tree_every_frame_is_where_kinematics_puts_it(tree: TransformTree) -> None:
    robot = robot_named("g1")
    model = KinematicModel(robot)
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = rng.uniform(robot.joints.lower, robot.joints.upper)
        moving = tree.moving(q)
        assert len(moving) == len(robot.joints)
        assert not moving.keys() & tree.fixed.keys()
        parents = {child: (parent, pose) for (parent, child), pose in {**tree.fixed, **moving}.items()}
        assert len(parents) == len(moving) + len(tree.fixed)
        configuration = model.configuration(pin.SE3.Identity(), q)
        names = [frame.name for frame in model.model.frames if frame.name in parents]
        assert {"l_gripper", "r_sole", "left_hand_thumb_2_link", "camera_link", "pelvis"} <= set(names)
        for name, expected in zip(names, model.frame_poses(configuration, *names), strict=True):
            pose, frame = pin.SE3.Identity(), name
            while frame in parents:
                frame, step = parents[frame]
                pose = step * pose
            assert frame == "base_link"
            np.testing.assert_allclose(pose.homogeneous, expected.homogeneous, atol=1e-9, err_msg=name)


def test_footprint_is_on_the_floor_below_the_base_with_its_heading() -> None:
    base = pose_from_xyyaw(1.0, -2.0, 0.7, 0.6) * pin.SE3(pin.rpy.rpyToMatrix(0.2, -0.3, 0.0), np.zeros(3))
    transforms = base_transforms(base)
    assert transforms["odom", "base_link"] == base
    footprint = base * transforms["base_link", "base_footprint"]
    np.testing.assert_allclose(xyyaw_of(footprint), xyyaw_of(base), atol=1e-12)
    np.testing.assert_allclose(footprint.rotation[:, 2], [0.0, 0.0, 1.0], atol=1e-12)
    assert footprint.translation[2] == pytest.approx(0.0, abs=1e-12)
