# SPDX-License-Identifier: Apache-2.0
"""The base pose without its sway: sway is damped, drift is followed, a reset forgets."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.control.steady_base import SteadyBase
from supple.geometry import pose_error, pose_from_xyyaw

DT = 0.02


def test_it_begins_at_the_first_measurement():
    start = pose_from_xyyaw(1.0, -2.0, 0.3, 0.76)
    assert pose_error(SteadyBase().step(start, DT), start) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_sway_of_two_hertz_is_damped_to_less_than_a_tenth():
    steady = SteadyBase(1.0)
    xs = []
    for i in range(1000):
        sway = np.sin(2.0 * np.pi * 2.0 * i * DT)
        base = pose_from_xyyaw(0.03 * sway, 0.0, 0.0) * pin.SE3(pin.rpy.rpyToMatrix(0.1 * sway, 0, 0), np.zeros(3))
        xs.append(steady.step(base, DT).translation[0])
    assert np.abs(xs[500:]).max() < 0.003


def test_a_lasting_step_is_made_up_within_the_time_constant():
    steady = SteadyBase(0.5)
    steady.step(pose_from_xyyaw(0.0, 0.0, 0.0), DT)
    for _ in range(round(0.5 / DT)):
        pose = steady.step(pose_from_xyyaw(0.1, 0.0, 0.2), DT)
    # 63 % after one time constant, a little more for the discrete filter.
    assert pose.translation[0] == pytest.approx(0.1 * (1.0 - np.exp(-1.0)), rel=0.03)
    steady.reset()
    assert steady.step(pose_from_xyyaw(5.0, 0.0, 0.0), DT).translation[0] == 5.0


def test_a_motion_that_is_expected_counts_at_once_and_what_differs_from_it_is_damped():
    steady = SteadyBase(1.0)
    place = pose_from_xyyaw(2.0, 1.0, 0.7)
    for i in range(200):
        fraction = min(1.0, i / 100)
        bent = pin.SE3(pin.utils.rotate("y", 0.4 * fraction), np.array([-0.05 * fraction, 0.0, 0.76 - 0.3 * fraction]))
        assert pose_error(steady.step(place * bent, DT, bent), place * bent) == pytest.approx((0.0, 0.0), abs=1e-9)
    sway = pose_from_xyyaw(0.05, 0.0, 0.0)
    assert pose_error(steady.step(sway * place * bent, DT, bent), place * bent)[0] == pytest.approx(0.05 * DT, rel=1e-3)


def test_it_begins_anew_when_a_motion_begins_or_ends():
    steady, bent = SteadyBase(1.0), pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.5]))
    steady.step(pose_from_xyyaw(0.0, 0.0, 0.0, 0.76), DT)
    here = pose_from_xyyaw(0.3, 0.0, 0.0, 0.5)
    assert pose_error(steady.step(here, DT, bent), here) == pytest.approx((0.0, 0.0), abs=1e-12)
    up = pose_from_xyyaw(0.4, 0.0, 0.0, 0.76)
    assert pose_error(steady.step(up, DT), up) == pytest.approx((0.0, 0.0), abs=1e-12)
