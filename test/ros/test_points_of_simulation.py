# SPDX-License-Identifier: Apache-2.0
"""Two cameras of the simulator, on the head and beside the table, see the same box in the same place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from node_graph import Graph, seconds
from rclpy.qos import QoSProfile, ReliabilityPolicy
from realsense_bag import BOX_SIZE
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from supple_interfaces.msg import Labels, TaskPoints
from tf2_msgs.msg import TFMessage

from supple.nodes.conversion import transform_of
from supple.nodes.point_conversion import labels_of, points_of
from supple.nodes.qos import LATCHED, LATCHED_INPUT
from supple.tasks import task_named

ROOT = Path(__file__).resolve().parents[2]
CAMERAS = ("camera", "external_camera")
MASKS = {"camera": "labels", "external_camera": "geometric"}


@pytest.fixture(scope="module")
def bridge(start, graph) -> Graph:
    start("sim_bridge", segmentation=True, external_camera=True)
    start("robot_state")
    profile = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
    graph.listen(TFMessage, "/tf_static", LATCHED_INPUT)
    for camera, source in MASKS.items():
        topics = {
            "camera/color/image_raw": f"{camera}/color/image_raw",
            "camera/aligned_depth_to_color/image_raw": f"{camera}/aligned_depth_to_color/image_raw",
            "camera/color/camera_info": f"{camera}/color/camera_info",
            "mask/image_raw": f"{camera}/segmentation/image_raw",
            "mask/labels": f"{camera}/segmentation/labels",
            "points": f"{camera}/points",
            "points/quality": f"{camera}/points/quality",
        }
        looks = ROOT / "config/perception/box_lift.yaml"
        name = f"{camera}_points"
        start("point_extractor", name, topics, mask_source=source, looks=looks, use_sim_time=True, rate=5)
        graph.listen(Image, f"{camera}/color/image_raw", profile)
        graph.listen(CameraInfo, f"{camera}/color/camera_info", profile)
        graph.listen(Image, f"{camera}/segmentation/image_raw", profile)
        graph.listen(Labels, f"{camera}/segmentation/labels", LATCHED)
        graph.listen(PointCloud2, f"{camera}/points", profile)
        graph.listen(TaskPoints, f"{camera}/points/quality", profile)
    for camera in CAMERAS:
        graph.until(lambda camera=camera: graph.received[f"{camera}/points"], f"points of {camera}", 90.0)
    return graph


@pytest.mark.parametrize("camera", CAMERAS)
def test_labels_belong_to_the_picture_and_are_named(bridge, camera):
    images, names = bridge.received[f"{camera}/segmentation/image_raw"], bridge.latest(f"{camera}/segmentation/labels")
    bridge.until(lambda: len(images) > 2, "label images", 60.0)
    assert list(names.name) == list(task_named("box_lift").objects)
    assert list(names.id) == [1, 2]
    labels = labels_of(images[-1])
    assert labels.shape == (480, 640)
    assert set(np.unique(labels)) == {0, 1, 2}
    assert set(seconds(images[:-2])) <= set(seconds(bridge.received[f"{camera}/color/image_raw"]))


@pytest.mark.parametrize("camera", CAMERAS)
def test_points_lie_on_the_box(bridge, camera):
    box = bridge.base().actInv(bridge.object("box"))
    points, _, objects = points_of(bridge.received[f"{camera}/points"][-1])
    on_box = points[objects == 0].astype(np.float64)
    assert on_box.shape == (128, 3)
    q = np.abs((on_box - box.translation) @ box.rotation - [0.0, 0.0, 0.5 * BOX_SIZE[2]]) - 0.5 * BOX_SIZE
    distance = np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)
    assert np.abs(distance).max() < 0.002
    assert set(objects) == {0, 1, 2}, "the box and both hands"


@pytest.mark.parametrize("camera", CAMERAS)
def test_ages_are_on_the_simulated_clock(bridge, camera):
    quality = bridge.latest(f"{camera}/points/quality")
    ages = dict(zip(quality.input, quality.age, strict=True))
    assert all(0.0 <= age < 30.0 for age in ages.values())
    assert ages["color"] == ages["depth"] == ages["camera_info"] == ages["mask"]


def test_the_camera_beside_the_table_hangs_below_the_world(bridge):
    rows = {row.child_frame_id: row for message in bridge.received["/tf_static"] for row in message.transforms}
    link = rows["external_camera_link"]
    assert link.header.frame_id == "odom"
    pose = transform_of(link.transform, "external_camera_link")
    viewpoint = task_named("box_lift").viewpoint
    np.testing.assert_allclose(pose.homogeneous, viewpoint.T_world_camera.homogeneous, atol=1e-9)
    assert rows["external_camera_color_optical_frame"].header.frame_id == "external_camera_link"
