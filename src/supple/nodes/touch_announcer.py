# SPDX-License-Identifier: Apache-2.0
"""What the logger of touch says: states and events as topics, in the log, and as lines for a person."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.interfaces import Qos
from supple_interfaces.msg import CommandTrace, ContactEvent, ContactState

from supple.contact import events
from supple.contact.detection import ContactEstimate
from supple.contact.events import EventKind, Reactions
from supple.episodes import bag_types as offered
from supple.nodes.bag_recorder import BagRecorder
from supple.nodes.conversion import header, time_message
from supple.nodes.digest import Digest
from supple.nodes.qos import EVENT, SENSOR, publisher
from supple.nodes.recorded_topics import message_type

__all__ = ["TouchAnnouncer"]

# What nothing touches is said of one reading in so many.
_REPEATED = 10
# Lines about these kinds are for a person; a sensor makes and breaks contact all the time.
_TOLD = (EventKind.SILENT, EventKind.RESUMED, EventKind.OVERLOAD)


class TouchAnnouncer:
    """Publish and log what touch means.

    Args:
        node: The node that publishes.
        bags: Where everything that is published is recorded as well.

    Attributes:
        counted: Number of events so far, by kind.
        reacted: Number of commands that changed because of an event.
    """

    def __init__(self, node: Node, bags: BagRecorder) -> None:
        self._node, self._bags = node, bags
        self._events = publisher(node, ContactEvent, "contact_events", EVENT)
        self._states: dict[str, Publisher[Any]] = {}
        self._names: dict[str, str] = {}
        self._said: dict[str, tuple[bool, int]] = {}
        self._reactions = Reactions()
        self.counted: Counter[str] = Counter()
        self.reacted = 0
        self._lines = {kind: Digest(str(kind), node.get_logger().warning) for kind in _TOLD}

    @property
    def sensors(self) -> int:
        """Number of sensors whose states are published."""
        return len(self._states)

    @property
    def unmatched(self) -> int:
        """Number of commands that name no event."""
        return self._reactions.unmatched

    def add(self, name: str) -> None:
        """Publish states of one more sensor."""
        self._states[name] = publisher(self._node, ContactState, f"contact/{name}", SENSOR)

    def state(self, name: str, frame: str, found: ContactEstimate) -> None:
        """Say what one reading of a sensor means; of many in a row that nothing touches, only some."""
        touched, unsaid = self._said.get(name, (True, 0))
        if not found.in_contact and not touched and unsaid < _REPEATED:
            self._said[name] = (False, unsaid + 1)
            return
        self._said[name] = (found.in_contact, 1)
        message = ContactState(
            header=header(found.stamp_ns, frame),
            sensor=name,
            sequence=found.sequence,
            in_contact=found.in_contact,
            normal_force=found.normal_force,
            tangential_force=found.tangential_force,
            slip_speed=found.slip_speed,
            slipping=found.slipping,
            held=found.held,
            since=time_message(found.since_ns),
        )
        self._publish(name, self._states[name], message, offered.SENSOR)

    def event(self, event: events.ContactEvent, frame: str = "") -> None:
        """Say that something began or ended at a sensor, whose frame is given if it is known."""
        message = ContactEvent(
            header=header(event.stamp_ns, frame),
            sensor=event.sensor,
            kind=str(event.kind),
            sequence=event.sequence,
            value=event.value,
            threshold=event.threshold,
            command_source=event.command_source,
            command_sequence=event.command_sequence,
        )
        self._publish("", self._events, message, offered.RELIABLE)
        if not event.command_source:
            self._reactions.add(event)
            self.counted[str(event.kind)] += 1
        if event.kind in self._lines:
            self._lines[event.kind].add(event.sensor, str(event))

    def answer(self, data: bytes) -> list[events.ContactEvent]:
        """Return the events that a command answers which has been traced, a serialised CommandTrace."""
        trace = deserialize_message(data, CommandTrace)
        if not trace.because or trace.refused:
            return []
        found = self._reactions.join(trace.because, trace.because_sequence, trace.source, trace.sequence)
        self.reacted += len(found)
        return list(found)

    def tell(self, at_once: bool = False) -> None:
        """Write the lines that are due; to be called often, and once in the end."""
        now = time.monotonic()
        for line in self._lines.values():
            (line.tell_all if at_once else line.tell)(now)

    def _publish(self, name: str, entry: Publisher[Any], message: Any, profile: Qos) -> None:
        data = serialize_message(message)
        # A publisher looks its full name up in the middleware each time it is asked.
        topic = self._names.get(name) or self._names.setdefault(name, entry.topic_name.lstrip("/"))
        self._bags.put(topic, message_type(type(message)), data, profile)
        if self._node.context.ok():
            entry.publish(data)
