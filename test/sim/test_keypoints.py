# SPDX-License-Identifier: Apache-2.0
"""Keypoints of the hands lie where the simulated hands have their tips and joints."""

from __future__ import annotations

import numpy as np
import pytest

from supple.errors import UnknownNameError
from supple.robots import g1
from supple.robots.keypoints import gripper_keypoints
from supple.tasks import Environment, task_named


@pytest.fixture(scope="module")
def world():
    environment = Environment(task_named("box_lift"))
    environment.reset(task_named("box_lift").nominal())
    return environment.world


def position(world, point) -> np.ndarray:
    frames = world.robot.frames
    pose = world.link_pose(point.frame) if point.frame in frames else world.object_pose(point.frame)
    return pose.act(point.offset)


@pytest.mark.parametrize("side", ["left", "right"])
def test_tips_are_the_ends_of_the_fingers(world, side):
    points = {point.name: position(world, point) for point in gripper_keypoints(world.robot, f"{side}_hand")}
    assert len(points) == 9
    for tip, shape in (("thumb_tip", "thumb_2"), ("middle_tip", "middle_1"), ("index_tip", "index_1")):
        geom = world.data.geom(f"{side}_{shape}")
        radius, half = world.model.geom(f"{side}_{shape}").size[:2]
        axis = geom.xmat.reshape(3, 3)[:, 2]
        ends = [geom.xpos + sign * (half + radius) * axis for sign in (-1.0, 1.0)]
        link = world.object_pose(f"{side}_hand_{shape}_link").translation
        outer = max(ends, key=lambda end: np.linalg.norm(end - link))
        np.testing.assert_allclose(points[tip], outer, atol=1e-6)
    palm = world.data.geom(f"{side}_palm").xpos
    assert np.linalg.norm(points["palm"] - palm) < 0.1
    assert len({tuple(np.round(point, 4)) for point in points.values()}) == 9


def test_a_hand_that_the_robot_does_not_have_is_refused():
    with pytest.raises(UnknownNameError, match="left_hand"):
        gripper_keypoints(g1(), "third_hand")
