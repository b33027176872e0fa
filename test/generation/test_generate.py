# SPDX-License-Identifier: Apache-2.0
"""Whole datasets: the same bytes for any number of workers and interruptions, and nothing lost when processes die."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from supple.episodes import Dataset, DatasetWriter, Ledger
from supple.errors import DatasetError, SeedError, SuppleError, TaskError, UnknownNameError
from supple.generation import GenerationSettings, generate
from supple.generation.generate import _card
from supple.tasks import task_named

ATTEMPTS = 3
VOLATILE = {"wall_seconds", "timings"}

GENERATE = """
import json, multiprocessing, sys
from pathlib import Path
from supple.generation import GenerationSettings, Job, generate

def main():
    given = json.loads(sys.argv[1])
    job = Job(given["task"], given["distribution"], given["seed"], Path(given["seed_file"]),
              GenerationSettings(**given["settings"]), given["keep_rejected"])

    def tell(record, summary):
        workers = [process.pid for process in multiprocessing.active_children()]
        print(json.dumps({"attempt": record.attempt, "workers": workers}), flush=True)

    generate(job, Path(sys.argv[2]), attempts=int(sys.argv[3]), workers=int(sys.argv[4]), on_attempt=tell)

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def dataset(job, tmp_path_factory):
    """The job's first attempts, made by one process without interruption."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    summary = generate(job, folder, attempts=ATTEMPTS)
    return folder, summary


@pytest.fixture(scope="module")
def quick_dataset(quick_job, tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick") / "data"
    generate(quick_job, folder, attempts=8)
    return folder


def lines(folder):
    records = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if key not in VOLATILE} for record in records]


def assert_same_dataset(folder, other):
    for name in ("demos.hdf5", "rejected.hdf5"):
        there = (folder / name).exists(), (other / name).exists()
        assert there[0] == there[1], name
        if there[0]:
            assert (folder / name).read_bytes() == (other / name).read_bytes(), name
    assert lines(folder) == lines(other)
    assert not list((folder / "parts").iterdir())


def start(job, folder, attempts, workers, script):
    """Generate in another process, which can be killed."""
    script.write_text(GENERATE)
    given = json.dumps(asdict(job) | {"seed_file": str(job.seed_file), "settings": job.settings.model_dump()})
    import supple

    environment = os.environ | {"PYTHONPATH": str(Path(supple.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, str(script), given, str(folder), str(attempts), str(workers)],
        stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


# -- what is made ----------------------------------------------------------------------------------------------------


def test_the_summary_the_ledger_the_card_and_the_files_agree(job, dataset):
    folder, summary = dataset
    ledger = Ledger(folder / "ledger.jsonl")
    assert [record.attempt for record in ledger.records] == list(range(ATTEMPTS))
    counts = ledger.counts()
    assert (summary.attempted, summary.completed, summary.rejected, summary.retained) == (
        counts["attempted"], counts["completed"], counts["rejected"], counts["retained"],
    )  # fmt: skip
    assert summary.attempted == ATTEMPTS == summary.retained + summary.rejected
    assert sum(summary.by_origin.values()) == summary.rejected
    assert summary.complete
    assert summary.sim_seconds == pytest.approx(sum(record.sim_seconds for record in ledger.records))
    data = Dataset(folder)
    assert data.card.counts == counts
    task = task_named(job.task)
    assert GenerationSettings(**data.card.settings) == job.settings.resolved(task.skills)
    assert set(data.card.settings["skills"]) == {"lift_left_hand", "lift_right_hand"}
    for record in ledger.records:
        assert record.seed == job.seed
        assert record.distribution == job.distribution
        assert set(record.initial) >= {"object/box", "object/table", "robot", "material/box.mass"}
    with h5py.File(folder / "demos.hdf5") as file:
        assert len(file["data"]) == summary.retained


def test_two_workers_make_the_same_bytes(job, dataset, tmp_path):
    summary = generate(job, tmp_path / "data", attempts=ATTEMPTS, workers=2)
    assert summary.workers == 2
    assert_same_dataset(tmp_path / "data", dataset[0])


def test_a_killed_run_is_resumed_without_loss_repetition_or_orphans(job, dataset, tmp_path):
    folder = tmp_path / "data"
    process = start(job, folder, ATTEMPTS, 2, tmp_path / "generate.py")
    try:
        told = json.loads(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert told["attempt"] == 0
    assert len(told["workers"]) == 2
    assert wait_until(lambda: not any(alive(pid) for pid in told["workers"])), "workers outlive their killed parent"
    before = (folder / "ledger.jsonl").read_bytes()
    assert before.count(b"\n") >= 1
    made = []
    summary = generate(job, folder, attempts=ATTEMPTS, on_attempt=lambda record, _: made.append(record.attempt))
    assert made == list(range(before.count(b"\n"), ATTEMPTS))
    assert summary.attempted == ATTEMPTS
    assert (folder / "ledger.jsonl").read_bytes().startswith(before.rpartition(b"\n")[0])
    assert_same_dataset(folder, dataset[0])


def test_ctrl_c_ends_the_run_and_its_workers_and_keeps_what_was_made(quick_job, quick_dataset, tmp_path):
    folder = tmp_path / "data"
    process = start(quick_job, folder, 10_000, 2, tmp_path / "generate.py")
    try:
        told = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(timeout=60) != 0
    finally:
        process.kill()
        process.wait()
    assert wait_until(lambda: not any(alive(pid) for pid in told["workers"]))
    made = len(Ledger(folder / "ledger.jsonl"))
    assert made >= 1
    generate(quick_job, folder, attempts=max(made, 8))
    assert lines(folder)[:8] == lines(quick_dataset)


@pytest.mark.parametrize("pause", [0.0, 1.0], ids=["while results are awaited", "while a result is being stored"])
def test_a_killed_worker_is_replaced_and_no_attempt_is_lost(quick_job, quick_dataset, tmp_path, pause):
    """The pool may notice the death while the parent waits, or only when it is given the next attempt."""
    killed = []

    def kill_one(record, _):
        if not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)
            time.sleep(pause)

    summary = generate(quick_job, tmp_path / "data", attempts=8, workers=2, on_attempt=kill_one)
    assert killed
    assert summary.attempted == 8
    assert_same_dataset(tmp_path / "data", quick_dataset)


# -- how much is made ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("wanted", [{"attempts": 0}, {"episodes": 0}])
def test_nothing_wanted_is_an_empty_dataset(quick_job, tmp_path, wanted, workers):
    summary = generate(quick_job, tmp_path / "data", **wanted, workers=workers)
    assert (summary.attempted, summary.retained, summary.complete) == (0, 0, True)
    assert list(Dataset(tmp_path / "data")) == []


def test_what_is_there_already_is_not_made_again(job, dataset, tmp_path):
    folder = shutil.copytree(dataset[0], tmp_path / "data")
    made = []
    for wanted in ({"attempts": ATTEMPTS}, {"attempts": 1}, {"episodes": dataset[1].retained}):
        for workers in (1, 2):
            summary = generate(job, folder, **wanted, workers=workers, on_attempt=lambda *given: made.append(given))
            assert (summary.attempted, summary.complete, summary.sim_seconds) == (ATTEMPTS, True, 0.0)
    assert made == []
    assert_same_dataset(folder, dataset[0])


def test_more_attempts_continue_a_finished_dataset(quick_job, quick_dataset, tmp_path):
    for count in (2, 3, 8):
        generate(quick_job, tmp_path / "data", attempts=count)
    assert_same_dataset(tmp_path / "data", quick_dataset)


@pytest.mark.parametrize("workers", [1, 2])
def test_episodes_wanted_are_made_and_no_more(job, dataset, tmp_path, workers):
    folder, whole = dataset
    assert whole.retained >= 1, "none of the attempts succeeded"
    summary = generate(job, tmp_path / "data", episodes=1, workers=workers)
    assert (summary.retained, summary.complete) == (1, True)
    outcomes = [record.outcome for record in Ledger(folder / "ledger.jsonl").records]
    assert summary.attempted == outcomes.index("retained") + 1
    assert lines(tmp_path / "data") == lines(folder)[: summary.attempted]


def test_a_task_that_never_succeeds_gives_up_and_says_so(quick_job, tmp_path):
    summary = generate(quick_job, tmp_path / "data", episodes=1)
    assert (summary.retained, summary.complete) == (0, False)
    assert summary.attempted == 20
    assert summary.by_origin == {"actuation": 20}


# -- several demonstrations ------------------------------------------------------------------------------------------


def test_each_skill_s_demonstration_stands_in_ledger_and_episode(quick_job, tmp_path):
    other = Path(shutil.copy(quick_job.seed_file, tmp_path / "other.hdf5"))
    job = replace(quick_job, further_seed_files=(other,))
    summary = generate(job, tmp_path / "data", attempts=8)
    assert summary.attempted == 8
    dataset = Dataset(tmp_path / "data", rejected=True)
    for record, episode in zip(dataset.ledger.records, dataset, strict=True):
        # Coordinated, and so from the same demonstration.
        assert record.sources == episode.sources == dict.fromkeys(["lift_left_hand", "lift_right_hand"], record.source)
        assert episode.source == record.source
    assert {record.source for record in dataset.ledger.records} == {"box_lift.hdf5", "other.hdf5"}
    assert dataset.card.source == "box_lift.hdf5, other.hdf5"
    with pytest.raises(DatasetError, match="source_sha256"):
        generate(quick_job, tmp_path / "data", attempts=9)


def test_a_dataset_is_a_source_of_another(job, retained, tmp_path):
    """Round trip: retained episodes, read back as MimicGen's format, give episodes that succeed."""
    narrow = replace(job, distribution="D0", keep_rejected=False)
    with DatasetWriter(tmp_path / "first", _card(narrow, "first")) as writer:
        for i, (record, episode) in enumerate(retained):
            writer.add(record.model_copy(update={"attempt": i}), replace(episode, attempt=i))
        path = writer.finalise()
    summary = generate(replace(narrow, seed_file=path, seed=7), tmp_path / "second", episodes=1)
    assert summary.retained == 1
    (episode,) = Dataset(tmp_path / "second")
    assert episode.source in {"demos.hdf5:demo_0", "demos.hdf5:demo_1"}
    # The skill lasts as long as in its source, whose walk and hold are no part of it.
    source = retained[int(episode.source[-1])][1]
    lasted = [
        int(e.signals["lift_left_hand"].argmax() - e.start_signals["lift_left_hand"].argmax())
        for e in (episode, source)
    ]
    assert lasted[0] == lasted[1] < source.length // 2


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "seed: 1 here, 0 there"),
        ({"distribution": "D0"}, "distribution: 'D0' here, 'D1' there"),
        (
            {"settings": GenerationSettings(walk_timeout=0.4, settle_time=0.02)},
            "settings.walk_timeout: 0.4 here, 0.2 there",
        ),
    ],
)
def test_a_folder_of_another_dataset_is_refused_and_left_alone(quick_job, quick_dataset, tmp_path, change, said):
    folder = shutil.copytree(quick_dataset, tmp_path / "data")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(DatasetError) as caught:
        generate(replace(quick_job, **change), folder, attempts=20)
    assert said in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_another_seed_demonstration_is_another_dataset(quick_job, quick_dataset, tmp_path):
    folder = shutil.copytree(quick_dataset, tmp_path / "data")
    other = shutil.copy(quick_job.seed_file, tmp_path / "other.hdf5")
    with h5py.File(other, "r+") as file:
        file.attrs["remark"] = "recorded again"
    with pytest.raises(DatasetError, match="source_sha256"):
        generate(replace(quick_job, seed_file=Path(other)), folder, attempts=20)


@pytest.mark.parametrize(
    "wanted",
    [{}, {"attempts": 1, "episodes": 1}, {"attempts": -1}, {"episodes": -1}, {"attempts": 1, "workers": 0}],
)
def test_nonsense_is_refused_before_anything_is_made(quick_job, tmp_path, wanted):
    with pytest.raises(TaskError):
        generate(quick_job, tmp_path / "data", **wanted)
    assert not (tmp_path / "data").exists()


def test_unknown_tasks_and_distributions_are_refused_before_anything_is_made(quick_job, tmp_path):
    for change in ({"task": "box_drop"}, {"distribution": "D7"}):
        with pytest.raises(UnknownNameError):
            generate(replace(quick_job, **change), tmp_path / "data", attempts=1)
    assert not (tmp_path / "data").exists()


def test_a_negative_seed_is_refused_before_anything_is_made(quick_job, tmp_path):
    with pytest.raises(SuppleError, match="seed"):
        generate(replace(quick_job, seed=-1), tmp_path / "data", attempts=1)
    assert not (tmp_path / "data").exists()


def edit_meta(change):
    def edit(file):
        meta = json.loads(file["seed/meta"][()])
        change(meta)
        del file["seed/meta"]
        file["seed"].create_dataset("meta", data=json.dumps(meta))

    return edit


def poison(path, index):
    def edit(file):
        rows = file[path][()]
        rows[index] = np.nan
        file[path][...] = rows

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (poison("data/demo_0/actions", (5, 3)), "actions"),
        (poison("data/demo_0/datagen_info/object_poses/box", (700, 0, 3)), "object_poses/box"),
        (poison("data/demo_0/datagen_info/target_pose/left_hand", (700, 0, 0)), "target_pose"),
        (poison("data/demo_0/obs/base_pose", (9, 4)), "base_pose"),
        (edit_meta(lambda meta: meta.update(skills=[])), "no skill is marked"),
        (edit_meta(lambda meta: meta["skills"].pop()), "right_hand"),
        (edit_meta(lambda meta: meta["skills"][0].update(end=10**6)), "end"),
        (edit_meta(lambda meta: meta["skills"][0].update(reference="table")), "'lift' of left_hand on 'box'"),
        (edit_meta(lambda meta: meta["skills"][0].update(effector="tail")), "tail"),
    ],
    ids=[
        "nan action",
        "nan object",
        "nan target",
        "nan base",
        "unmarked",
        "one hand",
        "too long",
        "reference",
        "effector",
    ],
)
def test_a_seed_that_was_tampered_with_is_refused_in_one_line(quick_job, tmp_path, edit, said):
    path = tmp_path / "seed.hdf5"
    shutil.copy(quick_job.seed_file, path)
    with h5py.File(path, "r+") as file:
        edit(file)
    with pytest.raises(SeedError) as caught:
        generate(replace(quick_job, seed_file=path), tmp_path / "data", attempts=1)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_a_truncated_or_missing_seed_is_refused(quick_job, tmp_path):
    path = tmp_path / "seed.hdf5"
    path.write_bytes(quick_job.seed_file.read_bytes()[:100_000])
    for seed_file in (path, tmp_path / "nowhere.hdf5"):
        with pytest.raises(SeedError, match=seed_file.name):
            generate(replace(quick_job, seed_file=seed_file), tmp_path / "data", attempts=1)
    assert not (tmp_path / "data").exists()


def test_an_error_in_the_callback_loses_nothing(quick_job, quick_dataset, tmp_path):
    def fail(record, _):
        if record.attempt == 2:
            raise RuntimeError("the terminal went away")

    for workers in (1, 2):
        folder = tmp_path / f"data{workers}"
        with pytest.raises(RuntimeError, match="terminal"):
            generate(quick_job, folder, attempts=8, workers=workers, on_attempt=fail)
        assert len(Ledger(folder / "ledger.jsonl")) == 3
        generate(quick_job, folder, attempts=8)
        assert_same_dataset(folder, quick_dataset)
