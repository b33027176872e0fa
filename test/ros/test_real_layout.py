# SPDX-License-Identifier: Apache-2.0
"""A bag in the layout of a real robot, played over DDS, gives points that lie on the box."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from bag_player import play_bag
from node_graph import Graph, NodeProcess
from rclpy.qos import QoSProfile, ReliabilityPolicy
from realsense_bag import BOX_SIZE, CAMERA, Recorded, write_realsense_bag
from sensor_msgs.msg import PointCloud2
from supple_interfaces.msg import TaskPoints

from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import nanoseconds
from supple.nodes.point_conversion import points_of
from supple.robots import g1
from supple.robots.keypoints import gripper_keypoints

ROOT = Path(__file__).resolve().parents[2]
COLOR, DEPTH = f"{CAMERA}/color/image_raw", f"{CAMERA}/aligned_depth_to_color/image_raw"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Recorded:
    return write_realsense_bag(tmp_path_factory.mktemp("bags") / "realsense")


@pytest.fixture(scope="module")
def played(start, graph, recorded) -> tuple[Graph, NodeProcess]:
    node = start(
        "point_extractor",
        remap={
            "camera/color/image_raw": COLOR,
            "camera/aligned_depth_to_color/image_raw": DEPTH,
            "camera/color/camera_info": f"{CAMERA}/color/camera_info",
        },
        looks=ROOT / "config/perception/box_lift.yaml",
        objects="[box, table]",
    )
    profile = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
    graph.listen(PointCloud2, "points", profile)
    graph.listen(TaskPoints, "points/quality", profile)
    # Half as fast as it was recorded, so that a busy machine makes most of the clouds.
    play_bag(graph, recorded.path, DEPTH, rate=0.5)
    graph.until(lambda: len(graph.received["points/quality"]) == len(graph.received["points"]) > 0, "clouds")

    def accounted() -> bool:
        values = graph.diagnostics["point_extractor"][2]
        counted = (int(values.get(key, "0").split()[0]) for key in ("clouds", "skipped", "unmatched pictures"))
        return sum(counted) == int(values["pictures"]) == len(recorded.depth_ns)

    graph.until(accounted, "every depth image to be accounted for")
    return graph, node


def distance_to_box(points: np.ndarray) -> np.ndarray:
    """Distance of points (n, 3) in the box's frame from its surface in [m]."""
    q = np.abs(points - [0.0, 0.0, 0.5 * BOX_SIZE[2]]) - 0.5 * BOX_SIZE
    return np.abs(np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0))


def test_points_lie_on_the_box_while_the_robot_turns(played, recorded):
    graph, _ = played
    clouds = graph.received["points"]
    assert len(clouds) > 4
    off = []
    for cloud in clouds:
        assert cloud.header.frame_id == "base_link"
        points, colors, objects = points_of(cloud)
        assert nanoseconds(cloud.header.stamp) in recorded.matched()
        box = points[objects == 0].astype(np.float64)
        assert box.shape == (128, 3)
        off.append(distance_to_box((box - recorded.T_base_box.translation) @ recorded.T_base_box.rotation))
        red, green, blue = np.median(colors[objects == 0], axis=0)
        assert red > green > blue, "cardboard"
        table = points[objects == 1].astype(np.float64)
        # Its top is at the height of the box's bottom, which stands a millimetre above it.
        assert np.abs(table[:, 2] - recorded.T_base_box.translation[2] + 0.001).max() < 0.005
    off = np.concatenate(off)
    # Depth is rounded to a millimetre; 10 ms of another time would be 8 mm at this distance.
    assert np.percentile(off, 95) < 0.002
    assert off.max() < 0.006


def test_the_two_lost_colour_images_are_named(played, recorded):
    graph, node = played
    assert len(recorded.depth_ns) - len(recorded.matched()) == 2
    values = graph.diagnostics["point_extractor"][2]
    assert values["missing color"] == values["unmatched pictures"] == "2"
    lines = [line for line in node.output().splitlines() if "[WARN]" in line]
    assert len(lines) == 1, lines
    assert f"{COLOR}: header.stamp: no message that belongs to a picture; the nearest is " in lines[0]


def test_ages_are_those_of_the_stamps(played):
    graph, _ = played
    for quality in graph.received["points/quality"]:
        age = dict(zip(quality.input, quality.age, strict=True))
        assert list(age) == ["color", "depth", "camera_info", "mask", "tf"]
        # Colour is stamped 5 to 7 ms after depth; its calibration and the masks come with it.
        assert 0.0049 < age["depth"] - age["color"] < 0.0071
        assert age["camera_info"] == age["mask"] == age["color"]
        # TF is interpolated between samples 20 ms apart, of which the older one counts.
        assert 0.0 <= age["tf"] - age["depth"] < 0.02


def test_quality_says_what_is_in_the_cloud(played):
    graph, _ = played
    for quality in graph.received["points/quality"]:
        assert list(quality.object) == ["box", "table", "left_hand", "right_hand"]
        assert list(quality.points) == [128, 128, 9, 9]
        assert list(quality.status[2:]) == ["keypoints", "keypoints"]
        assert quality.status[0] in ("ok", "occluded")
        assert quality.mask_area[0] > 5000
        assert quality.coverage[0] > 0.9
        assert quality.depth_noise[0] < 0.001, "rounding to a millimetre is less than half of one"


def test_keypoints_are_where_kinematics_has_them(played, recorded):
    graph, _ = played
    robot = g1()
    model = KinematicModel(robot)
    for cloud in graph.received["points"][::5]:
        points, colors, objects = points_of(cloud)
        q = model.configuration(pin.SE3.Identity(), recorded.q(nanoseconds(cloud.header.stamp)))
        for number, hand in enumerate(("left_hand", "right_hand"), start=2):
            keypoints = gripper_keypoints(robot, hand)
            poses = model.frame_poses(q, *(point.frame for point in keypoints))
            wanted = [pose.act(point.offset) for pose, point in zip(poses, keypoints, strict=True)]
            # Between samples of TF a joint that swings moves by a fraction of a millimetre from the straight line.
            np.testing.assert_allclose(points[objects == number], wanted, atol=5e-4)
            assert (colors[objects == number] == 255).all()
