# SPDX-License-Identifier: Apache-2.0
"""A camera in this process that looks down on a plate, and the clouds that a node makes of its pictures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pinocchio as pin
from node_graph import Graph, NodeProcess
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from supple_interfaces.msg import Detections, Labels, TaskPoints
from tf2_msgs.msg import TFMessage

from supple.nodes.conversion import header, nanoseconds, transform_message
from supple.nodes.point_conversion import camera_info_message, image_message, points_of
from supple.nodes.qos import LATCHED, TRANSFORMS

__all__ = [
    "BOXES",
    "COLOR",
    "DEPTH",
    "HEIGHT",
    "INFO",
    "MASK",
    "MS",
    "OPTICAL",
    "PLATE",
    "T_BASE_CAMERA",
    "WIDTH",
    "Eye",
    "Picture",
    "check_plate",
]

COLOR, DEPTH = "camera/color/image_raw", "camera/aligned_depth_to_color/image_raw"
INFO, MASK, BOXES = "camera/color/camera_info", "mask/image_raw", "detections"
OPTICAL = "eye_optical"
MS = 1_000_000
WIDTH, HEIGHT, FOCAL = 96, 72, 100.0
# The camera looks straight down from 2 m above the base's origin: optical z is -z, optical x is +x.
T_BASE_CAMERA = pin.SE3(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 2.0]))
# A plate of 40 x 30 pixels, 1.2 m from the camera, in front of a floor 2 m from it.
PLATE = np.s_[20:50, 30:70]


@dataclass
class Picture:
    """Everything that belongs to one picture, ready to be spoilt."""

    stamp_ns: int
    frame: str = OPTICAL
    messages: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        depth = np.full((HEIGHT, WIDTH), 2.0, np.float32)
        labels, rgb = np.zeros((HEIGHT, WIDTH), np.uint16), np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
        depth[PLATE], labels[PLATE], rgb[PLATE] = 1.2, 1, (200, 20, 10)
        intrinsics = (FOCAL, FOCAL, 0.5 * (WIDTH - 1), 0.5 * (HEIGHT - 1))
        self.messages = {
            COLOR: image_message(self.stamp_ns, self.frame, "rgb8", rgb),
            DEPTH: image_message(self.stamp_ns, self.frame, "32FC1", depth),
            INFO: camera_info_message(self.stamp_ns, self.frame, intrinsics, WIDTH, HEIGHT),
            MASK: image_message(self.stamp_ns, self.frame, "16UC1", labels),
            BOXES: Detections(
                header=header(self.stamp_ns, self.frame),
                width=WIDTH,
                height=HEIGHT,
                name=["plate"],
                score=[0.9],
                left=[26.0],
                top=[17.0],
                right=[73.0],
                bottom=[53.0],
            ),
        }

    def image(self, topic: str, encoding: str, pixels: np.ndarray) -> None:
        self.messages[topic] = image_message(self.stamp_ns, self.frame, encoding, pixels)

    def depth(self) -> np.ndarray:
        return np.frombuffer(self.messages[DEPTH].data, np.float32).reshape(HEIGHT, WIDTH).copy()


class Eye:
    """A camera in this process, and the clouds that come of it."""

    def __init__(self, graph: Graph, node: NodeProcess, masks: str = MASK) -> None:
        profile = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.graph, self.node = graph, node
        kinds = {COLOR: Image, DEPTH: Image, INFO: CameraInfo, masks: Detections if masks == BOXES else Image}
        self.publishers = {topic: graph.publisher(kind, topic, profile) for topic, kind in kinds.items()}
        self.labels = graph.publisher(Labels, "mask/labels", LATCHED)
        self.tf = graph.publisher(TFMessage, "/tf", TRANSFORMS)
        self.tf_static = graph.publisher(TFMessage, "/tf_static", LATCHED)
        self.labels.publish(Labels(id=[1], name=["plate"]))
        self.tf_static.publish(TFMessage(transforms=[transform_message(0, "base_link", OPTICAL, T_BASE_CAMERA)]))
        self.clouds = graph.listen(PointCloud2, "points", profile)
        self.quality = graph.listen(TaskPoints, "points/quality", profile)
        graph.until(lambda: all(p.get_subscription_count() for p in self.publishers.values()), "the extractor")
        self.numbers = count(1)
        # Labels and the place of the camera are latched, so that they come, but not before a picture must.
        graph.until(self._warm, "the first points")

    def _warm(self) -> bool:
        self.show(self.picture())
        return bool(self.graph.until(lambda: self.clouds or self.node.output(), "an answer")) and bool(self.clouds)

    def picture(self, frame: str = OPTICAL) -> Picture:
        return Picture((100 + 100 * next(self.numbers)) * MS, frame)

    def show(self, picture: Picture) -> None:
        for topic in self.publishers.keys() & picture.messages.keys():
            self.publishers[topic].publish(picture.messages[topic])

    def cloud_of(self, picture: Picture) -> tuple[PointCloud2, TaskPoints]:
        """Show a picture and return what comes of it."""

        def came() -> list[Any]:
            stamps = [[nanoseconds(m.header.stamp) for m in messages] for messages in (self.clouds, self.quality)]
            if not all(picture.stamp_ns in row for row in stamps):
                return []
            found = zip((self.clouds, self.quality), stamps, strict=True)
            return [messages[row.index(picture.stamp_ns)] for messages, row in found]

        self.show(picture)
        cloud, quality = self.graph.until(came, f"points of the picture at {picture.stamp_ns} ns")
        return cloud, quality

    def provoke(self, text: str, make: Callable[[], Picture]) -> list[str]:
        """Show pictures until something is said, which may have to wait: a topic's field is named every two seconds."""
        before = len(self.warnings(text))

        def said() -> bool:
            for _ in range(4):
                self.show(make())
            deadline = time.monotonic() + 0.5
            while time.monotonic() < deadline and len(self.warnings(text)) == before:
                time.sleep(0.01)
            return len(self.warnings(text)) > before

        self.graph.until(said, f"a warning: {text}")
        return self.warnings(text)[before:]

    def warnings(self, text: str) -> list[str]:
        return [line for line in self.node.output().splitlines() if "[WARN]" in line and text in line]


def check_plate(cloud: PointCloud2, quality: TaskPoints) -> None:
    points, colors, objects = points_of(cloud)
    assert cloud.header.frame_id == quality.header.frame_id == "base_link"
    assert (list(quality.object), list(quality.id), list(quality.status)) == (["plate"], [0], ["ok"])
    assert points.shape == (128, 3)
    assert (objects == 0).all()
    assert (colors == (200, 20, 10)).all()
    np.testing.assert_allclose(points[:, 2], 0.8, atol=1e-6)
    # Columns 30 to 69 and rows 20 to 49 of the picture, seen from above.
    x = (np.array([30, 69]) - 0.5 * (WIDTH - 1)) * 1.2 / FOCAL
    y = -(np.array([49, 20]) - 0.5 * (HEIGHT - 1)) * 1.2 / FOCAL
    assert x[0] <= points[:, 0].min() < points[:, 0].max() <= x[1]
    assert y[0] <= points[:, 1].min() < points[:, 1].max() <= y[1]
    # What is left of 40 x 30 pixels without a fifth of their area is still well spread.
    assert np.ptp(points[:, 0]) > 0.8 * np.ptp(x)
    assert np.ptp(points[:, 1]) > 0.8 * np.ptp(y)
