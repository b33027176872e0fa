# SPDX-License-Identifier: Apache-2.0
"""Kills, damage and full disks: what the ledger counts survives, the rest is made again, with the same bytes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import episode_examples as examples
import numpy as np
import pytest

from supple.episodes import Dataset, DatasetWriter, Ledger
from supple.errors import DatasetError

FILES = ("demos.hdf5", "rejected.hdf5", "dataset.yaml")
GENERATE = """
import sys
import episode_examples as examples
from supple.episodes import DatasetWriter

folder, count, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
    for index in range(writer.next_attempt, count):
        writer.add(*examples.attempt(index, length))
        if index == count // 2:
            writer.finalise()
    writer.finalise()
"""

# Every operation that changes the disk is a point to die at; a write to the ledger may also die half-way.
DIE_AT_EVERY_POINT = """
import os, signal, sys
from pathlib import Path
import episode_examples as examples
from supple.episodes import DatasetWriter

COUNT = 4

def generate(folder):
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        while writer.next_attempt < COUNT:
            writer.add(*examples.attempt(writer.next_attempt))
            if writer.next_attempt == 2:
                writer.finalise()
        writer.finalise()

def dying(folder, point):
    left = [point]
    def wrap(module, name, partial=False):
        real = getattr(module, name)
        def call(*arguments, **options):
            if left[0] == 0:
                if partial:
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*arguments, **options)
        setattr(module, name, call)
    for name in ("fsync", "replace", "unlink"):
        wrap(os, name)
    wrap(os, "write", partial=True)
    for name in ("write_bytes", "unlink", "mkdir"):
        wrap(Path, name)
    generate(folder)

root = Path(sys.argv[1])
generate(root / "whole")
point = 0
while True:
    child = os.fork()
    if child == 0:
        dying(root / f"{point:03d}", point)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
    point += 1
print(point)
"""


def run_python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def resume(folder: Path, count: int, length: int = 12) -> list[str]:
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        while writer.next_attempt < count:
            writer.add(*examples.attempt(writer.next_attempt, length))
        writer.finalise()
        return writer.recovered


def add_all(writer: DatasetWriter, count: int, length: int) -> None:
    for index in range(count):
        writer.add(*examples.attempt(index, length))


def same_bytes(first: Path, second: Path) -> bool:
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in FILES)


def test_killed_at_every_single_point(tmp_path: Path) -> None:
    process = run_python(DIE_AT_EVERY_POINT, tmp_path)
    out, error = process.communicate()
    assert process.returncode == 0, error.decode()
    points = int(out)
    assert points > 40
    for point in range(points):
        folder = tmp_path / f"{point:03d}"
        ledger = folder / "ledger.jsonl"
        safe = ledger.read_bytes().rpartition(b"\n")[0] if ledger.exists() else b""
        resume(folder, 4)
        # What was in the ledger is still there, byte for byte: it was not made again.
        assert ledger.read_bytes().startswith(safe), point
        assert [record.attempt for record in Ledger(ledger).records] == [0, 1, 2, 3], point
        assert ledger.read_bytes().count(b"\n") == 4, point
        assert same_bytes(folder, tmp_path / "whole"), point
        assert list((folder / "parts").iterdir()) == [], point
        assert list(folder.rglob("*.tmp")) == [], point


@pytest.mark.parametrize("seed", range(3))
def test_killed_from_outside_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    count, length = 24, 60
    rng = np.random.default_rng(seed)
    process = run_python(GENERATE, tmp_path / "killed", count, length)
    ledger = tmp_path / "killed/ledger.jsonl"
    wanted = int(rng.integers(1, count - 1))
    while process.poll() is None and (not ledger.exists() or ledger.read_bytes().count(b"\n") < wanted):
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.02))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = ledger.read_bytes().rpartition(b"\n")[0]
    resume(tmp_path / "killed", count, length)
    assert ledger.read_bytes().startswith(before)
    resume(tmp_path / "whole", count, length)
    assert same_bytes(tmp_path / "killed", tmp_path / "whole")


def test_a_half_written_line_is_said_and_removed(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        for index in range(3):
            writer.add(*examples.attempt(index))
    whole = (tmp_path / "ledger.jsonl").read_bytes()
    (tmp_path / "ledger.jsonl").write_bytes(whole + b'{"attempt": 3, "se')
    assert len(Ledger(tmp_path / "ledger.jsonl")) == 3
    with DatasetWriter(tmp_path, examples.card()) as writer:
        assert writer.recovered == ["a half-written last line of ledger.jsonl (18 bytes) was removed"]
        assert writer.next_attempt == 3
    assert (tmp_path / "ledger.jsonl").read_bytes() == whole


def test_a_part_that_the_ledger_does_not_count_is_removed(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        writer.add(*examples.attempt(0))
    (tmp_path / "parts/attempt_000001.hdf5").write_bytes(b"anything")
    with DatasetWriter(tmp_path, examples.card()) as writer:
        assert writer.recovered == ["attempt_000001.hdf5 was removed: the ledger does not count it"]
        assert writer.quarantined == ()


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_damaged_parts_are_quarantined_and_made_again(tmp_path: Path, damage: str) -> None:
    resume(tmp_path / "whole", 6)
    folder = tmp_path / "damaged"
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        for index in range(6):
            writer.add(*examples.attempt(index))
    for index in (4, 1):
        part = folder / f"parts/attempt_{index:06d}.hdf5"
        content = part.read_bytes()
        if damage == "flipped":
            part.write_bytes(content[:5000] + bytes([content[5000] ^ 4]) + content[5001:])
        elif damage == "cut":
            part.write_bytes(content[:5000])
        else:
            part.unlink()
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        assert writer.redo == (1, 4)
        assert "attempts to be made again: 1, 4" in writer.recovered
        assert len(writer.quarantined) == (0 if damage == "gone" else 2)
        with pytest.raises(DatasetError, match="attempts 1, 4 are damaged"):
            writer.finalise()
        with pytest.raises(DatasetError, match="expected 1, got 6"):
            writer.add(*examples.attempt(6))
        writer.add(*examples.attempt(1))
    # Killed between the two: the first is not made again.
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        assert writer.redo == (4,)
        writer.add(*examples.attempt(4))
        assert writer.next_attempt == 6
        writer.finalise()
    assert same_bytes(folder, tmp_path / "whole")
    assert Ledger(folder / "ledger.jsonl").counts()["attempted"] == 6
    assert len(Dataset(folder).quarantined) == (0 if damage == "gone" else 2)


def test_a_damaged_gathered_file_is_quarantined_and_made_again(tmp_path: Path) -> None:
    resume(tmp_path / "whole", 5)
    resume(tmp_path / "damaged", 5)
    demos = tmp_path / "damaged/demos.hdf5"
    demos.write_bytes(demos.read_bytes()[:9000])
    with DatasetWriter(tmp_path / "damaged", examples.card(), keep_rejected=True) as writer:
        assert writer.redo == (0, 1, 3, 4)
        assert [path.name for path in writer.quarantined] == ["demos.hdf5"]
        assert "demos.hdf5 was moved to quarantine/demos.hdf5" in writer.recovered[0]
        for index in writer.redo:
            writer.add(*examples.attempt(index))
        writer.finalise()
    assert same_bytes(tmp_path / "damaged", tmp_path / "whole")


def test_an_attempt_made_again_may_end_otherwise(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        for index in (0, 1):
            writer.add(*examples.attempt(index))
        writer.add(examples.record(2), examples.episode(2))
    (tmp_path / "parts/attempt_000001.hdf5").unlink()
    with DatasetWriter(tmp_path, examples.card()) as writer:
        writer.add(examples.record(1, retained=False), None)
        writer.finalise()
    dataset = Dataset(tmp_path)
    assert dataset.ledger is not None
    assert [record.demo for record in dataset.ledger.records] == ["demo_0", None, "demo_1"]
    assert [episode.attempt for episode in dataset] == [0, 2]


def test_full_disk_while_adding_loses_nothing(tiny_disk: Path, tmp_path: Path) -> None:
    length, folder = 300, tiny_disk / "data"
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(2_000_000))
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        with pytest.raises(DatasetError, match=r"disk full: .*, \d+ attempts are safe in"):
            add_all(writer, 20, length)
        added = writer.next_attempt
        parts = sorted(path.name for path in (folder / "parts").iterdir())
        assert parts == [f"attempt_{record.attempt:06d}.hdf5" for record in writer.records if record.demo]
        assert 1 <= added < 19
        assert [record.attempt for record in writer.ledger.records] == list(range(added))
        assert list(folder.rglob("*.tmp")) == []
        # The same writer carries on as soon as there is room.
        ballast.unlink()
        writer.add(*examples.attempt(added, length))
    with DatasetWriter(folder, examples.card(), keep_rejected=True) as writer:
        assert writer.recovered == []
        assert writer.next_attempt == added + 1


def test_full_disk_in_the_middle_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DatasetWriter(tmp_path, examples.card()) as writer:
        writer.add(*examples.attempt(0))
        before = (tmp_path / "ledger.jsonl").read_bytes()
        real = os.write

        def half(handle: int, data: bytes) -> int:
            if len(data) > 100:
                return real(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(DatasetError, match=r"disk full: .* 1 attempts are safe in"):
                writer.add(*examples.attempt(1))
        assert (tmp_path / "ledger.jsonl").read_bytes() == before
        assert [path.name for path in (tmp_path / "parts").iterdir()] == ["attempt_000000.hdf5"]
        writer.add(*examples.attempt(1))
        writer.finalise()
    assert [episode.attempt for episode in Dataset(tmp_path)] == [0, 1]


def test_full_disk_while_gathering_loses_nothing(tiny_disk: Path) -> None:
    folder = tiny_disk / "data"
    with DatasetWriter(folder, examples.card()) as writer:
        for index in range(3):
            writer.add(*examples.attempt(index, 300))
        free = os.statvfs(tiny_disk)
        (tiny_disk / "ballast").write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - 100_000)))
        with pytest.raises(DatasetError, match=r"disk full: gathering needs .* 3 attempts are safe in"):
            writer.finalise()
        assert list(folder.rglob("*.tmp")) == []
        (tiny_disk / "ballast").unlink()
        writer.finalise()
    assert [episode.attempt for episode in Dataset(folder)] == [0, 1]


def test_disk_filled_by_others_while_gathering(tiny_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_disk / "data"
    with DatasetWriter(folder, examples.card()) as writer:
        for index in range(3):
            writer.add(*examples.attempt(index, 300))
        free = os.statvfs(tiny_disk)
        (tiny_disk / "ballast").write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - 100_000)))
        # There seemed to be room when gathering began; the writes that fail are real.
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10**12))
            with pytest.raises(DatasetError, match=r"disk full: .* 3 attempts are safe in"):
                writer.finalise()
        assert list(folder.rglob("*.tmp")) == []
        (tiny_disk / "ballast").unlink()
        writer.finalise()
    assert [episode.attempt for episode in Dataset(folder)] == [0, 1]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DatasetError, match="cannot be written"):
        DatasetWriter(tmp_path / "file/data", examples.card())
    with pytest.raises(DatasetError, match="cannot be written"):
        DatasetWriter(tmp_path / "file", examples.card())
