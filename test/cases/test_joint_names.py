# SPDX-License-Identifier: Apache-2.0
"""Cases 15 and 35: joints in another order, missing, doubled or extra, and vectors that declare no order."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import JointError
from supple.kinematics.model import KinematicModel
from supple.robots import g1

JOINTS = g1().joints
VALUES = np.linspace(-1.0, 1.0, len(JOINTS))


def test_another_order_is_mapped_by_name():
    order = np.argsort(JOINTS.names)
    names = [JOINTS.names[i] for i in order]
    np.testing.assert_array_equal(JOINTS.ordered(names, VALUES[order]), VALUES)


def test_every_missing_extra_and_doubled_joint_is_listed():
    names = list(JOINTS.names)
    names[3], names[7], names[20] = "tail_joint", "left_elbow_joint", "wing_joint"
    with pytest.raises(JointError) as caught:
        JOINTS.ordered(names, VALUES, "joint_states")
    said = str(caught.value)
    assert said.startswith("joint_states: ")
    assert "missing left_knee_joint, right_hip_roll_joint, left_wrist_pitch_joint" in said
    assert "not in the robot's table: tail_joint, wing_joint" in said
    assert "given twice: left_elbow_joint" in said


def test_one_joint_missing_and_one_extra_do_not_cancel_out():
    with pytest.raises(JointError, match=r"missing right_hand_index_1_joint; not in the robot's table: neck_joint"):
        JOINTS.ordered([*JOINTS.names[:-1], "neck_joint"], VALUES)


@pytest.mark.parametrize("values", [np.zeros(29), np.zeros(44), np.zeros((43, 1)), 0.0])
def test_a_vector_without_one_name_per_number_is_refused(values):
    with pytest.raises(JointError, match="43 names but values of shape"):
        JOINTS.ordered(JOINTS.names, values)


def test_the_model_s_own_order_does_not_leak_through():
    """Pinocchio sorts the fingers index, middle, thumb; the table says thumb, middle, index."""
    model = KinematicModel(g1())
    urdf_order = list(model.model.names[2:])
    assert urdf_order != list(JOINTS.names)
    configuration = model.configuration(pin.SE3.Identity(), VALUES)
    np.testing.assert_array_equal(configuration[7:], [VALUES[JOINTS.index(name)] for name in urdf_order])
    np.testing.assert_array_equal(model.split(configuration)[1], VALUES)
