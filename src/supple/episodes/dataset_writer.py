# SPDX-License-Identifier: Apache-2.0
"""Writing a dataset so that a kill, a crash or a full disk at any moment loses nothing that the ledger counts."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import h5py
import numpy as np

from supple.episodes.atomic import TEMPORARY_SUFFIX, replacing, sync_folder, write_atomically
from supple.episodes.card import DatasetCard
from supple.episodes.episode import Episode
from supple.episodes.hdf5_store import FORMAT_VERSION, attempt_of, episode_image, opened
from supple.episodes.ledger import AttemptRecord, Ledger
from supple.episodes.validation import validate
from supple.errors import DatasetError, disk_is_full

__all__ = ["CARD", "DEMOS", "LEDGER", "PARTS", "QUARANTINE", "REJECTED", "DatasetWriter"]

CARD = "dataset.yaml"
DEMOS = "demos.hdf5"
REJECTED = "rejected.hdf5"
LEDGER = "ledger.jsonl"
PARTS = "parts"
QUARANTINE = "quarantine"

_FILES = {"retained": DEMOS, "rejected": REJECTED}
_VALIDATION_SHARE = 10
_ADVICE = "move it away and resume, so that its attempts are made again"


class DatasetWriter:
    """The one writer of a dataset folder; a context manager.

    Attempts are added in order. An episode goes to its own part file first, then its line to the ledger, both flushed
    to the disk; ``finalise`` gathers the parts. Opening a folder again repairs what a kill left behind and says so.

    Args:
        folder: The dataset's folder; made if needed.
        card: What is being made. A folder that holds something else is refused.
        resume: Whether a folder that already holds attempts is carried on.
        keep_rejected: Whether episodes of rejected attempts are kept in ``rejected.hdf5``.

    Attributes:
        folder: The dataset's folder.
        card: The card as it is on disk.
        recovered: What had to be repaired on opening, one sentence each.

    Raises:
        DatasetError: The folder belongs to another dataset (names each difference), is being written by another
            process, or its ledger is damaged beyond a half-written last line.
    """

    def __init__(
        self, folder: Path | str, card: DatasetCard, *, resume: bool = True, keep_rejected: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.recovered: list[str] = []
        self._keep_rejected = keep_rejected
        self._records: list[AttemptRecord] = []
        self._redo: list[int] = []
        self._lock = -1
        with self._disk_guard():
            (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
        try:
            with self._disk_guard():
                self.card = self._admitted(card, resume)
                self._recover()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def ledger(self) -> Ledger:
        """The ledger as it is on disk."""
        return Ledger(self.folder / LEDGER)

    @property
    def records(self) -> tuple[AttemptRecord, ...]:
        """Every attempt so far, in order, the damaged ones included."""
        return tuple(self._records)

    @property
    def redo(self) -> tuple[int, ...]:
        """Attempts that the ledger counts but whose episode is damaged: they must be made again, in this order."""
        return tuple(self._redo)

    @property
    def next_attempt(self) -> int:
        """Index of the attempt to make next: the first damaged one, else the first that the ledger lacks."""
        return self._redo[0] if self._redo else len(self._records)

    @property
    def quarantined(self) -> tuple[Path, ...]:
        """Damaged files that were set aside."""
        folder = self.folder / QUARANTINE
        return tuple(sorted(folder.iterdir())) if folder.is_dir() else ()

    def add(self, record: AttemptRecord, episode: Episode | None) -> AttemptRecord:
        """Add the next attempt; when this returns, it is safe on disk.

        Args:
            record: What became of it; ``demo`` and ``sha256`` are filled in here.
            episode: Its episode. Needed if retained; if rejected it is kept only with ``keep_rejected``.

        Returns:
            The record as it stands in the ledger.

        Raises:
            DatasetError: Not the next attempt, the episode is malformed or belongs to something else, or the disk is
                full (nothing half-written is left, and the attempt can be added again).
        """
        self._check_open()
        if record.attempt != self.next_attempt:
            raise DatasetError(
                f"{self.folder}: attempts are added in order: expected {self.next_attempt}, got {record.attempt}"
            )
        if record.outcome == "retained" and episode is None:
            raise DatasetError(f"{self.folder}: attempt {record.attempt} is retained but has no episode")
        stored = episode is not None and (record.outcome == "retained" or self._keep_rejected)
        part = self._part(record.attempt)
        with self._disk_guard():
            record = record.model_copy(update={"demo": None, "sha256": None})
            if stored and episode is not None:
                self._check(record, episode)
                image = episode_image(episode)
                earlier = self._records[: record.attempt]
                place = sum(r.outcome == record.outcome and r.demo is not None for r in earlier)
                record = record.model_copy(
                    update={"demo": f"demo_{place}", "sha256": hashlib.sha256(image).hexdigest()}
                )
                write_atomically(part, image)
            try:
                self._append(record.line())
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        if self._redo:
            self._records[record.attempt] = record
            self._redo.pop(0)
        else:
            self._records.append(record)
        return record

    def finalise(self) -> Path:
        """Gather all parts into ``demos.hdf5`` (and ``rejected.hdf5``) in order of attempt and update the card.

        It may be called again after more attempts. The result depends on the episodes alone, not on how often the work
        was interrupted. Memory stays flat: episodes are copied one after the other, compressed as they are.

        Returns:
            Path of ``demos.hdf5``.

        Raises:
            DatasetError: A damaged attempt was not made again, a part is damaged, or the disk is full.
        """
        self._check_open()
        if self._redo:
            raise DatasetError(
                f"{self.folder}: attempts {', '.join(map(str, self._redo))} are damaged and not made again yet"
            )
        with self._disk_guard():
            for outcome, name in _FILES.items():
                stored = [r for r in self._records if r.outcome == outcome and r.demo is not None]
                path = self.folder / name
                if stored or outcome == "retained":
                    merged = self._merged(path)
                    if list(merged) != [r.attempt for r in stored] or not path.is_file():
                        self._gather(path, stored, merged)
            for part in sorted((self.folder / PARTS).iterdir()):
                part.unlink()
            sync_folder(self.folder / PARTS)
            counts = Ledger(self.folder / LEDGER).counts()
            self.card = self.card.model_copy(update={"counts": counts})
            self.card.write(self.folder / CARD)
        return self.folder / DEMOS

    def close(self) -> None:
        """Let go of the folder without finalising; may be called twice."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check_open(self) -> None:
        if self._lock < 0:
            raise DatasetError(f"{self.folder}: this writer is closed")

    def _locked(self) -> int:
        handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise DatasetError(
                f"{self.folder}: another process is writing this dataset; wait for it or use another folder"
            ) from error
        return handle

    @contextmanager
    def _disk_guard(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError) as error:
            if disk_is_full(error):
                safe = f"{len(self._records)} attempts are safe in {self.folder}"
                raise DatasetError(f"disk full: nothing more can be written, {safe}") from error
            if isinstance(error, PermissionError | NotADirectoryError):
                raise DatasetError(f"{error.filename}: cannot be written: {error.strerror}") from error
            raise

    def _admitted(self, card: DatasetCard, resume: bool) -> DatasetCard:
        path = self.folder / CARD
        if not path.is_file():
            if present := [name for name in (LEDGER, *_FILES.values()) if (self.folder / name).exists()]:
                raise DatasetError(
                    f"{self.folder}: holds {', '.join(present)} but no {CARD}, so nobody can tell what it belongs to"
                )
            card = card.model_copy(update={"counts": {}})
            card.write(path)
            return card
        there = DatasetCard.read(path)
        if differences := card.differences(there):
            raise DatasetError(f"{self.folder}: holds another dataset: " + "; ".join(differences))
        if not resume and Ledger(self.folder / LEDGER).records:
            raise DatasetError(f"{self.folder}: already holds attempts; resume it or use another folder")
        return there

    def _recover(self) -> None:
        for place in (self.folder, self.folder / PARTS):
            for left in place.glob(f".*{TEMPORARY_SUFFIX}"):
                left.unlink()
        path = self.folder / LEDGER
        ledger = Ledger(path)
        if ledger.cut_off:
            os.truncate(path, path.stat().st_size - ledger.cut_off)
            self.recovered.append(f"a half-written last line of {LEDGER} ({ledger.cut_off} bytes) was removed")
        self._records = list(ledger.records)
        merged: dict[str, set[int]] = {}
        for outcome, name in _FILES.items():
            try:
                merged[outcome] = set(self._merged(self.folder / name))
            except DatasetError as error:
                self._quarantine(self.folder / name, str(error))
                merged[outcome] = set()
        stored = {r.attempt: r for r in self._records if r.demo is not None}
        by_part = {self._part(attempt): r for attempt, r in stored.items()}
        for part in sorted((self.folder / PARTS).iterdir()):
            record = by_part.get(part)
            if record is None:
                part.unlink()
                self.recovered.append(f"{part.name} was removed: the ledger does not count it")
            elif hashlib.sha256(part.read_bytes()).hexdigest() != record.sha256:
                if record.attempt in merged[record.outcome]:
                    part.unlink()
                else:
                    self._quarantine(part, "its checksum differs from the ledger's")
        self._redo = [
            r.attempt
            for r in stored.values()
            if r.attempt not in merged[r.outcome] and not self._part(r.attempt).is_file()
        ]
        if self._redo:
            self.recovered.append(f"attempts to be made again: {', '.join(map(str, self._redo))}")

    def _quarantine(self, path: Path, why: str) -> None:
        folder = self.folder / QUARANTINE
        folder.mkdir(exist_ok=True)
        target = folder / path.name
        count = 1
        while target.exists():
            target = folder / f"{path.name}.{count}"
            count += 1
        path.replace(target)
        sync_folder(folder)
        sync_folder(path.parent)
        self.recovered.append(f"{path.name} was moved to {QUARANTINE}/{target.name}: {why}")

    def _part(self, attempt: int) -> Path:
        return self.folder / PARTS / f"attempt_{attempt:06d}.hdf5"

    def _check(self, record: AttemptRecord, episode: Episode) -> None:
        where = f"attempt {record.attempt}"
        for key, expected in (
            ("attempt", record.attempt),
            ("task", self.card.task),
            ("distribution", self.card.distribution),
            ("robot", self.card.robot),
        ):
            if getattr(episode, key) != expected:
                raise DatasetError(f"{where}: {key}: expected {expected!r}, got {getattr(episode, key)!r}")
        if differences := self.card.contract.differences(episode.contract):
            raise DatasetError(f"{where}: contract: " + "; ".join(differences))
        if record.outcome == "retained" and not episode.outcome.success:
            raise DatasetError(f"{where}: retained, but its episode did not succeed: {episode.outcome.reason}")
        validate(episode, where)

    def _append(self, line: bytes) -> None:
        path = self.folder / LEDGER
        is_new = not path.exists()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            before = os.fstat(handle).st_size
            try:
                left = line
                while left:
                    left = left[os.write(handle, left) :]
                os.fsync(handle)
            except BaseException:
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)
        if is_new:
            sync_folder(self.folder)

    def _merged(self, path: Path) -> dict[int, str]:
        """Return the names in a gathered file by attempt, in order of attempt."""
        if not path.is_file():
            return {}
        with opened(path, _ADVICE) as file:
            if "data" not in file:
                raise DatasetError(f"{path}: has no group 'data'")
            found = {attempt_of(file["data"][name], f"{path}: {name}"): name for name in file["data"]}
        return dict(sorted(found.items()))

    def _gather(self, path: Path, stored: list[AttemptRecord], merged: dict[int, str]) -> None:
        parts = [self._part(r.attempt) for r in stored if r.attempt not in merged]
        need = sum(part.stat().st_size for part in parts) + (path.stat().st_size if path.is_file() else 0)
        free = shutil.disk_usage(self.folder).free
        if need > free:
            # Found out before an hour of copying, not after it.
            raise DatasetError(
                f"disk full: gathering needs {need / 1e6:.1f} MB beside the parts, {free / 1e6:.1f} MB are free; "
                f"{len(self._records)} attempts are safe in {self.folder}"
            )
        with replacing(path) as temporary, h5py.File(temporary, "w") as target:
            target.attrs["supple_format"] = FORMAT_VERSION
            data = target.create_group("data")
            names = []
            total = 0
            for place, record in enumerate(stored):
                name = f"demo_{place}"
                if record.attempt in merged:
                    with opened(path, _ADVICE) as source:
                        source.copy(source["data"][merged[record.attempt]], data, name=name)
                else:
                    with opened(self._part(record.attempt), _ADVICE) as source:
                        source.copy(source["episode"], data, name=name)
                names.append(name)
                total += int(data[name].attrs["num_samples"])
            data.attrs["total"] = total
            data.attrs["env_args"] = json.dumps(self._env_args(), sort_keys=True)
            mask = target.create_group("mask")
            valid = [n for i, n in enumerate(names) if i % _VALIDATION_SHARE == _VALIDATION_SHARE - 1]
            # A loader that asks for a share expects something in it.
            valid = valid or names[1:][-1:]
            for key, chosen in (("train", sorted(set(names) - set(valid), key=names.index)), ("valid", valid)):
                mask.create_dataset(key, data=np.array(chosen, dtype="S16"), track_times=False)

    def _env_args(self) -> dict[str, object]:
        card = self.card
        return {
            "env_name": card.task,
            "env_version": card.versions.get("mujoco", ""),
            "type": 2,
            "env_kwargs": {"task": card.task, "distribution": card.distribution, "robot": card.robot},
        }
