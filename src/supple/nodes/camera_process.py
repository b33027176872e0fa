# SPDX-License-Identifier: Apache-2.0
"""The simulated camera: a process with its own copy of the scene, so that physics never waits for a picture."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pinocchio as pin
import rclpy
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import CameraInfo, Image
from supple_interfaces.msg import Labels

from supple.errors import SuppleError
from supple.geometry import pose_from_quaternion, quaternion_of
from supple.nodes.conversion import header
from supple.nodes.point_conversion import camera_info_message, image_message
from supple.nodes.qos import LATCHED, SENSOR, publisher
from supple.nodes.scheduling import give_way
from supple.robots import Camera as CameraRow
from supple.robots.description import optical_frame
from supple.sim.viewpoint import Viewpoint
from supple.tasks import Environment, task_named

__all__ = ["CameraProcess"]


@dataclass(frozen=True)
class _Order:
    stamp_ns: int
    state: NDArray[np.float64]
    objects: Mapping[str, NDArray[np.float64]]


class CameraProcess:
    """Render what it is sent, one state at a time; states that come while it draws are left out and counted.

    Args:
        task: Name of the task whose scene is drawn.
        camera: The robot's camera, or one that stands beside it.
        namespace: ROS namespace of its topics.
        remappings: ROS arguments of the parent that apply to its topics as well.
        segmentation: Also publish which object each pixel shows; a drawing more for each picture.

    Attributes:
        name: Name of the camera.
        sent: Pictures ordered.
        skipped: Pictures left out because the one before was not ready.
    """

    def __init__(
        self,
        task: str,
        camera: CameraRow | Viewpoint,
        namespace: str,
        remappings: tuple[str, ...] = (),
        segmentation: bool = False,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        self._process = context.Process(
            target=_render,
            args=(child, task, camera, namespace, remappings, segmentation),
            name=f"{camera.name} renderer",
            daemon=True,
        )
        self._process.start()
        child.close()
        self._ready = False
        self.name = camera.name
        self.sent = self.skipped = 0
        self.failure: str | None = None

    def offer(self, stamp_ns: int, state: NDArray[np.float64], objects: Mapping[str, pin.SE3]) -> None:
        """Order a picture of a full physics state, unless the last one is still being drawn."""
        if self.failure is not None:
            return
        try:
            while self._connection.poll():
                answer = self._connection.recv()
                self._ready = True
                if isinstance(answer, str):
                    self.failure = answer
                    return
            if not self._ready:
                self.skipped += 1
                return
            rows = {name: np.r_[pose.translation, quaternion_of(pose)] for name, pose in objects.items()}
            self._connection.send(_Order(stamp_ns, state, rows))
            self._ready = False
            self.sent += 1
        except (EOFError, OSError) as error:
            self.failure = f"the camera's process ended ({type(error).__name__})"

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=1.0)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(timeout=0.5)


def _render(
    connection: Connection,
    task: str,
    row: CameraRow | Viewpoint,
    namespace: str,
    remappings: tuple[str, ...],
    segmentation: bool,
) -> None:
    """Draw and publish until the other end closes the connection."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # The parent closes the connection; a signal to the whole group must not cut a picture short.
        signal.signal(number, signal.SIG_IGN)
    give_way()
    os.environ.setdefault("LP_NUM_THREADS", "1")
    from supple.sim.camera import Camera

    rclpy.init(args=list(remappings), signal_handler_options=SignalHandlerOptions.NO)
    try:
        environment = Environment(task_named(task), visual=True)
        node = rclpy.create_node(f"{row.name}_renderer", namespace=namespace)
        view = row.camera() if isinstance(row, Viewpoint) else row.name
        with Camera(environment.world.model, view, row.width, row.height) as camera:
            _serve(connection, node, environment, camera, row, segmentation)
    except SuppleError as error:
        connection.send(str(error))
    finally:
        rclpy.try_shutdown()


def _serve(
    connection: Connection,
    node: Node,
    environment: Environment,
    camera: Any,
    row: CameraRow | Viewpoint,
    segmentation: bool,
) -> None:
    colour = publisher(node, Image, f"{row.name}/color/image_raw", SENSOR)
    depth = publisher(node, Image, f"{row.name}/aligned_depth_to_color/image_raw", SENSOR)
    infos = [
        publisher(node, CameraInfo, f"{row.name}/{stream}/camera_info", SENSOR)
        for stream in ("color", "aligned_depth_to_color")
    ]
    world, frame, objects = environment.world, optical_frame(row.name), environment.task.objects
    if segmentation:
        labels = publisher(node, Image, f"{row.name}/segmentation/image_raw", SENSOR)
        names = publisher(node, Labels, f"{row.name}/segmentation/labels", LATCHED)
        names.publish(Labels(header=header(0, frame), id=list(range(1, len(objects) + 1)), name=list(objects)))
    try:
        connection.send(True)
        while True:
            order: _Order = connection.recv()
            for name, values in order.objects.items():
                world.place_object(name, pose_from_quaternion(values[:3], values[3:], name))
            world.set_state(order.state)
            stamp = order.stamp_ns
            picture = camera.render(world.data)
            shown = image_message(stamp, frame, "16UC1", camera.labels(world.data, objects)) if segmentation else None
            # Only now: what belongs together leaves together.
            colour.publish(image_message(stamp, frame, "rgb8", picture.rgb))
            depth.publish(image_message(stamp, frame, "32FC1", picture.depth))
            for info in infos:
                info.publish(camera_info_message(stamp, frame, camera.intrinsics, row.width, row.height))
            if shown is not None:
                labels.publish(shown)
            connection.send(True)
    except (EOFError, OSError):
        # The parent is done with us, or gone.
        return
