# SPDX-License-Identifier: Apache-2.0
"""Readings and wrenches out of serialised messages, and readings into them: the same as from whole messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, JointState
from supple_interfaces.msg import TactileArray

from supple.contact.readings import PadLayout, TactileReading, TaxelStatus
from supple.errors import SensorError
from supple.nodes.conversion import header
from supple.nodes.tactile_bytes import TactileBytes
from supple.nodes.touch_input import TactileInput, layout_of, reading_of, stamp_of, wrench_of
from supple.nodes.touch_output import blank_array, fill_array

TAXELS = 4
LAYOUT = PadLayout(
    "probe",
    "left_hand_palm_link",
    np.stack([np.linspace(0.0, 0.03, TAXELS), np.zeros(TAXELS), np.zeros(TAXELS)], axis=1),
    np.tile([0.0, 0.0, 1.0], (TAXELS, 1)),
    np.full(TAXELS, 1e-4),
)
READING = TactileReading(5_000_000_007, 7, 2, [1.0, np.nan, 3.0, 4.0], [0, 1, 0, 2])


def same(a: TactileReading, b: TactileReading) -> bool:
    np.testing.assert_array_equal(a.pressure, b.pressure)
    np.testing.assert_array_equal(a.status, b.status)
    return (a.stamp_ns, a.sequence, a.missed) == (b.stamp_ns, b.sequence, b.missed)


def test_a_message_and_a_reading_are_the_same():
    message = fill_array(blank_array(LAYOUT), READING)
    layout = layout_of(message)
    for field in ("position", "normal", "area"):
        np.testing.assert_array_equal(getattr(layout, field), getattr(LAYOUT, field))
    assert (layout.name, layout.frame, layout.unit) == (LAYOUT.name, LAYOUT.frame, LAYOUT.unit)
    assert same(reading_of(message), READING)


@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"])
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_readings_out_of_bytes_are_those_of_whole_messages(name, count):
    rng = np.random.default_rng(0)
    heard = TactileInput()
    layout = PadLayout(name, 2 * name, rng.random((count, 3)), np.tile([0.0, 0.0, 1.0], (count, 1)), np.ones(count))
    for i in range(20):
        status = rng.integers(0, 3, count)
        reading = TactileReading(i * 10_000_000 + 3, 2**40 + i, i // 3, rng.random(count).astype(np.float32), status)
        data = serialize_message(fill_array(blank_array(layout), reading))
        assert same(heard.take(data), reading)
        assert heard.changed == (i == 0)


@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcdefgh"])
@pytest.mark.parametrize("count", [1, 3, 12])
def test_messages_written_in_parts_are_those_written_whole(name, count):
    rng = np.random.default_rng(1)
    layout = PadLayout(name, 2 * name, rng.random((count, 3)), np.tile([0.0, 0.0, 1.0], (count, 1)), np.ones(count))
    blank = TactileReading(0, 0, 0, np.zeros(count), np.zeros(count))
    written = TactileBytes(fill_array(blank_array(layout), blank))
    for i in range(1, 20):
        status = rng.integers(0, 3, count)
        pressure = np.where(status == TaxelStatus.DEAD, np.nan, rng.normal(0.0, 1e5, count))
        reading = TactileReading(i * 1_234_567_891, 2**40 + i, i // 3, pressure, status)
        # Bytes between the numbers may be anything.
        said = deserialize_message(written.of(reading), TactileArray)
        assert str(said) == str(fill_array(blank_array(layout), reading))


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "abcd", "left_wrist_yaw_link"])
def test_wrenches_out_of_bytes_are_those_of_whole_messages(frame):
    message = WrenchStamped(header=header(5_000_000_007, frame))
    message.wrench.force.x, message.wrench.force.z, message.wrench.torque.y = 1.5, float("inf"), -2.0
    stamp, found, values = wrench_of(serialize_message(message))
    assert (stamp, found) == (5_000_000_007, frame)
    assert values.tolist() == [1.5, 0.0, float("inf"), 0.0, -2.0, 0.0]


@pytest.mark.parametrize("field", ["name", "frame", "position", "normal", "area", "unit"])
def test_another_layout_is_seen(field):
    values = {"name": "prove", "frame": "right_hand_palm_link", "unit": "raw"}
    values |= {
        "position": LAYOUT.position + [[1e-9, 0, 0]] * 4,
        "normal": LAYOUT.normal[:, ::-1],
        "area": LAYOUT.area * 2,
    }
    heard = TactileInput()
    another = replace(LAYOUT, **{field: values[field]})
    for layout, changed in ((LAYOUT, True), (LAYOUT, False), (another, True), (another, False), (LAYOUT, True)):
        assert same(heard.take(serialize_message(fill_array(blank_array(layout), READING))), READING)
        assert heard.changed == changed


def test_a_message_that_lacks_a_value_is_refused_and_the_next_one_is_taken():
    heard = TactileInput()
    message = fill_array(blank_array(LAYOUT), READING)
    whole = serialize_message(message)
    message.pressure = message.pressure[:3]
    with pytest.raises(SensorError, match="pressure"):
        heard.take(serialize_message(message))
    assert same(heard.take(whole), READING)


@pytest.mark.parametrize("stamp", [1, 999_999_999, 1_000_000_000, 1_796_072_564_736_650_909])
def test_the_stamp_is_read_without_taking_the_message_apart(stamp):
    assert stamp_of(serialize_message(Image(header=header(stamp, "camera"), data=[1, 2, 3]))) == stamp
    assert stamp_of(serialize_message(JointState(header=header(stamp)))) == stamp
