# SPDX-License-Identifier: Apache-2.0
"""One bag while it is written: serialised messages in, a thread that writes them, and an account of what was lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rosbags.interfaces import Qos

from supple.episodes import BagWriter
from supple.errors import DatasetError, SuppleError

__all__ = ["BagReport", "BagTake"]

Row = tuple[str, str, int, bytes, Qos]

# What waits to be written when the disk is slow, in bytes; more is dropped and counted.
_WAITING_LIMIT = 256 * 2**20
# Messages are written in batches: to wake the thread for each of thousands a second costs more than to write them.
_GATHERED_FOR = 0.05
# A growing bag is readable up to so long ago, in [s].
_FLUSHED_EVERY = 0.25


@dataclass(frozen=True)
class BagReport:
    """What became of a bag.

    Attributes:
        path: The bag.
        written: Number of messages written, by topic.
        lost: Number of messages that were lost, by topic and how.
        failure: Why there is no bag; empty if there is.
    """

    path: Path
    written: dict[str, int]
    lost: dict[str, int]
    failure: str = ""

    def __str__(self) -> str:
        """Return one line for a person."""
        if self.failure:
            return f"no bag: {self.failure}"
        losses = ", ".join(f"{count} of {what}" for what, count in sorted(self.lost.items()))
        lost = f"LOST {losses}" if losses else "none lost"
        return f"bag {self.path.name}: {sum(self.written.values())} messages on {len(self.written)} topics, {lost}"


class BagTake:
    """One bag while it is written.

    Args:
        path: Folder of the bag; must not exist.
        latched: Latched messages received before: topic, type, serialised message, offered quality of service.
        growing: Whether it is a log, which can be read while it is written and takes late latched messages too.

    Raises:
        DatasetError: The bag cannot be made.
    """

    def __init__(self, path: Path, latched: Sequence[tuple[str, str, bytes, Qos]], growing: bool = False) -> None:
        self.path, self.growing = path, growing
        self._writer = BagWriter(path, growing=growing)
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._waiting = 0
        self._written: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._failure = ""
        for topic, kind, data, profile in latched:
            self._writer.write_serialized(topic, kind, 0, data, profile)
            self._written[topic] += 1
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="bag", daemon=True)
        self._thread.start()

    def put(self, topic: str, kind: str, stamp_ns: int, data: bytes, profile: Qos) -> None:
        """Take in a message; never waits for the disk."""
        with self._lock:
            if self._waiting + len(data) <= _WAITING_LIMIT and not self._failure:
                self._waiting += len(data)
                self._rows.append((topic, kind, stamp_ns, data, profile))
            else:
                self._lost[topic if self._failure else f"{topic} (disk too slow)"] += 1

    def lose(self, topic: str, count: int) -> None:
        """Count messages that never arrived."""
        with self._lock:
            self._lost[f"{topic} (on the way)"] += count

    @property
    def failure(self) -> str:
        """Why nothing more is written; empty if it is."""
        return self._failure

    @property
    def waiting(self) -> int:
        """What waits to be written in bytes."""
        return self._waiting

    def _write(self) -> None:
        flushed = time.monotonic()
        while True:
            last = self._closing.wait(_GATHERED_FOR)
            with self._lock:
                rows, self._rows = self._rows, []
            for row in rows:
                if self._attempt(partial(self._writer.write_serialized, *row)):
                    self._written[row[0]] += 1
                else:
                    self._lost[row[0]] += 1
            with self._lock:
                self._waiting -= sum(len(row[3]) for row in rows)
            if self.growing and time.monotonic() - flushed > _FLUSHED_EVERY:
                self._attempt(self._writer.flush)
                flushed = time.monotonic()
            if last and not rows:
                return

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Do something with the file, unless that has failed before, and tell whether it went well."""
        if self._failure:
            return False
        try:
            work()
        except SuppleError as error:
            with self._lock:
                self._failure = str(error)
            return False
        return True

    def _end_of_thread(self) -> None:
        self._closing.set()
        self._thread.join()

    def close(self, last: Callable[[BagReport], Row] | None = None) -> BagReport:
        """Write what still waits and finish the bag; the longest part is the disk's.

        Args:
            last: Makes one more message, which says what the bag holds: topic, type, time in [ns], serialised message,
                offered quality of service.
        """
        self._end_of_thread()
        if last is not None and not self._failure:
            row = last(self._report())
            if self._attempt(partial(self._writer.write_serialized, *row)):
                self._written[row[0]] += 1
        if not self._failure:
            try:
                self._writer.close()
            except DatasetError as error:
                self._failure = str(error)
        else:
            self._writer.abort()
        return self._report()

    def _report(self) -> BagReport:
        unstamped = {f"{topic} (no stamp yet)": count for topic, count in self._writer.dropped.items()}
        written = {topic: n - self._writer.dropped.get(topic, 0) for topic, n in self._written.items()}
        return BagReport(self.path, written, dict(self._lost) | unstamped, self._failure)

    def discard(self) -> None:
        """Remove the bag."""
        self._end_of_thread()
        self._writer.abort()
