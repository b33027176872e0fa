# SPDX-License-Identifier: Apache-2.0
"""Contact at one sensor: thresholds with hysteresis, slip and hold over time, faults of sensors, jumps of the clock."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from supple.contact.detection import ContactDetector, ContactSettings, patch_of, tangential_share
from supple.contact.readings import RAW, PadLayout, TactileReading, TaxelStatus
from supple.errors import SensorError

AREA = 1e-4
MS = 1_000_000
PAD = PadLayout(
    "pad",
    "hand",
    [[0.01 * x, 0.0, 0.0] for x in range(4)],
    [[0.0, 0.0, 1.0]] * 4,
    [AREA] * 4,
)


def reading(force, at_ms=0, sequence=0, share=(0.25, 0.25, 0.25, 0.25), status=(0, 0, 0, 0)):
    """Return a reading under a force in N, spread over the taxels."""
    pressure = np.where(np.asarray(status) == TaxelStatus.DEAD, np.nan, force * np.array(share) / AREA)
    return TactileReading(at_ms * MS, sequence, 0, pressure, status)


def follow(detector, rows):
    """Return the estimates for rows of (ms, force) or (ms, force, slip speed)."""
    return [
        detector.update(reading(force, at), slip_speed=speed[0] if speed else math.nan) for at, force, *speed in rows
    ]


def test_contact_begins_at_one_threshold_and_ends_at_a_lower_one():
    said = follow(ContactDetector(PAD), [(0, 0.0), (10, 0.99), (20, 1.01), (30, 0.75), (40, 0.69), (50, 0.99)])
    assert [row.in_contact for row in said] == [False, False, True, True, False, False]
    assert [row.since_ns // MS for row in said] == [0, 0, 20, 20, 40, 40]
    assert said[2].normal_force == pytest.approx(1.01)


@given(st.lists(st.floats(0.71, 0.99), min_size=1, max_size=30), st.booleans())
def test_between_the_thresholds_nothing_changes(forces, touched):
    detector = ContactDetector(PAD)
    detector.update(reading(5.0 if touched else 0.0))
    said = [detector.update(reading(force, 10 * (i + 1))) for i, force in enumerate(forces)]
    assert {row.in_contact for row in said} == {touched}
    assert {row.since_ns for row in said} == {0}


def test_slip_begins_at_once_and_ends_only_after_a_while():
    fast, slow, still = 0.02, 0.007, 0.001
    rows = [(0, 5.0, still), (10, 5.0, slow), (20, 5.0, fast), (30, 5.0, slow)]
    rows += [(at, 5.0, still) for at in range(40, 100, 10)]
    said = follow(ContactDetector(PAD), rows)
    # Slow enough to stick since 40 ms, but a slip that pauses is one slip: the last motion was at 30 ms.
    assert [row.slipping for row in said] == [False, False, *[True] * 3, *[False] * 5]


def test_an_object_is_held_after_a_time_without_slip():
    rows = [(at, 5.0, 0.05 if at == 0 else 0.0) for at in range(0, 400, 10)]
    said = follow(ContactDetector(PAD), rows)
    began = next(row.stamp_ns for row in said if row.held)
    assert began == (20 + 200) * MS
    assert not any(row.held and row.slipping for row in said)


def test_without_a_slip_speed_nothing_slips():
    said = follow(ContactDetector(PAD), [(at, 5.0) for at in range(0, 300, 10)])
    assert all(math.isnan(row.slip_speed) and not row.slipping for row in said)
    assert [row.held for row in said].index(True) == 20


def test_broken_contact_ends_slip_and_hold():
    said = follow(ContactDetector(PAD), [(0, 5.0, 0.05), (10, 0.0, 0.05), (20, 5.0, 0.0)])
    assert [row.slipping for row in said] == [True, False, False]
    assert math.isnan(said[1].slip_speed)


def test_dead_taxels_give_no_force_and_a_dead_sensor_no_contact():
    detector = ContactDetector(PAD)
    half = detector.update(reading(4.0, status=(1, 1, 0, 0)))
    assert (half.in_contact, half.normal_force) == (True, pytest.approx(2.0))
    gone = detector.update(reading(4.0, 10, status=(1, 1, 1, 1)))
    assert not gone.in_contact
    assert math.isnan(gone.normal_force)


def test_a_saturated_taxel_still_counts():
    assert ContactDetector(PAD).update(reading(40.0, status=(2, 0, 0, 0))).normal_force == pytest.approx(40.0)


def test_noise_without_touch_adds_up_to_nothing():
    rng = np.random.default_rng(3)
    detector = ContactDetector(PAD)
    said = [
        detector.update(TactileReading(i * 10 * MS, i, 0, rng.normal(0.0, 500.0, 4), np.zeros(4))) for i in range(2000)
    ]
    assert not any(row.in_contact for row in said)
    assert min(row.normal_force for row in said) == 0.0


@pytest.mark.parametrize("jump", [-30_000, 30_000])
def test_a_jump_of_the_clock_begins_anew(jump):
    detector = ContactDetector(PAD)
    follow(detector, [(60_000, 5.0, 0.05), (60_010, 5.0, 0.05)])
    after = detector.update(reading(0.8, 60_010 + jump), slip_speed=0.0)
    # 0.8 N keeps a contact, but does not begin one.
    assert not after.in_contact
    assert after.since_ns == after.stamp_ns


def test_what_does_not_fit_is_refused():
    with pytest.raises(SensorError, match="calibrated"):
        ContactDetector(PadLayout("pad", "hand", PAD.position, PAD.normal, PAD.area, RAW))
    with pytest.raises(SensorError, match="for 4 taxels"):
        ContactDetector(PAD).update(TactileReading(0, 0, 0, [1.0], [0]))
    with pytest.raises(SensorError, match="'pad': slip_speed must not be negative"):
        ContactDetector(PAD).update(reading(1.0), slip_speed=-0.1)
    with pytest.raises(ValidationError, match="broken_force must not exceed made_force"):
        ContactSettings(made_force=0.5, broken_force=0.6)


def test_the_patch_is_where_the_pressure_is():
    point, normal, force = patch_of(PAD, reading(4.0, share=(0.0, 0.5, 0.5, 0.0)))
    np.testing.assert_allclose(point, [0.015, 0.0, 0.0])
    np.testing.assert_allclose(normal, [0.0, 0.0, 1.0])
    assert force == pytest.approx(4.0)
    assert patch_of(PAD, reading(0.0)) is None
    assert patch_of(PAD, reading(0.1), noise_floor=1500.0) is None
    dead_left = patch_of(PAD, reading(4.0, status=(1, 1, 0, 0)))
    np.testing.assert_allclose(dead_left[0], [0.025, 0.0, 0.0])


def test_a_finger_pinched_from_both_sides_has_no_normal():
    ring = PadLayout("ring", "finger", [[0.0, 0.01, 0.0], [0.0, -0.01, 0.0]], [[0, 1, 0], [0, -1, 0]], [AREA, AREA])
    assert patch_of(ring, TactileReading(0, 0, 0, [1e4, 1e4], [0, 0])) is None
    assert patch_of(ring, TactileReading(0, 0, 0, [1e4, 0.0], [0, 0])) is not None


@given(
    st.lists(st.floats(0.1, 30.0), min_size=1, max_size=6),
    st.tuples(st.floats(-9.0, 9.0), st.floats(-9.0, 9.0)),
)
def test_shear_is_what_normal_forces_leave_unexplained(loads, shear):
    normals = np.tile([0.0, 1.0, 0.0], (len(loads), 1))
    force = np.array([shear[0], -sum(loads), shear[1]])
    shares = tangential_share(force, normals, loads)
    assert shares.sum() == pytest.approx(math.hypot(*shear), abs=1e-9)
    np.testing.assert_allclose(shares * sum(loads), np.array(loads) * math.hypot(*shear), atol=1e-7)


def test_shear_of_what_is_not_touched_is_unknown():
    shares = tangential_share([3.0, -10.0, 4.0], [[0, 1, 0], [0, 1, 0]], [10.0, 0.0])
    assert shares[0] == pytest.approx(5.0)
    assert math.isnan(shares[1])
    assert np.isnan(tangential_share([1.0, 0.0, 0.0], [[0, 1, 0]], [0.0])).all()
    with pytest.raises(SensorError, match="not finite"):
        tangential_share([math.nan, 0.0, 0.0], [[0, 1, 0]], [1.0])
    with pytest.raises(SensorError, match=r"normals \(n, 3\)"):
        tangential_share([1.0, 0.0, 0.0], [0, 1, 0], [1.0])
