# SPDX-License-Identifier: Apache-2.0
"""Smooth references: they arrive without overshoot, within their limits, whatever the target does."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.control.standing import SmoothReference, SmoothRotation
from supple.control.standing.thigh_guard import segment_distance

DT = 0.02
number = st.floats(-1.0, 1.0)


@settings(max_examples=25)
@given(start=number, target=number, speed=st.floats(0.05, 2.0))
def test_a_jump_of_the_target_is_followed_within_speed_and_acceleration(start, target, speed):
    reference = SmoothReference([start], speed, 4.0 * speed)
    reference.target = np.array([target])
    for _ in range(round((3.0 + abs(target - start) / speed) / DT)):
        before = reference.velocity.copy()
        reference.step(DT)
        assert abs(reference.velocity[0]) <= speed + 1e-9
        assert abs(reference.velocity[0] - before[0]) <= 4.0 * speed * DT + 1e-9
        assert min(start, target) - 0.02 * speed <= reference.value[0] <= max(start, target) + 0.02 * speed
    assert reference.distance < 1e-3


def test_what_it_says_of_itself_is_consistent():
    reference = SmoothReference([0.0, 1.0], 0.5, 2.0, velocity=[0.3, 0.0])
    reference.target = np.array([1.0, -1.0])
    for _ in range(200):
        value, velocity = reference.value, reference.velocity
        reference.step(DT)
        np.testing.assert_allclose(
            reference.value, value + velocity * DT + 0.5 * reference.acceleration * DT**2, atol=1e-12
        )
        np.testing.assert_allclose(reference.velocity, velocity + reference.acceleration * DT, atol=1e-12)


def test_a_moving_start_is_slowed_down_instead_of_stopped():
    reference = SmoothReference([0.0], 0.1, 0.2, velocity=[0.1])
    reference.step(DT)
    assert reference.velocity[0] == pytest.approx(0.1 - 0.2 * DT)


@settings(max_examples=25)
@given(st.tuples(number, number, number))
def test_an_orientation_arrives_along_the_geodesic(axis):
    target = pin.exp3(np.array(axis))
    rotation = SmoothRotation(np.eye(3), 0.6, 2.0)
    rotation.target = target
    for _ in range(300):
        rotation.step(DT)
        assert np.linalg.norm(rotation.velocity) <= 0.6 + 1e-9
        # On the way there is no rotation about any other axis.
        assert np.linalg.norm(np.cross(pin.log3(rotation.value), axis)) < 1e-6
    np.testing.assert_allclose(rotation.value, target, atol=5e-3)


points = st.tuples(*[st.floats(-1.0, 1.0)] * 12)


@settings(max_examples=25)
@given(points)
def test_the_distance_of_two_segments_is_the_least_between_their_points(numbers):
    first, second = np.array(numbers).reshape(2, 2, 3)
    if min(np.linalg.norm(first[1] - first[0]), np.linalg.norm(second[1] - second[0])) < 1e-3:
        return
    s = np.linspace(0.0, 1.0, 41)
    on_first = first[0] + s[:, None] * (first[1] - first[0])
    on_second = second[0] + s[:, None] * (second[1] - second[0])
    sampled = np.linalg.norm(on_first[:, None] - on_second[None], axis=2).min()
    exact = segment_distance(first, second)
    assert exact <= sampled + 1e-9
    assert sampled - exact < 0.1
