# SPDX-License-Identifier: Apache-2.0
"""Touch of the simulated robot as topics: readings of its tactile sensors, and the true wrench on feet and wrists."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from geometry_msgs.msg import Wrench, WrenchStamped
from pydantic import ValidationError
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from supple_interfaces.msg import TactileArray

from supple.contact.readings import PadLayout, TactileReading
from supple.episodes.marker import Marker
from supple.errors import SuppleError
from supple.nodes.conversion import header, point_message, time_message, vector_message
from supple.nodes.lifecycle import ParameterError, declare_parameter
from supple.nodes.qos import SENSOR, publisher, withdraw
from supple.nodes.tactile_bytes import TactileBytes
from supple.sim.forces import LinkWrenches, contact_forces
from supple.sim.markers import taxel_marker, wrench_marker
from supple.sim.tactile import TactileSensors, TactileSettings
from supple.sim.world import World

__all__ = ["TouchOutput", "TouchParameters", "blank_array", "fill_array"]


def blank_array(layout: PadLayout) -> TactileArray:
    """Return a message of a sensor with all that does not change; ``fill_array`` adds a reading."""
    return TactileArray(
        header=header(0, layout.frame),
        sensor=layout.name,
        position=[point_message(row) for row in layout.position],
        normal=[vector_message(row) for row in layout.normal],
        area=array("d", layout.area.tobytes()),
        unit=layout.unit,
    )


def fill_array(message: TactileArray, reading: TactileReading) -> TactileArray:
    """Put a reading into its sensor's message and return it."""
    message.header.stamp = time_message(reading.stamp_ns)
    message.sequence, message.missed = reading.sequence, reading.missed
    message.pressure = array("f", reading.pressure.astype(np.float32).tobytes())
    message.status = array("B", reading.status.tobytes())
    return message


def _empty_array(layout: PadLayout) -> TactileArray:
    count = len(layout)
    return fill_array(blank_array(layout), TactileReading(0, 0, 0, np.zeros(count), np.zeros(count, dtype=np.uint8)))


class TouchParameters:
    """The node's parameters of touch, declared here.

    Args:
        node: Whose they are.

    Attributes:
        enabled: Whether there are tactile sensors and wrenches.
        settings: How good the sensors are.
        silent: Names of sensors that are as if pulled out.

    Raises:
        ParameterError: One is out of its range.
    """

    def __init__(self, node: Node) -> None:
        standard = TactileSettings()
        self.enabled: bool = declare_parameter(node, "tactile", True, "simulate tactile sensors and wrenches")
        values = {
            name: declare_parameter(node, f"tactile_{name}", getattr(standard, name), text)
            for name, text in (
                ("rate", "readings of each tactile sensor per second in Hz"),
                ("stiffness", "pressure per indentation of the skin in Pa/m"),
                ("noise", "standard deviation of a taxel's value in Pa"),
                ("saturation", "largest value of a taxel in Pa"),
                ("dead_fraction", "share of taxels without a value"),
                ("latency", "time from measurement to delivery in s"),
            )
        }
        dead = declare_parameter(node, "tactile_dead", "", "dead taxels, e.g. 'left_index_1:7 left_palm_0:3'")
        try:
            self.settings = TactileSettings(dead=tuple(dead.split()), **values)
        except ValidationError as error:
            first = error.errors()[0]
            name, got = f"tactile_{first['loc'][0]}", first["input"]
            raise ParameterError(f"parameter {name} of {node.get_name()}: {first['msg']}, got {got!r}") from error
        text = "sensors that are as if pulled out, e.g. 'left_index_1'; may be set at any time"
        silent: Any = node.declare_parameter("tactile_silent", "", ParameterDescriptor(description=text)).value
        self.silent: tuple[str, ...] = tuple(str(silent).split())


class TouchOutput:
    """Publish what the simulated robot feels; nothing is computed while nobody listens.

    Args:
        node: The node that publishes.
        world: The scene.
        parameters: Its parameters.
        seed: Seed of noise and dead taxels.

    Raises:
        SuppleError: A parameter names a sensor or taxel that does not exist, or asks for more than physics gives.
    """

    def __init__(self, node: Node, world: World, parameters: TouchParameters, seed: int) -> None:
        self._node, self._world = node, world
        self._sensors = TactileSensors(world, parameters.settings, np.random.default_rng(seed))
        self._sensors.silence(parameters.silent)
        self._wrenches = LinkWrenches(world)
        self._messages = {name: TactileBytes(_empty_array(row)) for name, row in self._sensors.layouts.items()}
        self._tactile = {name: publisher(node, TactileArray, f"tactile/{name}", SENSOR) for name in self._messages}
        self._wrench = {
            name: publisher(node, WrenchStamped, f"true_wrench/{name}", SENSOR) for name in self._wrenches.frames
        }
        self._interval_ns = round(1e9 / parameters.settings.rate)
        self._tick = -1
        self._readings: dict[str, TactileReading] = {}
        # Where taxels are shown in their links' frames: on what is drawn of the link, which would hide them.
        pads = world.robot.pads
        self._shown = {n: row.position + pads[n].cover * row.normal for n, row in self._sensors.layouts.items()}
        node.add_on_set_parameters_callback(self._on_parameters)

    def _on_parameters(self, parameters: list[Parameter[Any]]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == "tactile_silent":
                try:
                    self._sensors.silence(str(parameter.value).split())
                except SuppleError as error:
                    return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def publish(self, stamp_ns: int, after_reset: bool, shown: bool) -> None:
        """Publish what is due; called in the physics thread after each step.

        Args:
            stamp_ns: Time of the world's state in [ns].
            after_reset: The world was put into another state.
            shown: Somebody wants to see taxels.
        """
        tick = stamp_ns // self._interval_ns
        due, self._tick = tick != self._tick or after_reset, tick
        wanted = shown or any(entry.get_subscription_count() for entry in self._tactile.values())
        felt = due and any(entry.get_subscription_count() for entry in self._wrench.values())
        if after_reset or not wanted:
            # Those who begin to listen get what is measured from then on.
            self._sensors.reset()
            self._readings.clear()
        contacts = contact_forces(self._world) if felt or (due and wanted) else None
        if wanted:
            for name, reading in self._sensors.advance(stamp_ns, contacts):
                self._readings[name] = reading
                self._tactile[name].publish(self._messages[name].of(reading))
        if felt:
            for name, row in self._wrenches.read(contacts).items():
                wrench = Wrench(force=vector_message(row[:3]), torque=vector_message(row[3:]))
                self._wrench[name].publish(WrenchStamped(header=header(stamp_ns, name), wrench=wrench))

    def markers(self) -> list[Marker]:
        """Return the last readings as coloured taxels, and the forces on feet and wrists as arrows."""
        shown: list[Marker] = []
        if self._readings:
            names = list(self._readings)
            poses = [self._world.object_pose(self._sensors.layouts[name].frame) for name in names]
            points = [self._shown[n] @ pose.rotation.T + pose.translation for n, pose in zip(names, poses, strict=True)]
            pressure = np.concatenate([reading.pressure for reading in self._readings.values()])
            status = np.concatenate([reading.status for reading in self._readings.values()])
            shown.append(taxel_marker(np.concatenate(points), pressure, status))
        arrows = (wrench_marker(row, self._world.link_pose(name)) for name, row in self._wrenches.read().items())
        return shown + [arrow for arrow in arrows if arrow is not None]

    def close(self) -> None:
        """Destroy the publishers."""
        self._node.remove_on_set_parameters_callback(self._on_parameters)
        for entry in (*self._tactile.values(), *self._wrench.values()):
            withdraw(self._node, entry)
