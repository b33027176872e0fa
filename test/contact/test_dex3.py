# SPDX-License-Identifier: Apache-2.0
"""Messages of a Dex3 hand become readings of its pads, in the order its file gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from supple.contact.dex3 import PRESS_VALUES, Dex3Decoder
from supple.contact.readings import TaxelStatus
from supple.contact.sensors import load_sensor
from supple.errors import SensorError
from supple.robots import g1

ROBOT = g1()
FILE = Path(__file__).resolve().parents[2] / "config/touch/g1/dex3_left.yaml"


# What a hand sends, as its interface defines it.
DEFINITIONS = {
    "PressSensorState": "float32[12] pressure\nfloat32[12] temperature\nuint32 lost\nuint32 reserve\n",
    "IMUState": (
        "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer\nfloat32[3] rpy\nint16 temperature\n"
    ),
    "MotorState": (
        "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\nint16[2] temperature\nfloat32 vol\n"
        "uint32[2] sensor\nuint32 motorstate\nuint32[4] reserve\n"
    ),
    "HandState": (
        "MotorState[] motor_state\nPressSensorState[] press_sensor_state\nIMUState imu_state\nfloat32 power_v\n"
        "float32 power_a\nfloat32 system_v\nfloat32 device_v\nuint32[2] error\nuint32[2] reserve\n"
    ),
}


@pytest.fixture(scope="module")
def wire():
    """Return a function that sends pressure sensors through a hand's whole message on the wire and back."""
    store = get_typestore(Stores.EMPTY)
    for name, text in DEFINITIONS.items():
        store.register(get_types_from_msg(text, f"unitree_hg/msg/{name}"))
    types = {name: store.types[f"unitree_hg/msg/{name}"] for name in DEFINITIONS}

    def zeros(count: int, kind: type = np.float32) -> np.ndarray:
        return np.zeros(count, dtype=kind)

    def pass_on(rows):
        press = [
            types["PressSensorState"](np.asarray(row.pressure, dtype=np.float32), zeros(12), row.lost, 0)
            for row in rows
        ]
        motor = types["MotorState"](
            1, 0.1, 0.0, 0.0, 0.2, zeros(2, np.int16), 24.0, zeros(2, np.uint32), 0, zeros(4, np.uint32)
        )
        imu = types["IMUState"](zeros(4), zeros(3), zeros(3), zeros(3), 30)
        error = zeros(2, np.uint32)
        message = types["HandState"]([motor] * 7, press, imu, 24.0, 0.5, 5.0, 5.0, error, error)
        sent = store.serialize_cdr(message, "unitree_hg/msg/HandState")
        return store.deserialize_cdr(sent, "unitree_hg/msg/HandState").press_sensor_state

    return pass_on


@dataclass
class Press:
    """One pressure sensor of a message."""

    pressure: np.ndarray
    lost: int = 0


@pytest.fixture
def decoder():
    return Dex3Decoder(load_sensor(FILE, ROBOT))


def message(count=9, lost=0, **pressed):
    """Return press_sensor_state with every taxel at its own number; ``pressed`` replaces sensors by index."""
    state = []
    for index in range(count):
        values = 100000.0 + 100.0 * index + np.arange(PRESS_VALUES)
        state.append(Press(pressed.get(f"at_{index}", values), lost))
    return state


def test_each_sensor_of_the_message_is_one_pad(decoder):
    found = decoder.readings(5, message())
    assert list(found) == [sensor.name for sensor in decoder.sensors]
    assert set(found) == {name for name in ROBOT.pads if name.startswith("left_")}
    for index, name in enumerate(found):
        np.testing.assert_array_equal(found[name].pressure, 100000.0 + 100.0 * index + np.arange(12.0))
        assert not found[name].status.any()
        assert (found[name].stamp_ns, found[name].sequence, found[name].missed) == (5, 0, 0)
    assert decoder.readings(6, message())["left_palm_0"].sequence == 1


def test_a_message_from_the_wire_is_read_as_it_comes(decoder, wire):
    sent = message(at_8=np.full(12, 123456.0), lost=3)
    found, direct = decoder.readings(5, wire(sent)), Dex3Decoder(decoder.sensors).readings(5, sent)
    for name, reading in found.items():
        np.testing.assert_array_equal(reading.pressure, direct[name].pressure)
    np.testing.assert_array_equal(found["left_index_1"].pressure, 123456.0)
    assert decoder.readings(6, wire(message(lost=2**32 - 1)))["left_index_1"].missed == 2**32 - 1 - 3


def test_another_order_is_one_line_in_the_file(tmp_path):
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    data["press"] = data["press"][::-1]
    path = tmp_path / "hand.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    found = Dex3Decoder(load_sensor(path, ROBOT)).readings(0, message())
    np.testing.assert_array_equal(found["left_index_1"].pressure, 100000.0 + np.arange(12.0))
    np.testing.assert_array_equal(found["left_palm_0"].pressure, 100800.0 + np.arange(12.0))


def test_a_calibrated_pad_says_pascal_and_the_others_still_say_counts(tmp_path):
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    data["calibration"] = {"left_thumb_2": {"date": "2026-03-01", "method": "a", "offset": 100000.0, "scale": 0.5}}
    path = tmp_path / "hand.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    decoder = Dex3Decoder(load_sensor(path, ROBOT))
    assert {sensor.name: sensor.layout.unit for sensor in decoder.sensors if sensor.layout.unit == "Pa"} == {
        "left_thumb_2": "Pa"
    }
    found = decoder.readings(0, message(at_4=np.full(12, 101000.0)))
    np.testing.assert_array_equal(found["left_thumb_2"].pressure, 500.0)
    assert found["left_thumb_1"].pressure[0] == 100300.0


def test_the_vendors_no_value_is_no_measurement(decoder):
    values = np.full(12, 130000.0)
    values[[0, 5]], values[7] = 30000.0, 0.0
    reading = decoder.readings(0, message(at_3=values))["left_thumb_1"]
    np.testing.assert_array_equal(np.flatnonzero(reading.status == TaxelStatus.DEAD), [0, 5, 7])
    assert np.isnan(reading.pressure[[0, 5, 7]]).all()
    assert reading.usable.sum() == 9


def test_what_the_hand_lost_counts_as_missed(decoder):
    missed = [decoder.readings(i, message(lost=lost))["left_palm_1"].missed for i, lost in enumerate([40, 40, 43, 43])]
    assert missed == [0, 0, 3, 3]
    # Switched off and on: it counts from zero again.
    assert decoder.readings(9, message(lost=2))["left_palm_1"].missed == 5
    decoder.reset()
    reading = decoder.readings(10, message(lost=7))["left_palm_1"]
    assert (reading.sequence, reading.missed) == (0, 0)


@pytest.mark.parametrize("count", [0, 7, 10])
def test_another_number_of_sensors_is_refused_naming_those_expected(decoder, count):
    with pytest.raises(SensorError, match=rf"with {count} pressure sensors, its file lists 9: left_palm_0, "):
        decoder.readings(0, message(count))
    assert decoder.readings(1, message())["left_palm_0"].sequence == 0


def test_another_number_of_values_is_refused_naming_the_sensor(decoder):
    with pytest.raises(SensorError, match=r"press_sensor_state\[2\]\.pressure: shape \(4,\), expected \(12,\)"):
        decoder.readings(0, message(at_2=np.zeros(4)))


def test_a_pad_of_another_size_cannot_be_a_dex3_pad(tmp_path):
    path = tmp_path / "skin.yaml"
    grid = {"rows": 2, "columns": 4, "pitch": [0.01, 0.01]}
    data = {"kind": "tactile", "name": "skin", "frame": "pelvis", "rate": 10.0, "unit": "raw", "grid": grid}
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(SensorError, match="'skin': 8 taxels, a Dex3 pressure sensor has 12"):
        Dex3Decoder(load_sensor(path, ROBOT))
