# SPDX-License-Identifier: Apache-2.0
"""The stream of messages of a bag (rosbag2 version 9, MCAP): their order, latched topics, stamps and errors."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rosbags.interfaces import Connection, Qos, QosDurability
from rosbags.typesys.store import Typestore

from supple.episodes.bag_folder import BagFolder, GrowingBag, WholeBag
from supple.episodes.bag_types import LATCHED, RELIABLE, message_types
from supple.errors import DatasetError, UnknownNameError, disk_is_full

__all__ = ["BagStream"]

_DAY_NS = 86_400 * 10**9


class BagStream:
    """Writes one bag; a context manager. The bag appears whole at its path on closing, or not at all after an error.

    A growing one is a log: it is at its path at once and can be read at any moment up to the last ``flush``, even after
    its process was killed; an error leaves what was written.

    Latched topics (``tf_static``, ``robot_description``) are written ahead of everything else and must come before the
    first ordinary message. An ordinary message with an unset stamp (zero or less) is dropped and counted: a recorder
    sees such messages before the first clock arrives, and one of them would make the bag last for decades.
    A growing bag takes latched messages late as well: it cannot know what will come.

    Args:
        path: Folder of the bag; must not exist.
        namespace: Prefix of every topic, e.g. ``"g1"``.
        types: Message types; ``message_types()`` if absent.
        growing: Whether the bag is a log.

    Attributes:
        path: Folder of the bag.
        cut_off: Where an unfinished bag of this name was moved that a killed process had left; None if there was none.
        dropped: Number of messages without a stamp, by topic.
        types: Message types, for ``write``.

    Raises:
        DatasetError: The path exists, is being written by another process, or cannot be written.
    """

    def __init__(
        self, path: Path | str, *, namespace: str = "", types: Typestore | None = None, growing: bool = False
    ) -> None:
        self.path = Path(path)
        self.types = types or message_types()
        self.dropped: dict[str, int] = {}
        self._prefix = "/" + f"{namespace.strip('/')}/".lstrip("/")
        self._connections: dict[str, Connection] = {}
        self._newest: dict[str, int] = {}
        self._latched: list[tuple[str, str, bytes]] = []
        self._started = False
        self._closed = False
        if self.path.exists():
            raise DatasetError(f"{self.path}: exists already; remove it or choose another path")
        self._growing = growing
        try:
            self._folder: BagFolder = GrowingBag(self.path) if growing else WholeBag(self.path)
        except OSError as error:
            raise self._failure(error) from error
        self.cut_off = self._folder.cut_off

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def close(self) -> Path:
        """Finish the bag and put it at its path; may be called twice.

        Raises:
            DatasetError: The disk is full or cannot be written; nothing is left behind.
        """
        if self._closed:
            return self.path
        try:
            self._start(1)
            self._folder.finish()
        except OSError as error:
            self.abort()
            raise self._failure(error) from error
        self._closed = True
        return self.path

    def abort(self) -> None:
        """Give up the bag and remove what was written, unless it is a log; may be called twice."""
        if not self._closed:
            self._closed = True
            self._folder.abort()

    def flush(self) -> None:
        """Make everything up to here readable, in a log.

        Raises:
            DatasetError: The disk is full or cannot be written.
        """
        try:
            self._folder.flush()
        except OSError as error:
            self.abort()
            raise self._failure(error) from error

    def write(self, topic: str, kind: str, stamp_ns: int, message: Any, qos: Qos = RELIABLE) -> None:
        """Write a message of any known type.

        Args:
            topic: Relative topic name, e.g. ``"joint_states"``.
            kind: Message type, e.g. ``"sensor_msgs/msg/JointState"``.
            stamp_ns: Time of the message in [ns]; ignored for latched topics.
            message: Message made from ``types.types[kind]``.
            qos: Profile that a player should offer.

        Raises:
            DatasetError: Its stamp goes back or leaps by more than a day, a latched topic comes late, the topic has
                another type, or the disk is full; names the topic.
        """
        self._check(topic, kind, qos)
        if not self._first(qos) and not self._admit(topic, int(stamp_ns)):
            return
        try:
            data = bytes(self.types.serialize_cdr(message, kind))
        except (TypeError, ValueError, AttributeError, OverflowError, AssertionError) as error:
            raise DatasetError(f"{self.path}: topic {topic!r}: the message does not fit {kind}: {error}") from error
        self._store(topic, kind, int(stamp_ns), data, qos)

    def write_serialized(self, topic: str, kind: str, stamp_ns: int, data: bytes, qos: Qos = RELIABLE) -> None:
        """Write a message as it came over the wire (CDR); otherwise as ``write``."""
        self._check(topic, kind, qos)
        if self._first(qos) or self._admit(topic, int(stamp_ns)):
            self._store(topic, kind, int(stamp_ns), data, qos)

    @staticmethod
    def _latches(qos: Qos) -> bool:
        return bool(qos.durability == QosDurability.TRANSIENT_LOCAL)

    def _first(self, qos: Qos) -> bool:
        return self._latches(qos) and not self._started

    def _check(self, topic: str, kind: str, qos: Qos) -> None:
        if self._closed:
            raise DatasetError(f"{self.path}: this bag is closed")
        if kind not in self.types.types:
            raise UnknownNameError("message type", kind, self.types.types)
        if self._latches(qos) and self._started and not self._growing:
            raise DatasetError(
                f"{self.path}: latched topic {topic!r} must be written before the first ordinary message, or a player "
                "that starts later never sends it"
            )

    def _store(self, topic: str, kind: str, stamp_ns: int, data: bytes, qos: Qos) -> None:
        try:
            if self._first(qos):
                self._latched.append((topic, kind, data))
                return
            self._start(stamp_ns)
            self._put(topic, kind, stamp_ns, data, qos)
        except OSError as error:
            self.abort()
            raise self._failure(error) from error

    def _admit(self, topic: str, stamp_ns: int) -> bool:
        if stamp_ns <= 0:
            self.dropped[topic] = self.dropped.get(topic, 0) + 1
            return False
        newest = self._newest.get(topic)
        if newest is not None and stamp_ns < newest:
            raise DatasetError(f"{self.path}: topic {topic!r}: stamps go back from {newest} ns to {stamp_ns} ns")
        if newest is not None and stamp_ns - newest > _DAY_NS:
            raise DatasetError(
                f"{self.path}: topic {topic!r}: stamps leap by more than a day from {newest} ns to {stamp_ns} ns"
            )
        self._newest[topic] = stamp_ns
        return True

    def _start(self, stamp_ns: int) -> None:
        if self._started:
            return
        self._started = True
        for topic, kind, data in self._latched:
            self._put(topic, kind, stamp_ns - 1, data, LATCHED)
        self._latched.clear()

    def _put(self, topic: str, kind: str, stamp_ns: int, data: bytes, qos: Qos) -> None:
        connection = self._connections.get(topic)
        if connection is None:
            # Announced only when its first message follows, since a chunk without messages has no valid time span.
            name = self._prefix + topic.lstrip("/")
            connection = self._folder.writer.add_connection(
                name, kind, typestore=self.types, offered_qos_profiles=[qos]
            )
            self._connections[topic] = connection
        elif connection.msgtype != kind:
            raise DatasetError(f"{self.path}: topic {topic!r} carries {connection.msgtype}, got {kind}")
        self._folder.writer.write(connection, stamp_ns, data)

    def _failure(self, error: OSError) -> DatasetError:
        reason = "disk full" if disk_is_full(error) else error.strerror or str(error)
        fate = "the log ends here" if self._growing else "the bag was not written"
        return DatasetError(f"{self.path}: {reason}: {fate}")
