# SPDX-License-Identifier: Apache-2.0
"""Simulated tactile sensors: noise, limits, dead taxels, delay, loss and rate, each as asked for and as it is told."""

from __future__ import annotations

from itertools import pairwise

import mujoco
import numpy as np
import pytest
from pydantic import ValidationError

from supple.contact.readings import TaxelStatus
from supple.errors import SensorError, UnknownNameError
from supple.geometry import pose_from_xyyaw
from supple.robots import g1
from supple.sim.g1_model import g1_spec
from supple.sim.tactile import TactileSensors, TactileSettings
from supple.sim.world import World

ROBOT = g1()
STEP = 5_000_000
PAD = "left_index_1"


@pytest.fixture(scope="module")
def world():
    """The robot in the air; a ball presses on its left index finger."""
    spec = g1_spec()
    ball = spec.worldbody.add_body(name="ball", pos=[3.0, 0.0, 1.0])
    ball.add_freejoint(name="ball_joint")
    ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], mass=0.5)
    world = World(spec, ROBOT)
    world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 1.5), ROBOT.joints.home)
    mujoco.mj_kinematics(world.model, world.data)
    grid, link = ROBOT.pads[PAD].taxels(), world.object_pose(ROBOT.pads[PAD].link)
    at = link.act(grid.position[7] + (0.02 - 0.001) * grid.normal[7])
    world.place_object("ball", pose_from_xyyaw(at[0], at[1], 0.0, at[2]))
    world.set_state(world.get_state())
    return world


def sensors(world: World, seed: int = 0, **settings) -> TactileSensors:
    return TactileSensors(world, TactileSettings(**{"noise": 0.0} | settings), np.random.default_rng(seed))


def run(found: TactileSensors, steps: int, first: int = 0):
    """Readings by arrival: (time of arrival, name, reading)."""
    return [(i * STEP, name, reading) for i in range(first, first + steps) for name, reading in found.advance(i * STEP)]


def test_without_noise_readings_are_what_happens(world) -> None:
    found = sensors(world)
    readings = dict(found.advance(0))
    assert list(readings) == list(ROBOT.pads)
    truth = found.skin.touches()
    for name, reading in readings.items():
        np.testing.assert_array_equal(reading.pressure, truth[name].pressure)
        assert not reading.status.any()
    assert truth[PAD].normal_force > 0.1
    assert found.layouts[PAD].normal_forces(readings[PAD].pressure).sum() == pytest.approx(truth[PAD].normal_force)


@pytest.mark.parametrize(("rate", "steps"), [(200.0, 1), (100.0, 2), (50.0, 4), (25.0, 8)])
def test_each_sensor_reads_at_its_rate_and_counts(world, rate, steps) -> None:
    mine = [reading for _, name, reading in run(sensors(world, rate=rate), 40) if name == PAD]
    assert len(mine) == 40 // steps
    assert {b.stamp_ns - a.stamp_ns for a, b in pairwise(mine)} == {steps * STEP}
    assert [reading.sequence for reading in mine] == list(range(len(mine)))
    assert {reading.missed for reading in mine} == {0}


def test_a_rate_between_steps_is_kept_on_average(world) -> None:
    mine = [reading for _, name, reading in run(sensors(world, rate=60.0), 200) if name == PAD]
    assert len(mine) == 60


def test_a_rate_above_that_of_physics_is_refused(world) -> None:
    with pytest.raises(SensorError, match="tactile rate of 400 Hz, expected at most one per step: 200 Hz"):
        sensors(world, rate=400.0)


def test_noise_has_the_deviation_asked_for_and_no_bias(world) -> None:
    readings = run(sensors(world, noise=500.0, rate=200.0), 400)
    values = np.array([reading.pressure for _, name, reading in readings if name == "right_palm_1"])
    assert values.mean() == pytest.approx(0.0, abs=500.0 / np.sqrt(values.size) * 4.0)
    assert values.std() == pytest.approx(500.0, rel=0.05)
    # Neighbours and moments have nothing to do with each other.
    assert abs(np.corrcoef(values[:, 0], values[:, 1])[0, 1]) < 0.2
    assert abs(np.corrcoef(values[1:, 0], values[:-1, 0])[0, 1]) < 0.2


def test_the_same_seed_gives_the_same_readings_and_another_does_not(world) -> None:
    drawn = [
        [reading.pressure for _, _, reading in run(sensors(world, seed, noise=500.0, dead_fraction=0.1), 10)]
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2], equal_nan=True)


def test_a_taxel_above_its_limit_says_so_and_gives_the_limit(world) -> None:
    truth = sensors(world).skin.touches()[PAD].pressure
    limit = 0.5 * truth.max()
    reading = dict(sensors(world, saturation=limit).advance(0))[PAD]
    above = truth >= limit
    assert 0 < above.sum() < 12
    np.testing.assert_array_equal(reading.status == TaxelStatus.SATURATED, above)
    np.testing.assert_array_equal(reading.pressure, np.minimum(truth, limit))


def test_dead_taxels_have_no_value_and_say_so(world) -> None:
    readings = dict(sensors(world, dead=(f"{PAD}:7", "right_palm_0:11"), saturation=1.0).advance(0))
    for name, reading in readings.items():
        expected = {PAD: [7], "right_palm_0": [11]}.get(name, [])
        assert np.flatnonzero(reading.status == TaxelStatus.DEAD).tolist() == expected
        assert np.flatnonzero(np.isnan(reading.pressure)).tolist() == expected


def test_a_share_of_all_taxels_can_be_dead_and_stays_the_same(world) -> None:
    found = sensors(world, dead_fraction=0.25)
    first, later = (
        np.concatenate([reading.status == TaxelStatus.DEAD for _, reading in found.advance(stamp)])
        for stamp in (0, 2 * STEP)
    )
    np.testing.assert_array_equal(first, later)
    assert 0.15 < first.mean() < 0.35


@pytest.mark.parametrize(
    ("dead", "error", "said"),
    [
        ("left_indx_1:0", UnknownNameError, "did you mean 'left_index_1'"),
        (f"{PAD}:12", SensorError, "expected left_index_1:0 to left_index_1:11"),
        (f"{PAD}", SensorError, "expected left_index_1:0 to left_index_1:11"),
        (f"{PAD}:-1", SensorError, "expected left_index_1:0 to left_index_1:11"),
    ],
)
def test_a_dead_taxel_that_does_not_exist_is_refused_by_name(world, dead, error, said) -> None:
    with pytest.raises(error, match=said):
        sensors(world, dead=(dead,))


def test_readings_arrive_late_by_the_latency_with_the_stamp_of_the_measurement(world) -> None:
    arrivals = run(sensors(world, latency=0.03, rate=100.0), 40)
    assert {arrived - reading.stamp_ns for arrived, _, reading in arrivals} == {30_000_000}
    assert [r.sequence for _, name, r in arrivals if name == PAD] == list(range(17))


def test_a_silent_sensor_gives_nothing_and_says_afterwards_what_was_missed(world) -> None:
    found = sensors(world, rate=200.0)
    run(found, 5)
    found.silence([PAD])
    quiet = run(found, 7, first=5)
    assert PAD not in {name for _, name, _ in quiet}
    assert len(quiet) == 7 * 17
    found.silence([])
    back = [reading for _, name, reading in run(found, 3, first=12) if name == PAD]
    assert [reading.sequence for reading in back] == [12, 13, 14]
    assert {reading.missed for reading in back} == {7}
    with pytest.raises(UnknownNameError, match="unknown tactile sensor 'left_indx_1'"):
        found.silence(["left_indx_1"])


def test_pulling_one_sensor_does_not_change_what_the_others_read(world) -> None:
    whole, pulled = (sensors(world, noise=500.0) for _ in range(2))
    pulled.silence([PAD])
    for (_, name, mine), (_, _, other) in zip(
        [row for row in run(whole, 6) if row[1] != PAD], run(pulled, 6), strict=True
    ):
        assert name != PAD
        np.testing.assert_array_equal(mine.pressure, other.pressure)


def test_what_was_on_its_way_at_a_reset_is_lost_and_counted(world) -> None:
    found = sensors(world, latency=0.02, rate=200.0)
    run(found, 10)
    found.reset()
    after = [reading for _, name, reading in run(found, 10, first=100) if name == PAD]
    # Ten were measured, those of the last 20 ms had not arrived: 0 to 5 had.
    assert [reading.sequence for reading in after] == [10, 11, 12, 13, 14, 15]
    assert {reading.missed for reading in after} == {4}
    assert min(reading.stamp_ns for reading in after) == 100 * STEP


@pytest.mark.parametrize(
    ("field", "value"),
    [("rate", 0.0), ("noise", -1.0), ("stiffness", 0.0), ("dead_fraction", 1.5), ("latency", -0.1), ("nois", 1.0)],
)
def test_settings_out_of_range_and_unknown_ones_are_refused(field, value) -> None:
    with pytest.raises(ValidationError, match=field):
        TactileSettings(**{field: value})
