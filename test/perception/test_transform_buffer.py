# SPDX-License-Identifier: Apache-2.0
"""Poses looked up at a time: interpolated between samples, refused outside of them, forgotten when time jumps."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.geometry import pose_error
from supple.perception.transform_buffer import TransformBuffer, TransformError

MS = 1_000_000


def pose(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0, pitch: float = 0.0) -> pin.SE3:
    return pin.SE3(pin.rpy.rpyToMatrix(0.0, pitch, yaw), np.array([x, y, z]))


def same(actual: pin.SE3, wanted: pin.SE3) -> bool:
    return max(pose_error(actual, wanted)) < 1e-9


@pytest.fixture
def head() -> TransformBuffer:
    """A base that drives, a waist that turns at 1 rad/s, a camera fixed to it; sampled at 50 Hz from 1.0 to 1.2 s."""
    buffer = TransformBuffer()
    buffer.set_fixed("torso", "camera", pose(0.1, 0.0, 0.4, pitch=0.8))
    for i in range(11):
        stamp = (1000 + 20 * i) * MS
        buffer.add("odom", "base", stamp, pose(x=0.02 * i))
        buffer.add("base", "torso", stamp, pose(z=0.2, yaw=0.02 * i))
    return buffer


def test_between_samples_it_is_interpolated(head):
    found = head.lookup("base", "camera", 1_050 * MS)
    assert same(found.pose, pose(z=0.2, yaw=0.05) * pose(0.1, 0.0, 0.4, pitch=0.8))
    assert found.oldest_ns == 1_040 * MS


def test_at_a_sample_it_is_the_sample(head):
    found = head.lookup("odom", "torso", 1_060 * MS)
    assert same(found.pose, pose(x=0.06, z=0.2, yaw=0.06))
    assert found.oldest_ns == 1_060 * MS


def test_both_directions_and_branches(head):
    head.add("odom", "box", 1_000 * MS, pose(x=2.0))
    head.add("odom", "box", 1_100 * MS, pose(x=2.0))
    stamp = 1_050 * MS
    there, back = head.lookup("camera", "box", stamp).pose, head.lookup("box", "camera", stamp).pose
    assert same(there * back, pin.SE3.Identity())
    camera = pose(x=0.05, z=0.2, yaw=0.05) * pose(0.1, 0.0, 0.4, pitch=0.8)
    assert same(back, pose(x=-2.0) * camera)
    assert same(head.lookup("base", "base", stamp).pose, pin.SE3.Identity())


def test_several_at_once_are_those_one_by_one(head):
    names = ("camera", "torso", "base")
    found = head.lookup_all("odom", names, 1_055 * MS)
    for name in names:
        assert same(found[name].pose, head.lookup("odom", name, 1_055 * MS).pose)


def test_extrapolation_is_refused_and_says_by_how_much(head):
    with pytest.raises(TransformError, match=r"'torso' in 'base': the newest sample is 5\.0 ms before") as caught:
        head.lookup("base", "camera", 1_205 * MS)
    assert caught.value.pending, "a newer sample may still come"
    with pytest.raises(TransformError, match=r"the oldest sample is 10\.0 ms after") as caught:
        head.lookup("base", "camera", 990 * MS)
    assert not caught.value.pending


def test_a_gap_is_not_bridged(head):
    head.add("base", "torso", 3_000 * MS, pose(yaw=1.0))
    with pytest.raises(TransformError, match="no sample for 1800 ms"):
        head.lookup("base", "torso", 2_000 * MS)
    assert same(head.lookup("base", "torso", 3_000 * MS).pose, pose(yaw=1.0))


def test_unknown_and_unconnected_frames_are_named(head):
    with pytest.raises(TransformError, match=r"frame 'camra' is unknown .*did you mean 'camera'"):
        head.lookup("base", "camra", 1_050 * MS)
    head.set_fixed("map", "door", pose())
    with pytest.raises(TransformError, match=r"'base' and 'door' are not connected .* 'odom' and 'map'"):
        head.lookup("base", "door", 1_050 * MS)


def test_a_circle_is_found():
    buffer = TransformBuffer()
    buffer.set_fixed("a", "b", pose())
    buffer.set_fixed("b", "a", pose())
    with pytest.raises(TransformError, match="circle: a -> b -> a"):
        buffer.lookup("a", "b", 0)


@pytest.mark.parametrize(("parent", "child"), [("", "a"), ("a", ""), ("a", "a")])
def test_frames_without_a_place_are_refused(parent, child):
    with pytest.raises(TransformError):
        TransformBuffer().add(parent, child, 1, pose())


def test_time_that_begins_anew_leaves_only_what_is_fixed(head):
    head.add("odom", "base", 300 * MS, pose())
    assert head.resets == 0, "less than a second back is a late sample"
    head.add("odom", "base", 31_000 * MS, pose())
    head.add("odom", "base", 1_000 * MS, pose(x=5.0))
    assert head.resets == 1
    assert same(head.lookup("odom", "base", 1_000 * MS).pose, pose(x=5.0))
    with pytest.raises(TransformError):
        head.lookup("base", "torso", 1_100 * MS)
    assert same(head.lookup("torso", "camera", 5).pose, pose(0.1, 0.0, 0.4, pitch=0.8))


def test_the_past_is_forgotten():
    buffer = TransformBuffer(duration=1.0)
    for i in range(101):
        buffer.add("a", "b", i * 100 * MS, pose(x=i))
    assert same(buffer.lookup("a", "b", 9_050 * MS).pose, pose(x=90.5))
    with pytest.raises(TransformError, match="oldest"):
        buffer.lookup("a", "b", 8_950 * MS)


def test_a_frame_can_move_to_another_parent():
    buffer = TransformBuffer()
    buffer.add("table", "box", 1_000 * MS, pose(x=1.0))
    buffer.add("hand", "box", 1_010 * MS, pose(x=2.0))
    assert same(buffer.lookup("hand", "box", 1_010 * MS).pose, pose(x=2.0))


@given(
    stamps=st.lists(st.integers(0, 900), min_size=2, max_size=20, unique=True),
    at=st.floats(0.0, 1.0),
    data=st.data(),
)
def test_the_order_of_arrival_does_not_matter(stamps, at, data):
    """A frame on a screw motion: interpolating its samples gives a pose on the way, whatever order they come in."""
    shuffled = data.draw(st.permutations(stamps))
    buffer = TransformBuffer()
    for stamp in shuffled:
        buffer.add("a", "b", stamp * MS, pose(x=stamp * 1e-3, yaw=stamp * 1e-3))
    low, high = min(stamps) * MS, max(stamps) * MS
    time = round(low + at * (high - low))
    found = buffer.lookup("a", "b", time)
    assert max(pose_error(found.pose, pose(x=time * 1e-9, yaw=time * 1e-9))) < 1e-9
    assert low <= found.oldest_ns <= time
