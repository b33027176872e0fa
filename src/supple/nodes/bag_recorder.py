# SPDX-License-Identifier: Apache-2.0
"""Recording of what a node sees into bags: serialised as it comes, every loss counted by topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rosbags.interfaces import Qos
from tf2_msgs.msg import TFMessage

from supple.episodes import bag_types as offered
from supple.nodes.bag_take import BagTake
from supple.nodes.message_loss import MessageLoss, with_info
from supple.nodes.recorded_topics import RecordedTopic, message_type

__all__ = ["BagRecorder"]


class BagRecorder:
    """Subscriptions to everything that is recorded, and the bag that it goes to while there is one.

    Args:
        node: The node that subscribes.
        topics: What is recorded.
        now: Returns the time in [ns] that a message is stamped with when it comes; never goes back. The node's clock if
            absent: simulated time with ``use_sim_time``, else the machine's.

    Attributes:
        received: Number of messages that came.
        newest_ns: When the message taken in last came to this process, by the machine's clock, in [ns].
        last_wait: How long that message had waited to be taken in, in [s].
        longest_wait: The longest such wait since the present bag began, in [s].
        numbered: Whether the middleware numbers all messages, so that every loss is known.
    """

    def __init__(self, node: Node, topics: Sequence[RecordedTopic], now: Callable[[], int] | None = None) -> None:
        self._node = node
        self._now = now or (lambda: node.get_clock().now().nanoseconds)
        self._latched: dict[tuple[str, bytes], tuple[str, str, bytes, Qos]] = {}
        self._take: BagTake | None = None
        self._subscriptions: list[Any] = []
        self.received = self.newest_ns = 0
        self.last_wait = self.longest_wait = 0.0
        self.numbered = True
        for topic in topics:
            self.add(topic)

    def add(self, topic: RecordedTopic, listener: Callable[[bytes], None] | None = None) -> None:
        """Record one more topic from now on.

        Args:
            topic: The topic.
            listener: Called with each serialised message after it was recorded.
        """
        name, kind = self._name(topic.name), message_type(topic.kind)
        latched = topic.offered == offered.LATCHED
        record = self._latch if latched else self.put

        loss = MessageLoss()

        def receive(data: bytes, info: Mapping[str, Any]) -> None:
            self.received += 1
            self.newest_ns = info["received_timestamp"]
            self.last_wait = 1e-9 * (time.time_ns() - self.newest_ns)
            self.longest_wait = max(self.longest_wait, self.last_wait)
            self.numbered = self.numbered and info["publication_sequence_number"] is not None
            missing = loss.take(info)
            if missing and self._take is not None:
                self._take.lose(name, missing)
            record(name, kind, data, topic.offered)
            if listener is not None:
                listener(data)

        # No events: of a publisher that does not fit others tell, and for lost messages see `MessageLoss`.
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._subscriptions.append(
            self._node.create_subscription(
                topic.kind, topic.name, with_info(receive), topic.profile, raw=True, event_callbacks=events
            )
        )

    def _name(self, topic: str) -> str:
        return self._node.resolve_topic_name(topic).lstrip("/")

    def put(self, topic: str, kind: str, data: bytes, profile: Qos) -> None:
        """Record a message that did not come over a subscription, e.g. the node's own, if there is a bag."""
        if self._take is not None:
            self._take.put(topic, kind, self._now(), data, profile)

    def _latch(self, name: str, kind: str, data: bytes, profile: Qos) -> None:
        # Several nodes may latch transforms; of a text only the newest counts.
        key = (name, data if kind == message_type(TFMessage) else b"")
        news = self._latched.get(key, (name, kind, b"", profile))[2] != data
        self._latched[key] = (name, kind, data, profile)
        if news and self._take is not None and self._take.growing:
            self.put(name, kind, data, profile)

    def latch(self, topic: str, kind: str, data: bytes) -> None:
        """Record a latched message of the node's own, in this bag and in those to come."""
        self._latch(self._name(topic), kind, data, offered.LATCHED)

    @property
    def take(self) -> BagTake | None:
        """The bag that is being written."""
        return self._take

    def begin(self, path: Path, growing: bool = False) -> None:
        """Begin a bag, or a log, which can be read while it is written.

        Raises:
            DatasetError: It cannot be made.
        """
        self._take = BagTake(path, list(self._latched.values()), growing)
        self.longest_wait = 0.0

    def end(self) -> BagTake | None:
        """Let nothing more go to the bag and return it; whoever called closes or discards it."""
        take, self._take = self._take, None
        return take

    def close(self) -> None:
        """Stop listening; a bag that is still being written is discarded."""
        for entry in self._subscriptions:
            self._node.destroy_subscription(entry)
        self._subscriptions = []
        if (take := self.end()) is not None:
            take.discard()
