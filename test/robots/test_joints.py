# SPDX-License-Identifier: Apache-2.0
"""The joint table: lookup, groups and mapping by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.errors import JointError, UnknownNameError
from supple.robots.g1 import g1_joints
from supple.robots.joints import Joint, JointTable

JOINTS = g1_joints()


@given(st.randoms(use_true_random=False))
def test_values_come_back_in_table_order_whatever_order_they_came_in(random):
    values = np.arange(len(JOINTS), dtype=float)
    order = list(range(len(JOINTS)))
    random.shuffle(order)
    np.testing.assert_array_equal(JOINTS.ordered([JOINTS.names[i] for i in order], values[order]), values)


def test_groups_cover_every_joint_once_and_keep_table_order():
    together = [i for group in JOINTS.groups for i in JOINTS.group(group)]
    assert sorted(together) == list(range(len(JOINTS)))
    np.testing.assert_array_equal(JOINTS.group("right_arm", "left_arm"), sorted(JOINTS.group("right_arm", "left_arm")))


def test_unknown_names_come_with_the_nearest_known_one():
    with pytest.raises(UnknownNameError, match="did you mean 'left_elbow_joint'"):
        JOINTS.index("left_elbow")
    with pytest.raises(UnknownNameError, match=r"available: .*left_arm"):
        JOINTS.group("left_wing")
    assert isinstance(UnknownNameError("joint", "a", ["b"]), KeyError)


def test_a_table_names_each_joint_once_and_never_changes():
    row = Joint("elbow", "arm", -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
    with pytest.raises(JointError, match="elbow"):
        JointTable((row, row))
    with pytest.raises(ValueError, match="read-only"):
        JOINTS.home[0] = 1.0
