# SPDX-License-Identifier: Apache-2.0
"""A thread that does the newest piece of work there is; what it could not keep up with is left out and counted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["LatestWorker"]

Job = TypeVar("Job")


class LatestWorker(Generic[Job]):
    """Work on jobs in a thread of its own, so that whoever offers them goes on receiving.

    Args:
        work: Does one job, and handles the errors that it expects.
        name: Name of the thread.

    Attributes:
        skipped: Jobs that a newer one replaced before they were begun.
        error: What ended the thread before it was closed; whoever offers jobs raises it.
    """

    def __init__(self, work: Callable[[Job], None], name: str) -> None:
        self._work = work
        self._changed = threading.Condition()
        self._job: Job | None = None
        self._open = True
        self.skipped = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def offer(self, job: Job) -> None:
        """Put a job in place of the one that waits, if one does."""
        with self._changed:
            self.skipped += self._job is not None
            self._job = job
            self._changed.notify()

    def close(self) -> None:
        """Finish the job at hand and end."""
        with self._changed:
            self._open = False
            self._changed.notify()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._job is not None or not self._open)
                job, self._job = self._job, None
                if job is None or not self._open:
                    return
            try:
                self._work(job)
            except Exception as error:
                self.error = error
                return
