# SPDX-License-Identifier: Apache-2.0
"""Layouts and readings of tactile sensors: what does not fit is named, and what comes in cannot be changed later."""

from __future__ import annotations

import numpy as np
import pytest

from supple.contact.readings import RAW, PadLayout, TactileReading, TaxelStatus
from supple.errors import SensorError

GOOD = {
    "name": "pad",
    "frame": "l_wrist",
    "position": [[0.0, 0.0, 0.0], [0.01, 0.0, 0.0]],
    "normal": [[0.0, 0.0, 1.0], [0.0, 0.6, 0.8]],
    "area": [1e-4, 2e-4],
}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "needs a name and a frame"),
        ("frame", "", "needs a name and a frame"),
        ("position", [[0.0, 0.0, 0.0]], r"position of shape \(1, 3\), expected \(2, 3\)"),
        ("position", [[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]], "position of taxel 1 is not finite"),
        ("normal", [[0.0, 0.0, 1.0], [0.0, 0.6, 0.9]], "normal of taxel 1 has norm 1.0817"),
        ("normal", [[0.0, 0.0, 0.0], [0.0, 0.6, 0.8]], "normal of taxel 0 has norm 0.0000"),
        ("area", [1e-4, 0.0], "area of taxel 1 must be positive"),
        ("area", [], "with at least one taxel"),
        ("unit", "kPa", "unknown unit 'kPa'"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_by_field_and_taxel(field, value, said) -> None:
    assert len(PadLayout(**GOOD)) == 2
    with pytest.raises(SensorError, match=said):
        PadLayout(**GOOD | {field: value})


def test_forces_are_pressure_times_area_and_need_a_calibrated_sensor() -> None:
    layout = PadLayout(**GOOD)
    np.testing.assert_allclose(layout.normal_forces([1e4, 2e4]), [1.0, 4.0])
    np.testing.assert_allclose(layout.normal_forces([np.nan, 2e4]), [0.0, 4.0])
    with pytest.raises(SensorError, match=r"\(3,\) values of pressure for 2 taxels"):
        layout.normal_forces([1.0, 2.0, 3.0])
    with pytest.raises(SensorError, match="need a calibrated sensor"):
        PadLayout(**GOOD, unit=RAW).normal_forces([1.0, 2.0])


def test_a_reading_has_one_status_per_taxel_and_says_which_are_usable() -> None:
    status = [TaxelStatus.OK, TaxelStatus.DEAD, TaxelStatus.SATURATED, TaxelStatus.OK]
    reading = TactileReading(7, 3, 1, [1.0, np.nan, 4e5, np.nan], status)
    assert reading.usable.tolist() == [True, False, True, False]
    with pytest.raises(SensorError, match=r"reading 3: pressure of shape \(2,\) and status of shape \(3,\)"):
        TactileReading(7, 3, 0, [1.0, 2.0], [0, 0, 0])


def test_what_was_read_cannot_change_afterwards() -> None:
    values, places = np.array([1.0, 2.0]), np.array(GOOD["position"])
    reading, layout = TactileReading(0, 0, 0, values, [0, 0]), PadLayout(**GOOD | {"position": places})
    values[0], places[0] = 9.0, 9.0
    assert reading.pressure[0] == 1.0
    assert layout.position[0, 0] == 0.0
    for array in (reading.pressure, reading.status, layout.position, layout.normal, layout.area):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("pressure", "status", "said"),
    [
        ([1.0, 3e38], [0, 0], r"sensor 'pad': pressure of taxel 1 is 3e\+38 Pa, expected at most 1e\+09 Pa"),
        ([-3e38, np.nan], [0, 1], r"pressure of taxel 0 is -3e\+38 Pa"),
        ([1.0, np.inf], [0, 0], "pressure of taxel 1 is inf Pa"),
        ([1.0, 2.0], [0, 7], r"unknown status 7 of taxel 1 \(available: 0 OK, 1 DEAD, 2 SATURATED\)"),
        ([1.0], [0], "1 values of pressure for 2 taxels"),
    ],
)
def test_what_the_sensor_cannot_have_measured_is_refused(pressure, status, said) -> None:
    layout = PadLayout(**GOOD)
    layout.check(TactileReading(0, 0, 0, [np.nan, 4e5], [1, 2]))
    layout.check(TactileReading(0, 0, 0, [np.nan, np.nan], [1, 1]))
    with pytest.raises(SensorError, match=said):
        layout.check(TactileReading(0, 0, 0, pressure, status))


def test_counts_of_an_uncalibrated_sensor_may_be_any_number() -> None:
    PadLayout(**GOOD, unit=RAW).check(TactileReading(0, 0, 0, [3e38, 0.0], [0, 0]))


def test_the_extremes_of_a_reading_leave_out_what_is_no_number() -> None:
    reading = TactileReading(0, 0, 0, [np.nan, -3.0, 7.0, np.nan], [1, 0, 0, 1])
    assert (reading.lowest, reading.highest) == (-3.0, 7.0)
    assert [reading.count(status) for status in TaxelStatus] == [2, 2, 0]
    nothing = TactileReading(0, 0, 0, [np.nan], [1])
    assert (nothing.lowest, nothing.highest) == (np.inf, -np.inf)
