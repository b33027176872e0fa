# SPDX-License-Identifier: Apache-2.0
"""Datasets on disk: what is in is what comes out, and nothing is mixed, lost or hidden."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import episode_examples as examples
import h5py
import numpy as np
import pytest

from supple.episodes import AttemptRecord, Dataset, DatasetCard, DatasetWriter, Ledger, Origin
from supple.errors import DatasetError, UnknownNameError
from supple.robots import robot_named

SHORTER_INTERVAL = robot_named("g1").contract.model_copy(update={"control_interval": 0.01})


def fill(folder: Path, count: int, **options: Any) -> Path:
    """Bring a dataset to a number of attempts and finalise it."""
    with DatasetWriter(folder, examples.card(), **options) as writer:
        while writer.next_attempt < count:
            writer.add(*examples.attempt(writer.next_attempt))
        writer.finalise()
    return folder


def test_what_is_written_is_read(tmp_path: Path) -> None:
    dataset = Dataset(fill(tmp_path / "d", 7, keep_rejected=True))
    retained = [i for i in range(7) if i % 3 != 2]
    assert dataset.names == tuple(f"demo_{i}" for i in range(len(retained)))
    for episode, attempt in zip(dataset, retained, strict=True):
        assert episode.differences(examples.attempt(attempt)[1]) == []
    rejected = Dataset(tmp_path / "d", rejected=True)
    assert [episode.attempt for episode in rejected] == [2, 5]
    assert dataset.ledger is not None
    assert dataset.ledger.counts() == {"attempted": 7, "completed": 7, "rejected": 2, "retained": 5}
    assert dataset.ledger.by_origin()["success_test"] == 2
    assert dataset.ledger.by_origin()["planning"] == 0
    assert list(dataset.ledger.reasons().values()) == [2]
    assert [r.demo for r in dataset.ledger.records] == [
        "demo_0",
        "demo_1",
        "demo_0",
        "demo_2",
        "demo_3",
        "demo_1",
        "demo_4",
    ]
    assert dataset.card is not None
    assert dataset.card.counts == dataset.ledger.counts()
    assert dataset.quarantined == ()
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == [
        ".lock",
        "dataset.yaml",
        "demos.hdf5",
        "ledger.jsonl",
        "parts",
        "rejected.hdf5",
    ]


def test_bytes_do_not_depend_on_interruptions(tmp_path: Path) -> None:
    once = fill(tmp_path / "once", 9, keep_rejected=True)
    for count in (1, 2, 6, 6, 9):
        often = fill(tmp_path / "often", count, keep_rejected=True)
    for name in ("demos.hdf5", "rejected.hdf5", "dataset.yaml"):
        assert (once / name).read_bytes() == (often / name).read_bytes()


def test_masks_are_disjoint_and_cover_everything(tmp_path: Path) -> None:
    dataset = Dataset(fill(tmp_path / "d", 40))
    train, valid = dataset.mask("train"), dataset.mask("valid")
    assert set(train) | set(valid) == set(dataset.names)
    assert set(train) & set(valid) == set()
    assert len(valid) == len(dataset) // 10
    with pytest.raises(UnknownNameError, match="train"):
        dataset.mask("test")


@pytest.mark.parametrize(("attempts", "valid"), [(0, ()), (1, ()), (2, ("demo_1",)), (5, ("demo_3",))])
def test_a_small_dataset_has_its_last_episode_for_validation(
    tmp_path: Path, attempts: int, valid: tuple[str, ...]
) -> None:
    dataset = Dataset(fill(tmp_path / "d", attempts))
    assert dataset.mask("valid") == valid
    assert dataset.mask("train") == tuple(name for name in dataset.names if name not in valid)


def test_the_file_is_what_robomimic_reads(tmp_path: Path) -> None:
    with h5py.File(fill(tmp_path / "d", 4) / "demos.hdf5") as file:
        demos = sorted(file["data"], key=lambda name: int(name[5:]))
        assert file["data"].attrs["total"] == sum(file["data"][name].attrs["num_samples"] for name in demos)
        args = json.loads(file["data"].attrs["env_args"])
        assert (args["env_name"], args["env_kwargs"]["robot"]) == ("box_lift", "g1")
        for key, share in (("train", demos[:-1]), ("valid", demos[-1:])):
            assert [name.decode("utf-8") for name in np.array(file[f"mask/{key}"][:])] == share


def test_a_file_alone_can_be_read(tmp_path: Path) -> None:
    dataset = Dataset(fill(tmp_path / "d", 2) / "demos.hdf5")
    assert (dataset.card, dataset.ledger, dataset.robot, len(dataset)) == (None, None, "g1", 2)
    dataset.require_robot("g1")
    with pytest.raises(DatasetError, match="for robot 'g1', expected 'h1'"):
        dataset.require_robot("h1")
    with pytest.raises(UnknownNameError, match="did you mean 'demo_1'"):
        dataset.episode("demo_11")


def test_no_attempt_at_all(tmp_path: Path) -> None:
    dataset = Dataset(fill(tmp_path / "d", 0))
    assert len(dataset) == 0
    assert dataset.ledger is not None
    assert set(dataset.ledger.counts().values()) == {0}
    assert dataset.ledger.reasons() == {}


def test_rejected_without_an_episode(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path, examples.card(), keep_rejected=True) as writer:
        record = examples.record(
            0, retained=False, completed=False, stage="plan", origin=Origin.PLANNING, reason="no path"
        )
        assert writer.add(record, None).demo is None
        writer.finalise()
    assert not (tmp_path / "rejected.hdf5").exists()
    assert Dataset(tmp_path).ledger.counts() == {"attempted": 1, "completed": 0, "rejected": 1, "retained": 0}  # type: ignore[union-attr]


def test_a_dataset_that_is_not_gathered_says_so(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        writer.add(*examples.attempt(0))
    with pytest.raises(DatasetError, match="1 attempts are not gathered yet"):
        Dataset(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "pour"}, ["task: 'pour' here, 'box_lift' there"]),
        ({"seed": 1, "distribution": "D1"}, ["seed: 1 here, 0 there", "distribution: 'D1' here"]),
        ({"source_sha256": "cd" * 32}, ["source_sha256"]),
        (
            {"settings": {"noise": 0.01, "interpolation": {"steps": 6}, "k": 3}},
            ["settings.noise", "settings.interpolation.steps", "settings.k: only here"],
        ),
        ({"versions": {"mujoco": "4.0.0"}}, ["versions.mujoco: '4.0.0' here, '3.17.0' there"]),
        (
            {"contract": SHORTER_INTERVAL},
            ["contract: control interval: 0.01 s here, 0.02 s there"],
        ),
    ],
)
def test_another_dataset_is_not_mixed_in(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    fill(tmp_path, 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(DatasetError, match="holds another dataset") as caught:
        DatasetWriter(tmp_path, examples.card(**changes))
    for word in words:
        assert word in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_name_date_and_place_of_the_seed_may_differ(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    card = examples.card(name="other", created="2027-01-01", source="elsewhere/box_lift.hdf5", supple="0.2.0")
    with DatasetWriter(tmp_path, card) as writer:
        assert writer.next_attempt == 2
        assert writer.card.created == "2026-01-31"


def test_resume_only_if_wanted(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    with pytest.raises(DatasetError, match="already holds attempts"):
        DatasetWriter(tmp_path, examples.card(), resume=False)


def test_attempts_without_a_card_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    (tmp_path / "dataset.yaml").unlink()
    with pytest.raises(DatasetError, match=r"ledger\.jsonl, demos\.hdf5 but no dataset\.yaml"):
        DatasetWriter(tmp_path, examples.card())


def test_card_round_trip_and_unknown_keys(tmp_path: Path) -> None:
    card = examples.card()
    card.write(tmp_path / "dataset.yaml")
    assert DatasetCard.read(tmp_path / "dataset.yaml") == card
    with (tmp_path / "dataset.yaml").open("a") as file:
        file.write("colour: red\n")
    with pytest.raises(DatasetError, match="colour"):
        DatasetCard.read(tmp_path / "dataset.yaml")
    (tmp_path / "dataset.yaml").write_text("name: [")
    with pytest.raises(DatasetError, match="no valid YAML"):
        DatasetCard.read(tmp_path / "dataset.yaml")


def test_two_writers_cannot_use_one_folder(tmp_path: Path) -> None:
    code = (
        "import sys, time; import episode_examples as examples; from supple.episodes import DatasetWriter\n"
        "w = DatasetWriter(sys.argv[1], examples.card()); print('open', flush=True); time.sleep(60)"
    )
    paths = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths}
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(DatasetError, match="another process is writing this dataset"):
            DatasetWriter(tmp_path, examples.card())
        other.kill()
    with DatasetWriter(tmp_path, examples.card()) as writer:
        with pytest.raises(DatasetError, match="another process"):
            DatasetWriter(tmp_path, examples.card())
        assert writer.next_attempt == 0


@pytest.mark.parametrize(
    ("record", "episode", "words"),
    [
        (examples.record(1), examples.episode(1), "expected 0, got 1"),
        (examples.record(0), None, "retained but has no episode"),
        (examples.record(0), examples.episode(1), "attempt: expected 0, got 1"),
        (
            examples.record(0),
            replace(examples.episode(0), contract=SHORTER_INTERVAL),
            r"attempt 0: contract: control interval: 0\.02 s here, 0\.01 s there",
        ),
        (examples.record(0), replace(examples.episode(0), task="pour"), "task: expected 'box_lift', got 'pour'"),
        (examples.record(0), examples.episode(0, success=False), "did not succeed: the box was dropped"),
    ],
)
def test_what_does_not_belong_is_refused(tmp_path: Path, record: AttemptRecord, episode: Any, words: str) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        with pytest.raises(DatasetError, match=words):
            writer.add(record, episode)
        assert len(writer.ledger) == 0
        assert list((tmp_path / "parts").iterdir()) == []
        writer.add(*examples.attempt(0))


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        writer.add(*examples.attempt(0))
    with pytest.raises(DatasetError, match="closed"):
        writer.add(*examples.attempt(1))


def test_records_explain_rejections() -> None:
    with pytest.raises(ValueError, match="origin and a reason"):
        examples.record(0, retained=False, reason="")
    with pytest.raises(ValueError, match="no origin"):
        examples.record(0, origin=Origin.CONTACT)
    record = examples.record(0, measures={"height": np.float64(np.nan), "upright": np.bool_(True), "n": np.int64(3)})
    assert record.measures == {"height": None, "upright": True, "n": 3.0}
    assert AttemptRecord.model_validate_json(record.line()) == record


def test_a_gap_in_the_ledger_is_named(tmp_path: Path) -> None:
    fill(tmp_path, 6)
    lines = (tmp_path / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "ledger.jsonl").write_bytes(b"".join(lines[:2] + lines[4:]))
    for opening in (lambda: DatasetWriter(tmp_path, examples.card()), lambda: Dataset(tmp_path)):
        with pytest.raises(DatasetError, match=r"line 3: attempt 4 after 2 attempts; missing: 2 to 3"):
            opening()


def test_a_garbled_line_is_named(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    lines = (tmp_path / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "ledger.jsonl").write_bytes(lines[0] + b'{"attempt": "x"}\n' + lines[2])
    with pytest.raises(DatasetError, match=r"ledger\.jsonl: line 2: attempt"):
        Ledger(tmp_path / "ledger.jsonl")


def test_a_gap_in_the_demonstrations_is_refused(tmp_path: Path) -> None:
    path = fill(tmp_path, 7) / "demos.hdf5"
    with h5py.File(path, "r+") as file:
        del file["data/demo_2"], file["data/demo_3"]
    with pytest.raises(DatasetError, match="demo_2, demo_3 missing between others"):
        Dataset(path)


def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nowhere does not exist; expected the folder of a dataset"):
        Dataset(tmp_path / "nowhere")


def test_truncated_garbled_or_foreign_files(tmp_path: Path) -> None:
    path = fill(tmp_path / "d", 4) / "demos.hdf5"
    content = path.read_bytes()
    for keep in (0, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:keep])
        with pytest.raises(DatasetError, match="truncated, garbled or not an HDF5 file") as caught:
            Dataset(tmp_path / "d")
        assert str(path) in str(caught.value)
        assert "resumes" in str(caught.value)
    path.write_bytes(content)
    with h5py.File(path) as file:
        place = file["data/demo_0/states"].id.get_chunk_info(0).byte_offset
    path.write_bytes(content[: place + 20] + bytes([content[place + 20] ^ 1]) + content[place + 21 :])
    with pytest.raises(DatasetError, match="truncated, garbled"):
        Dataset(tmp_path / "d").episode("demo_0")
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["table"] = [1]
    with pytest.raises(DatasetError, match="no dataset: it has no group 'data'"):
        Dataset(tmp_path / "other.hdf5")
    with pytest.raises(DatasetError, match="does not exist"):
        Dataset(tmp_path / "nothing.hdf5")
