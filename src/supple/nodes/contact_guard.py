# SPDX-License-Identifier: Apache-2.0
"""Touch that is too hard for a motion: overloads and forces at the limbs that move, each reported once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rclpy.node import Node
from supple_interfaces.msg import ContactEvent, ContactState

from supple.errors import UnknownNameError
from supple.kinematics.model import KinematicModel
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.qos import EVENT, SENSOR_INPUT, subscription

__all__ = ["ContactGuard", "HardTouch"]

# A force has ended once it is this share of the limit again, so that noise at the limit is one touch.
_REARM = 0.9


@dataclass(frozen=True)
class HardTouch:
    """A reading that shows too much force.

    Attributes:
        sensor: Name of the sensor.
        sequence: The reading's.
        limb: Joints that bear the sensor: all from the robot's base to it.
        text: What was felt, for a person.
    """

    sensor: str
    sequence: int
    limb: frozenset[str]
    text: str


class ContactGuard:
    """Listen to ``contact_events`` and to ``contact/<pad>`` of every pad of the robot.

    An overload, and a force that rises above the limit, is reported once. It must fall before it counts again, so that
    a hand which was stopped can be moved away.

    Args:
        node: The node that subscribes.
        kinematics: Tells which joints bear a sensor.
        limit: Normal force on one sensor in [N].
        on_touch: Called with what is too hard.
        diagnostics: Where unusable messages are counted.
    """

    def __init__(
        self,
        node: Node,
        kinematics: KinematicModel,
        limit: float,
        on_touch: Callable[[HardTouch], None],
        diagnostics: Diagnostics,
    ) -> None:
        self._node, self._kinematics, self._limit = node, kinematics, limit
        self._on_touch, self._diagnostics = on_touch, diagnostics
        self._pressed: set[str] = set()
        self._subscriptions = [subscription(node, ContactEvent, "contact_events", self._on_event, EVENT)]
        self._subscriptions += [
            subscription(node, ContactState, f"contact/{pad}", self._on_state, SENSOR_INPUT)
            for pad in kinematics.robot.pads
        ]

    def close(self) -> None:
        """Stop listening."""
        for entry in self._subscriptions:
            self._node.destroy_subscription(entry)
        self._subscriptions = []

    def _on_event(self, message: ContactEvent) -> None:
        # What is announced again because a command answered it is no news.
        if message.kind == ContactEvent.OVERLOAD and not message.command_source:
            self._report(message, message.value, message.threshold)

    def _on_state(self, message: ContactState) -> None:
        if message.normal_force < _REARM * self._limit:
            self._pressed.discard(message.sensor)
        elif message.normal_force >= self._limit and message.sensor not in self._pressed:
            self._pressed.add(message.sensor)
            self._report(message, message.normal_force, self._limit)

    def _report(self, message: ContactEvent | ContactState, force: float, limit: float) -> None:
        try:
            limb = self._limb(message.header.frame_id)
        except UnknownNameError as error:
            self._diagnostics.refuse("unusable contacts", f"{message.sensor}: {error}", message.sensor)
            return
        text = f"{message.sensor} felt {force:.1f} N at reading {message.sequence}, limit {limit:.1f} N"
        self._on_touch(HardTouch(message.sensor, message.sequence, limb, text))

    def _limb(self, frame: str) -> frozenset[str]:
        model = self._kinematics.model
        joint, names = model.frames[self._kinematics.frame_id(frame)].parentJoint, set()
        while joint > 0:
            names.add(model.names[joint])
            joint = model.parents[joint]
        return frozenset(names)
