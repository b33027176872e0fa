# SPDX-License-Identifier: Apache-2.0
"""Case 14: quaternions that hold no rotation are refused naming the sample; one a little off the norm is normalised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.errors import StateError
from supple.geometry import pose_from_quaternion, unit_quaternion

WHERE = "/odom sample 7: orientation"


@pytest.mark.parametrize(
    "blank",
    [
        [0.0, 0.0, 0.0, 0.0],
        [np.nan, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, np.inf],
        [1e-9, 0.0, 0.0, 1e-9],
        [1e200, 0.0, 0.0, 1e200],
        [0.0, 0.0, 1.0],
        [[0.0, 0.0, 0.0, 1.0]],
    ],
)
def test_what_holds_no_rotation_is_refused_naming_the_sample(blank):
    for read in (unit_quaternion, lambda q, where: pose_from_quaternion(np.zeros(3), q, where)):
        with pytest.raises(StateError) as caught:
            read(blank, WHERE)
        assert str(caught.value).startswith(WHERE)


def test_a_norm_of_1_05_is_normalised():
    off = 1.05 * np.array([0.0, 0.6, 0.0, 0.8])
    np.testing.assert_allclose(unit_quaternion(off), [0.0, 0.6, 0.0, 0.8], atol=1e-15)
    rotation = pose_from_quaternion(np.zeros(3), off).rotation
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=4, max_size=4))
def test_whatever_comes_in_is_either_a_unit_quaternion_or_refused(values):
    try:
        quaternion = unit_quaternion(values)
    except StateError:
        return
    assert np.linalg.norm(quaternion) == pytest.approx(1.0)
