# SPDX-License-Identifier: Apache-2.0
"""A clock that jumps back by 30 s, and colour 40 ms away from its depth."""

from __future__ import annotations

import pinocchio as pin
import pytest

from supple.perception.synchronizer import Synchronizer
from supple.perception.transform_buffer import TransformBuffer, TransformError

MS = 1_000_000


def test_after_a_jump_back_no_old_transform_is_used():
    """geometry2 606."""
    buffer = TransformBuffer()
    for stamp in range(39_000, 40_001, 20):
        buffer.add("odom", "base_link", stamp * MS, pin.SE3.Identity())
    buffer.add("odom", "base_link", 10_000 * MS, pin.SE3.Identity())
    assert buffer.resets == 1
    with pytest.raises(TransformError):
        buffer.lookup("odom", "base_link", 39_500 * MS)
    buffer.add("odom", "base_link", 10_020 * MS, pin.SE3.Identity())
    assert buffer.lookup("odom", "base_link", 10_010 * MS).oldest_ns == 10_000 * MS
    assert buffer.resets == 1


def test_after_a_jump_back_pictures_go_on_and_the_jump_is_counted_once():
    """geometry2 606: nothing waits for the 30 s to pass again, and what was on its way does no harm."""
    synchronizer = Synchronizer(("depth", "color"))
    matched = []
    arrivals = [("color", 40_000), ("depth", 40_000), ("color", 10_000), ("depth", 40_033), ("depth", 10_000)]
    for stream, stamp in [*arrivals, ("color", 10_033), ("depth", 10_033)]:
        matched += synchronizer.put(stream, stamp * MS, None, 0.0)[0]
    assert [match.stamp_ns // MS for match in matched] == [40_000, 10_000, 10_033]
    assert synchronizer.resets == 1


def test_pictures_forty_milliseconds_apart_name_the_stream_and_the_gap():
    """message_filters 169."""
    synchronizer = Synchronizer(("depth", "color"), tolerance=0.02)
    synchronizer.put("color", 1_000 * MS, None, 0.0)
    synchronizer.put("depth", 1_040 * MS, None, 0.0)
    matched, missed = synchronizer.expire(1.0)
    assert matched == []
    assert missed[0].stream == "color"
    assert "the nearest is 40.0 ms away" in str(missed[0])
