# SPDX-License-Identifier: Apache-2.0
"""``supple generate`` with several demonstrations and settings from a file."""

from __future__ import annotations

import json
import shutil
import signal
import sys

import pytest
from typer.testing import CliRunner

from supple.cli.generating import run_generation
from supple.cli.main import app
from supple.episodes import DatasetCard, Ledger
from supple.generation.engine import attempts_in_order


@pytest.fixture
def quick(tmp_path):
    """A file with settings that end attempts in the walk."""
    path = tmp_path / "quick.yaml"
    path.write_text("walk_timeout: 0.2\nsettle_time: 0.02\nselection_top: 2\nstrategy: dexmimicgen_plus\n")
    return path


def generated(*words):
    return CliRunner().invoke(app, ["generate", "box_lift", *map(str, words)])


def test_files_and_settings_are_taken_and_options_count_more(seed_file, quick, tmp_path):
    other, out = shutil.copy(seed_file, tmp_path / "other.hdf5"), tmp_path / "out"
    result = generated(
        "--attempts", 2, "--out", out, "--from", seed_file, "--from", other,
        "--settings", quick, "--strategy", "supple", "--selection", "nearest_robot", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["by_origin"] == {"actuation": 2}
    card = DatasetCard.read(out / "dataset.yaml")
    assert card.source == "box_lift.hdf5, other.hdf5"
    wanted = {"walk_timeout": 0.2, "selection_top": 2, "strategy": "supple", "selection": "nearest_robot"}
    assert wanted.items() <= card.settings.items()
    assert {record.source for record in Ledger(out / "ledger.jsonl").records} <= {"box_lift.hdf5", "other.hdf5"}


def test_a_dataset_s_folder_stands_for_its_episodes(seed_file, quick, tmp_path):
    empty = tmp_path / "empty"
    assert generated("--attempts", 0, "--out", empty).exit_code == 0
    for folder, said in ((empty, "holds no data/demo_0"), (tmp_path, "is a folder without demos.hdf5")):
        result = generated("--attempts", 1, "--out", tmp_path / "out", "--from", folder, "--settings", quick)
        assert result.exit_code == 1
        assert said in " ".join(result.output.split())
        assert not (tmp_path / "out").exists()


def test_a_misspelt_setting_is_named(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("walk_timout: 0.2\n")
    result = generated("--attempts", 1, "--out", tmp_path / "out", "--settings", path)
    assert result.exit_code == 1
    assert "walk_timout: unknown field; did you mean 'walk_timeout'?" in " ".join(result.output.split())


class Finalised:
    """Ctrl-C comes while it is finalised, where Python drops the exception."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_a_finaliser_is_not_forgotten(quick_job, tmp_path):
    def engine(*job):
        for result in attempts_in_order(*job):
            Finalised()
            yield result

    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt):
        run_generation(quick_job, tmp_path / "data", 5, None, 1, engine=engine)
    assert len(Ledger(tmp_path / "data/ledger.jsonl")) == 1
    assert sys.unraisablehook is hook
