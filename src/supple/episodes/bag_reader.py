# SPDX-License-Identifier: Apache-2.0
"""Bags (rosbag2, MCAP): read back into memory, without rclpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    path = Path(path)
    store = message_types()
    try:
        with Reader(_readable(path)) as reader:
            connections = {c.topic: c for c in reader.connections}
            wanted = _wanted(connections, topics)
            messages: dict[str, list[tuple[int, Any]]] = {topic: [] for topic in sorted(wanted)}
            chosen = [c for c in reader.connections if c.topic in wanted]
            # Without a chosen connection the reader would return every message.
            for connection, stamp, data in reader.messages(chosen) if chosen else ():
                messages[connection.topic].append((stamp, store.deserialize_cdr(data, connection.msgtype)))
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
    except UnknownNameError:
        raise
    except _DAMAGE as error:
        raise DatasetError(f"{path}: no bag, or a damaged one: {error}; write it again from its episode") from error


def stream_bag(path: Path | str, topics: Iterable[str] | None = None) -> Iterator[tuple[str, int, Any]]:
    """Yield (topic, time in [ns], message) in order of time, one at a time: a bag with pictures fits no memory.

    Args:
        path: Folder of the bag.
        topics: Topics whose messages are read, with their leading slash; all if absent.

    Raises:
        DatasetError: Missing, truncated or not a bag.
        UnknownNameError: A topic that the bag does not have.
    """
    path = Path(path)
    store = message_types()
    try:
        with Reader(_readable(path)) as reader:
            wanted = _wanted({c.topic: c for c in reader.connections}, topics)
            chosen = [c for c in reader.connections if c.topic in wanted]
            for connection, stamp, data in reader.messages(chosen) if chosen else ():
                yield connection.topic, stamp, store.deserialize_cdr(data, connection.msgtype)
    except UnknownNameError:
        raise
    except _DAMAGE as error:
        raise DatasetError(f"{path}: no bag, or a damaged one: {error}") from error


def _wanted(connections: Mapping[str, Any], topics: Iterable[str] | None) -> set[str]:
    wanted = set(connections) if topics is None else set(topics)
    if unknown := sorted(wanted - set(connections)):
        raise UnknownNameError("topic", unknown[0], connections)
    return wanted


def _readable(path: Path) -> Path:
    files = sorted(path.glob("*.mcap"))
    return files[0] if len(files) == 1 and not (path / "metadata.yaml").exists() else path
