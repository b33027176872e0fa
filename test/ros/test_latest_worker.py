# SPDX-License-Identifier: Apache-2.0
"""A worker that is too slow leaves jobs out and counts them; one that fails says so to whoever feeds it."""

from __future__ import annotations

import signal
import threading
import time

import pytest
import rclpy
from rclpy.node import Node

from supple.nodes.diagnostics import steady_clock
from supple.nodes.latest_worker import LatestWorker
from supple.nodes.runtime import run_node


def test_the_newest_job_is_done_and_the_others_are_counted():
    begun, go, done = threading.Event(), threading.Event(), []

    def work(job: int) -> None:
        begun.set()
        assert go.wait(10.0)
        done.append(job)

    worker = LatestWorker(work, "worker")
    worker.offer(0)
    assert begun.wait(10.0)
    for job in range(1, 6):
        worker.offer(job)
    go.set()
    deadline = time.monotonic() + 10.0
    while len(done) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.close()
    assert done == [0, 5]
    assert worker.skipped == 4
    assert worker.error is None


def test_a_failure_is_kept():
    worker = LatestWorker(lambda job: 1 // job, "worker")
    worker.offer(0)
    deadline = time.monotonic() + 10.0
    while worker.error is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert isinstance(worker.error, ZeroDivisionError)
    worker.close()


class Failing(Node):
    """A node whose timer finds that its worker has failed."""

    def __init__(self) -> None:
        super().__init__("failing")
        self.worker = LatestWorker(lambda job: 1 // job, "worker")
        self.worker.offer(0)
        self.create_timer(0.02, self.look, clock=steady_clock())

    def look(self) -> None:
        if self.worker.error is not None:
            raise self.worker.error

    def start(self) -> None:
        """Nothing to begin."""

    def make_safe(self) -> None:
        self.worker.close()


@pytest.fixture
def signals():
    """Leave Ctrl-C to pytest again: a node takes it for itself."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_a_node_ends_with_its_worker(signals):
    with pytest.raises(ZeroDivisionError):
        run_node(Failing, [])
    assert not rclpy.ok()
