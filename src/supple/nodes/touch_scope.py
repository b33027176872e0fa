# SPDX-License-Identifier: Apache-2.0
"""What a logger of touch is about: whose sensors, which streams besides them, and what counts as an event."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sensor_msgs.msg import PointCloud2
from supple_interfaces.msg import TaskPoints

from supple.contact.detection import ContactSettings
from supple.contact.events import EventLimits
from supple.contact.sensors import TouchSensor
from supple.episodes import bag_types as offered
from supple.nodes.qos import SENSOR_INPUT
from supple.nodes.recorded_topics import RecordedTopic, camera_topics, robot_topics
from supple.robots import Robot

__all__ = ["TouchScope"]


@dataclass(frozen=True)
class TouchScope:
    """What is listened to, and how it is judged.

    Attributes:
        robot: Whose sensors they are.
        sensors: Sensors that are described by files.
        cameras: Cameras whose pictures are logged.
        points: Whether task points are logged.
        object: Name of a tracked object that is held; empty if there is none.
        settings: When a sensor counts as touched.
        overload: Force in [N] that is too much for a sensor whose file does not say; 0 if there is none.
        silent_after: A sensor without readings is silent after this time in [s].
    """

    robot: Robot
    sensors: Mapping[str, TouchSensor]
    cameras: Sequence[str]
    points: bool
    object: str
    settings: ContactSettings
    overload: float
    silent_after: float

    def limits(self, name: str) -> EventLimits:
        """Return what the events of a sensor cross."""
        described, settings = self.sensors.get(name), self.settings
        overload = (described.overload if described is not None else None) or self.overload or math.inf
        return EventLimits(settings.made_force, settings.broken_force, settings.slip_speed, overload)

    def topics(self) -> list[RecordedTopic]:
        """Return what is logged besides the sensors."""
        rest = [*robot_topics(), *(row for name in self.cameras if name for row in camera_topics(name))]
        if self.points:
            for name, kind in (("points", PointCloud2), ("points/quality", TaskPoints)):
                rest.append(RecordedTopic(name, kind, SENSOR_INPUT, offered.SENSOR))
        return rest
