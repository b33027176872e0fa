# SPDX-License-Identifier: Apache-2.0
"""The measurement of estimated wrenches: what it finds for our observer, and that it finds errors that are there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from supple.cli.main import app
from supple.episodes.seed_store import load_seed
from supple.errors import UnknownNameError
from supple.evaluation import wrench as measurement
from supple.evaluation.wrench import MOTIONS, measure_wrenches, measure_wrenches_of
from supple.kinematics.momentum_observer import MomentumObserver
from supple.robots import g1

FRAMES = g1().wrench_frames
SEED_FILE = Path(__file__).resolve().parents[2] / "seeds/box_lift.hdf5"


@pytest.mark.parametrize("motion", ["standing", "reaching", "pushed"])
def test_a_standing_robot_knows_its_wrenches_to_three_newton(motion):
    rows = measure_wrenches(motion, np.random.default_rng(1), seconds=4.0)
    assert [row.frame for row in rows] == list(FRAMES)
    for row in rows:
        assert row.samples == 800
        # Pushed, the robot may lift a foot and set it down: at that instant the estimate is late, by its own low-pass.
        late = motion == "pushed" and row.frame.endswith("sole")
        assert (row.force_without_lag if late else row.force) < 3.0, row.frame
        assert row.force_without_lag <= row.force + 0.05
    by_frame = {row.frame: row for row in rows}
    assert by_frame["l_sole"].largest_force > 100.0
    wrists = [by_frame[name].largest_force for name in ("l_wrist", "r_wrist")]
    # Ten newton at each wrist in turn; otherwise nothing touches them.
    assert wrists == (pytest.approx([10.0, 10.0], abs=0.1) if motion == "pushed" else [0.0, 0.0])


def test_hands_that_lift_a_box_know_what_they_press():
    episode = load_seed(SEED_FILE).episode
    rows = {row.frame: row for row in measure_wrenches_of(episode, np.random.default_rng(0))}
    for frame, row in rows.items():
        assert row.motion == "holding"
        assert row.samples > 500
        assert row.force < 3.0, frame
    assert rows["l_wrist"].largest_force > 30.0


def test_an_observer_of_a_wrong_robot_is_found_out(monkeypatch):
    """A hand that is 200 g heavier than the model shows as 2 N at that wrist."""

    class Observer(MomentumObserver):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)
            self._model.inertias[self._model.getJointId("left_wrist_yaw_joint")].mass -= 0.2

    monkeypatch.setattr(measurement, "MomentumObserver", Observer)
    rows = {row.frame: row for row in measure_wrenches("standing", np.random.default_rng(1), seconds=1.0)}
    assert rows["l_wrist"].force == pytest.approx(0.2 * 9.81, abs=0.4)
    assert rows["r_wrist"].force < 0.4


def test_an_unknown_motion_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'walking'"):
        measure_wrenches("walkin", np.random.default_rng(0))
    assert "standing" in MOTIONS


def test_errors_of_torques_show_at_the_feet_and_less_at_the_wrists():
    measured = [measure_wrenches("standing", np.random.default_rng(1), 1.0, torque_error=e) for e in (0.0, 0.01)]
    clean, wrong = ({row.frame: row.force for row in rows} for rows in measured)
    for frame in FRAMES:
        assert wrong[frame] > 2.0 * clean[frame], frame
    assert max(wrong["l_wrist"], wrong["r_wrist"]) < max(wrong["l_sole"], wrong["r_sole"]) < 15.0


def test_the_command_says_the_same():
    result = CliRunner().invoke(app, ["evaluate", "wrench", "--motion", "standing", "--seconds", "0.5", "--json"])
    assert result.exit_code == 0
    said = json.loads(result.stdout.splitlines()[-1])["rows"]
    assert said == [row.model_dump(mode="json") for row in measure_wrenches("standing", np.random.default_rng(0), 0.5)]
