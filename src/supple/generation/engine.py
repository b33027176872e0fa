# SPDX-License-Identifier: Apache-2.0
"""Engines: run attempts one after the other or in several processes, results always in order of attempt."""

from __future__ import annotations

import copyreg
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from types import MappingProxyType

from supple.episodes import AttemptRecord, Episode
from supple.errors import SceneError
from supple.generation.attempt import AttemptRunner
from supple.generation.demonstrations import load_demonstrations
from supple.generation.settings import GenerationSettings
from supple.tasks import task_named

__all__ = ["Job", "Result", "attempts_in_order", "picklable_mappings"]

Result = tuple[AttemptRecord, Episode | None]
"""The record of an attempt, and its episode if it is to be kept."""


@dataclass(frozen=True)
class Job:
    """What a worker needs to make any attempt of a dataset.

    Attributes:
        task: Name of the task.
        distribution: Initial distribution.
        seed: Seed of the dataset.
        seed_file: The demonstration, or a file with several.
        settings: How to generate.
        keep_rejected: Whether episodes of rejected attempts are to be sent back.
        further_seed_files: Files with more demonstrations.
    """

    task: str
    distribution: str
    seed: int
    seed_file: Path
    settings: GenerationSettings
    keep_rejected: bool
    further_seed_files: tuple[Path, ...] = ()

    @property
    def seed_files(self) -> tuple[Path, ...]:
        """All files with demonstrations."""
        return self.seed_file, *self.further_seed_files

    def runner(self) -> AttemptRunner:
        """Make what runs attempts in this process."""
        task = task_named(self.task)
        return AttemptRunner(task, load_demonstrations(task, self.seed_files), self.settings)

    def run(self, runner: AttemptRunner, attempt: int) -> Result:
        """Make one attempt."""
        record, episode = runner.run(attempt, self.seed, self.distribution)
        return record, episode if self.keep_rejected or record.outcome == "retained" else None


_worker: tuple[Job, AttemptRunner] | None = None


def _restore_mapping(items: dict[str, object]) -> MappingProxyType[str, object]:
    return MappingProxyType(items)


def picklable_mappings() -> None:
    """Let this process send and receive episodes."""
    # Episodes hold read-only mappings, which pickle does not know.
    copyreg.pickle(MappingProxyType, lambda mapping: (_restore_mapping, (dict(mapping),)))


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _start_worker(job: Job) -> None:
    global _worker
    picklable_mappings()
    # Ctrl-C is the parent's to handle; a parent that is killed takes its workers along.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _worker = (job, job.runner())


def _run_in_worker(attempt: int) -> Result:
    if _worker is None:
        raise SceneError("a worker was given an attempt before it was started")
    job, runner = _worker
    return job.run(runner, attempt)


def attempts_in_order(job: Job, indices: Iterable[int], workers: int) -> Iterator[Result]:
    """Make attempts and yield their results in the order of the indices, whatever the number of workers.

    Args:
        job: What to make.
        indices: Attempts to make; may be endless, it is read only a little ahead.
        workers: Number of processes; 1 runs in this one.

    Raises:
        SceneError: A worker process died twice over the same attempt.
    """
    if workers == 1:
        runner = job.runner()
        for index in indices:
            yield job.run(runner, index)
        return
    picklable_mappings()
    source = iter(indices)
    waiting: list[int] = []
    deaths: dict[int, int] = {}
    while True:
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (job,))
        futures: list[Future[Result]] = []
        try:
            while True:
                # Noted before it is given away: a pool that broke meanwhile refuses it, and it must not be lost.
                waiting += itertools.islice(source, max(0, 2 * workers - len(waiting)))
                futures += [pool.submit(_run_in_worker, index) for index in waiting[len(futures) :]]
                if not futures:
                    return
                result = futures.pop(0).result()
                waiting.pop(0)
                yield result
        except BrokenProcessPool as error:
            # A worker was killed (out of memory, say): what was under way is made again, in the same order.
            first = waiting[0] if waiting else -1
            deaths[first] = deaths.get(first, 0) + 1
            if deaths[first] > 1:
                raise SceneError(f"a worker process died twice while attempt {first} was under way") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            if waiting:
                # Interrupted: nobody wants what is under way, and the process would wait for it before it ends.
                for worker in set(multiprocessing.active_children()) - others:
                    worker.terminate()
