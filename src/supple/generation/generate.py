# SPDX-License-Identifier: Apache-2.0
"""Generation of a dataset: attempts in order, every one safe on disk before the next counts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from supple import __version__
from supple.episodes import AttemptRecord, DatasetCard, DatasetWriter, worst_soundness
from supple.episodes.versions import current_versions
from supple.errors import TaskError
from supple.generation.demonstrations import load_demonstrations
from supple.generation.engine import Job, Result, attempts_in_order
from supple.generation.selection import SourceSelector
from supple.tasks import task_named

__all__ = ["ATTEMPTS_PER_EPISODE", "GenerationSummary", "generate"]

ATTEMPTS_PER_EPISODE = 20
"""Asked for a number of retained episodes, generation gives up after this many attempts for each of them."""


class GenerationSummary(BaseModel):
    """What became of a dataset's attempts.

    Attributes:
        attempted: Attempts made, over all runs.
        completed: Of these, carried out to the end.
        rejected: Of these, not retained.
        retained: Of these, successful and kept.
        by_origin: Rejections by where they came from.
        soundness: The largest tilt in [rad], slide and penetration in [m] of all retained episodes, by name.
        sim_seconds: Simulated time of this run in [s].
        wall_seconds: Wall time of this run in [s], everything included.
        workers: Number of processes of this run.
        complete: Whether as much was made as was asked for.
        recovered: What had to be repaired on resuming, one sentence each.
    """

    model_config = ConfigDict(extra="forbid")

    attempted: int = 0
    completed: int = 0
    rejected: int = 0
    retained: int = 0
    by_origin: dict[str, int] = {}
    soundness: dict[str, float] = {}
    sim_seconds: float = 0.0
    wall_seconds: float = 0.0
    workers: int = 1
    complete: bool = False
    recovered: list[str] = []


def _card(job: Job, name: str) -> DatasetCard:
    task = task_named(job.task)
    task.check_distribution(job.distribution)
    # Read and checked here, before any worker starts, so that a faulty seed is one clear error.
    SourceSelector(task, load_demonstrations(task, job.seed_files), job.settings)
    return DatasetCard(
        name=name,
        task=job.task,
        distribution=job.distribution,
        robot=task.robot.name,
        seed=job.seed,
        source=", ".join(path.name for path in job.seed_files),
        source_sha256=", ".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in job.seed_files),
        settings=job.settings.resolved(task.skills).model_dump(),
        contract=task.robot.contract,
        versions=current_versions(),
        created=date.today().isoformat(),
        supple=__version__,
    )


def _planned(writer: DatasetWriter, attempts: int | None, limit: int) -> Iterator[int]:
    yield from writer.redo
    yield from range(len(writer.records), attempts if attempts is not None else limit)


def generate(
    job: Job,
    folder: Path,
    *,
    attempts: int | None = None,
    episodes: int | None = None,
    workers: int = 1,
    engine: Callable[[Job, Iterable[int], int], Iterator[Result]] = attempts_in_order,
    on_attempt: Callable[[AttemptRecord, GenerationSummary], None] | None = None,
) -> GenerationSummary:
    """Make a dataset, or carry on one that was interrupted.

    The same job gives the same ``demos.hdf5`` byte for byte, whatever the engine, the number of workers and however
    often it was interrupted.

    Args:
        job: What to make.
        folder: The dataset's folder.
        attempts: Exactly so many attempts in all, or ...
        episodes: ... as many as it takes to retain this number of episodes.
        workers: Number of processes.
        engine: What makes the attempts: processes of this machine, or ``attempts_on_ray``.
        on_attempt: Called after each attempt with its record and the summary so far.

    Raises:
        TaskError: Neither or both of attempts and episodes, or a number below zero.
        SeedError: The seed does not fit the task.
        DatasetError: The folder holds another dataset, or the disk is full; what was made before is safe.
    """
    if (attempts is None) == (episodes is None):
        raise TaskError("either a number of attempts or a number of episodes is wanted, not both and not neither")
    if min(value for value in (attempts, episodes) if value is not None) < 0 or workers < 1:
        raise TaskError(f"expected attempts or episodes >= 0 and workers >= 1, got {attempts}, {episodes}, {workers}")
    if job.seed < 0:
        raise TaskError(f"expected a seed >= 0, got {job.seed}")
    began = time.perf_counter()
    summary = GenerationSummary(workers=workers)
    with DatasetWriter(folder, _card(job, folder.name), keep_rejected=job.keep_rejected) as writer:
        summary.recovered = list(writer.recovered)
        _count(summary, writer)
        limit = ATTEMPTS_PER_EPISODE * (episodes or 0)

        def enough() -> bool:
            return episodes is not None and summary.retained >= episodes and not writer.redo

        planned = _planned(writer, attempts, limit)
        results = engine(job, planned, workers) if not enough() else iter(())
        try:
            for record, episode in results:
                stored = writer.add(record, episode)
                _count(summary, writer)
                summary.sim_seconds += record.sim_seconds
                summary.wall_seconds = time.perf_counter() - began
                if on_attempt is not None:
                    on_attempt(stored, summary)
                if enough():
                    break
        finally:
            if hasattr(results, "close"):
                results.close()
        writer.finalise()
        summary.soundness = worst_soundness(writer.records)
    summary.complete = summary.attempted >= attempts if attempts is not None else summary.retained >= (episodes or 0)
    summary.wall_seconds = time.perf_counter() - began
    return summary


def _count(summary: GenerationSummary, writer: DatasetWriter) -> None:
    records = writer.records
    summary.attempted = len(records)
    summary.completed = sum(record.completed for record in records)
    summary.retained = sum(record.outcome == "retained" for record in records)
    summary.rejected = summary.attempted - summary.retained
    origins = [record.origin.value for record in records if record.origin is not None]
    summary.by_origin = {origin: origins.count(origin) for origin in sorted(set(origins))}
