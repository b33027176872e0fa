# SPDX-License-Identifier: Apache-2.0
"""Bags (rosbag2, MCAP): read back into memory, without rclpy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosbags.interfaces import ConnectionExtRosbag2, Qos
from rosbags.rosbag2 import Reader, ReaderError

from supple.episodes.bag_types import message_types
from supple.errors import DatasetError, UnknownNameError

__all__ = ["BagContents", "read_bag", "stream_bag"]


_DAMAGE = (OSError, ReaderError, ValueError, KeyError, AssertionError, RuntimeError)


@dataclass(frozen=True)
class BagContents:
    """What a bag holds.

    Attributes:
        types: Message type by topic.
        counts: Number of messages by topic.
        qos: Profile that a player offers, by topic.
        start_ns: Time of the first message in [ns].
        end_ns: Time of the last message in [ns].
        messages: (time in [ns], message) in order of time, by topic.
    """

    types: Mapping[str, str]
    counts: Mapping[str, int]
    qos: Mapping[str, Qos]
    start_ns: int
    end_ns: int
    messages: Mapping[str, tuple[tuple[int, Any], ...]]


def read_bag(path: Path | str, topics: Iterable[str] | None = None) -> BagContents:
    """Read a bag into memory; of a log that a killed process left without metadata, what is in its file.

    Args:
        path: Folder of the bag, or its ``.mcap`` file.
        topics: Topics whose messages are read, with their leading slash; all if absent.

    Raises:
        DatasetError: Missing, truncated or not a bag.
        UnknownNameError: A topic that the bag does not have.
    """
    with _opened(path) as reader:
        connections = {c.topic: c for c in reader.connections}
        messages: dict[str, list[tuple[int, Any]]] = {topic: [] for topic in sorted(_wanted(reader, topics))}
        for topic, stamp, message in _messages(reader, messages):
            messages[topic].append((stamp, message))
        return BagContents(
            {topic: c.msgtype for topic, c in connections.items()},
            {topic: c.msgcount for topic, c in connections.items()},
            {
                topic: c.ext.offered_qos_profiles[0]
                for topic, c in connections.items()
                if isinstance(c.ext, ConnectionExtRosbag2) and c.ext.offered_qos_profiles
            },
            reader.start_time,
            # The reader's end is the instant after the last message.
            reader.end_time - 1,
            {topic: tuple(found) for topic, found in messages.items()},
        )


def stream_bag(path: Path | str, topics: Iterable[str] | None = None) -> Iterator[tuple[str, int, Any]]:
    """Yield (topic, time in [ns], message) in order of time, one at a time: a bag with pictures fits no memory.

    Args:
        path: Folder of the bag.
        topics: Topics whose messages are read, with their leading slash; all if absent.

    Raises:
        DatasetError: Missing, truncated or not a bag.
        UnknownNameError: A topic that the bag does not have.
    """
    with _opened(path) as reader:
        yield from _messages(reader, _wanted(reader, topics))


@contextmanager
def _opened(path: Path | str) -> Iterator[Reader]:
    path = Path(path)
    try:
        with Reader(_readable(path)) as reader:
            yield reader
    except UnknownNameError:
        raise
    except _DAMAGE as error:
        raise DatasetError(f"{path}: no bag, or a damaged one: {error}") from error


def _messages(reader: Reader, topics: Collection[str]) -> Iterator[tuple[str, int, Any]]:
    store = message_types()
    chosen = [c for c in reader.connections if c.topic in topics]
    # Without a chosen connection the reader would return every message.
    for connection, stamp, data in reader.messages(chosen) if chosen else ():
        yield connection.topic, stamp, store.deserialize_cdr(data, connection.msgtype)


def _wanted(reader: Reader, topics: Iterable[str] | None) -> set[str]:
    known = {c.topic for c in reader.connections}
    wanted = known if topics is None else set(topics)
    if unknown := sorted(wanted - known):
        raise UnknownNameError("topic", unknown[0], known)
    return wanted


def _readable(path: Path) -> Path:
    files = sorted(path.glob("*.mcap"))
    return files[0] if len(files) == 1 and not (path / "metadata.yaml").exists() else path
