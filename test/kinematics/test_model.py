# SPDX-License-Identifier: Apache-2.0
"""Kinematic model and static balance on configurations whose answer is known."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import UnknownNameError
from supple.geometry import pose_from_xyyaw
from supple.kinematics.balance import support_margin
from supple.kinematics.model import KinematicModel
from supple.robots import g1

ROBOT = g1()
STANDING = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)


@pytest.fixture(scope="module")
def model():
    return KinematicModel(ROBOT)


def test_left_and_right_are_mirror_images(model):
    configuration = model.configuration(STANDING, ROBOT.joints.home)
    mirror = np.array([1.0, -1.0, 1.0])
    for name in ("wrist", "gripper", "sole"):
        left, right = model.frame_poses(configuration, f"l_{name}", f"r_{name}")
        np.testing.assert_allclose(left.translation * mirror, right.translation, atol=1e-5)
        assert left.translation[1] > 0.05
    assert model.center_of_mass(configuration)[1] == pytest.approx(0.0, abs=2e-3)


def test_soles_are_on_the_floor_when_standing(model):
    for pose in model.frame_poses(model.configuration(STANDING, ROBOT.joints.home), "l_sole", "r_sole"):
        assert pose.translation[2] == pytest.approx(0.0, abs=0.02)
        assert pose.rotation[2, 2] > 0.999


def test_an_unknown_frame_is_named(model):
    with pytest.raises(UnknownNameError, match="did you mean 'l_wrist'"):
        model.frame_poses(pin.neutral(model.model), "l_wrst")


def test_returned_poses_are_copies(model):
    configuration = model.configuration(STANDING, ROBOT.joints.home)
    pose = model.frame_poses(configuration, "l_wrist")[0]
    before = pose.translation.copy()
    model.frame_poses(model.configuration(STANDING, ROBOT.joints.lower), "l_wrist")
    np.testing.assert_array_equal(pose.translation, before)


def leaning(ankle):
    """Turn the whole robot about its ankles while the feet stay flat."""
    q = ROBOT.joints.home.copy()
    for side in ("left", "right"):
        q[ROBOT.joints.index(f"{side}_ankle_pitch_joint")] += ankle
    model = KinematicModel(ROBOT)
    # The base turns by as much the other way, so that the soles stay level.
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.0, -ankle, 0.0), STANDING.translation)
    return model, model.configuration(turned, q)


def test_a_standing_robot_balances_and_a_leaning_one_does_not():
    model, upright = leaning(0.0)
    assert 0.0 < support_margin(model, upright) < 0.083
    margins = []
    for ankle in (0.3, -0.3):
        model, configuration = leaning(ankle)
        sole = model.frame_poses(configuration, "l_sole")[0]
        assert sole.rotation[2, 2] == pytest.approx(1.0, abs=1e-3)
        margins.append(support_margin(model, configuration))
    assert margins[0] < 0.0
    assert margins[1] < 0.0


def test_the_margin_is_the_distance_to_the_nearest_edge(model):
    """On flat, parallel soles the support's front edge is known; lifting an arm forward moves the mass towards it."""
    q = ROBOT.joints.home
    configuration = model.configuration(STANDING, q)
    sole = model.frame_poses(configuration, "l_sole")[0]
    com = model.center_of_mass(configuration)
    level = sole.translation[0] - 0.044 * sole.rotation[0, 0], sole.translation[0] + 0.122 * sole.rotation[0, 0]
    expected = min(com[0] - level[0], level[1] - com[0])
    assert support_margin(model, configuration) == pytest.approx(expected, abs=2e-3)
    raised = q.copy()
    raised[ROBOT.joints.indices(["left_shoulder_pitch_joint", "right_shoulder_pitch_joint"])] = -1.5
    raised[ROBOT.joints.indices(["left_elbow_joint", "right_elbow_joint"])] = 1.5
    shift = model.center_of_mass(model.configuration(STANDING, raised))[0] - com[0]
    assert shift > 0.0


def test_the_margin_does_not_depend_on_where_the_robot_stands(model):
    margin = support_margin(model, model.configuration(STANDING, ROBOT.joints.home))
    elsewhere = pose_from_xyyaw(5.0, -3.0, 2.0, ROBOT.standing_height)
    assert support_margin(model, model.configuration(elsewhere, ROBOT.joints.home)) == pytest.approx(margin, abs=1e-9)
