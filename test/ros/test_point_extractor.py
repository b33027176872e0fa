# SPDX-License-Identifier: Apache-2.0
"""What a camera can send that no points can be made of: named once by topic and field; the next good picture works."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import numpy as np
import pinocchio as pin
import pytest
from eye import (
    COLOR,
    DEPTH,
    HEIGHT,
    INFO,
    MASK,
    MS,
    OPTICAL,
    PLATE,
    T_BASE_CAMERA,
    WIDTH,
    Eye,
    Picture,
    check_plate,
)
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import PointCloud2
from tf2_msgs.msg import TFMessage

from supple.nodes.conversion import header, transform_message
from supple.nodes.point_conversion import points_of
from supple.perception.extrinsics import CameraExtrinsics, Residual


@pytest.fixture(scope="module")
def eye(start, graph) -> Eye:
    node = start("point_extractor", mask_source="labels", objects="[plate]", rate=1000, keypoints=False, patience=0.1)
    return Eye(graph, node)


def test_points_are_where_the_plate_is(eye):
    check_plate(*eye.cloud_of(eye.picture()))


# -- pictures that are unusual but good --------------------------------------------------------------------------------


def millimetres(picture: Picture) -> None:
    picture.image(DEPTH, "16UC1", np.rint(picture.depth() * 1000).astype(np.uint16))


def blue_first(picture: Picture) -> None:
    rgb = np.frombuffer(picture.messages[COLOR].data, np.uint8).reshape(HEIGHT, WIDTH, 3)
    picture.image(COLOR, "bgr8", rgb[..., ::-1])


def padded_rows(picture: Picture) -> None:
    rgb = np.frombuffer(picture.messages[COLOR].data, np.uint8).reshape(HEIGHT, WIDTH * 3)
    wide = np.pad(rgb, ((0, 0), (0, 16)), constant_values=77)
    picture.image(COLOR, "rgb8", wide)
    picture.messages[COLOR].width = WIDTH


def big_endian(picture: Picture) -> None:
    picture.image(DEPTH, "32FC1", picture.depth().astype(">f4"))
    picture.messages[DEPTH].is_bigendian = 1


def only_p(picture: Picture) -> None:
    picture.messages[INFO].k = [0.0] * 9


def only_k(picture: Picture) -> None:
    picture.messages[INFO].p = [0.0] * 12


def holes(picture: Picture) -> None:
    depth = picture.depth()
    depth[20:23], depth[23:26], depth[48:50], depth[:5] = np.nan, np.inf, -np.inf, 0.0
    picture.image(DEPTH, "32FC1", depth)


def narrow_labels(picture: Picture) -> None:
    labels = np.frombuffer(picture.messages[MASK].data, np.uint16).reshape(HEIGHT, WIDTH)
    picture.image(MASK, "mono8", labels.astype(np.uint8))


@pytest.mark.parametrize(
    "change",
    [millimetres, blue_first, padded_rows, big_endian, only_p, only_k, narrow_labels],
    ids=lambda f: f.__name__,
)
def test_what_is_unusual_but_good_gives_the_same_points(eye, change):
    picture = eye.picture()
    change(picture)
    check_plate(*eye.cloud_of(picture))


def test_holes_are_left_out_and_counted(eye):
    picture = eye.picture()
    holes(picture)
    cloud, quality = eye.cloud_of(picture)
    points, _, _ = points_of(cloud)
    assert points.shape == (128, 3)
    np.testing.assert_allclose(points[:, 2], 0.8, atol=1e-6)
    assert 0.6 < quality.coverage[0] < 0.95
    assert quality.mask_area[0] == 1200


def test_an_object_without_depth_is_left_out_by_name(eye):
    picture = eye.picture()
    picture.image(DEPTH, "32FC1", np.full((HEIGHT, WIDTH), np.nan, np.float32))
    cloud, quality = eye.cloud_of(picture)
    assert cloud.width == 0
    assert (list(quality.points), list(quality.status)) == ([0], ["no_depth"])


def test_what_is_hidden_is_said(eye):
    check_plate(*eye.cloud_of(eye.picture()))
    picture = eye.picture()
    depth, labels = picture.depth(), np.zeros((HEIGHT, WIDTH), np.uint16)
    # Something nearer covers its right half.
    labels[PLATE] = 1
    labels[15:55, 50:75], depth[15:55, 50:75] = 0, 0.7
    picture.image(MASK, "16UC1", labels)
    picture.image(DEPTH, "32FC1", depth)
    cloud, quality = eye.cloud_of(picture)
    points, _, _ = points_of(cloud)
    assert list(quality.status) == ["occluded"]
    assert quality.visible_fraction[0] == pytest.approx(0.5, abs=0.05)
    assert points[:, 0].max() < 0.05, "nothing is filled in"


# -- pictures that nothing can be made of ------------------------------------------------------------------------------


def empty(topic: str) -> Callable[[Picture], None]:
    def change(picture: Picture) -> None:
        message = picture.messages[topic]
        message.width = message.height = message.step = 0
        message.data = []

    return change


def encoded(topic: str, encoding: str) -> Callable[[Picture], None]:
    def change(picture: Picture) -> None:
        picture.messages[topic].encoding = encoding

    return change


def cut_off(picture: Picture) -> None:
    picture.messages[COLOR].data = picture.messages[COLOR].data[:-100]


def other_resolution(picture: Picture) -> None:
    picture.messages[INFO].width, picture.messages[INFO].height = 2 * WIDTH, 2 * HEIGHT
    picture.messages[INFO].k[2] = float(WIDTH)


def uncalibrated(picture: Picture) -> None:
    picture.messages[INFO].k, picture.messages[INFO].p = [0.0] * 9, [0.0] * 12
    picture.messages[INFO].k[8] = 1.0


def unit_of_a_thousandth(picture: Picture) -> None:
    picture.image(DEPTH, "32FC1", picture.depth() * 1000.0)


def smaller_depth(picture: Picture) -> None:
    picture.image(DEPTH, "32FC1", picture.depth()[::2, ::2])


def smaller_mask(picture: Picture) -> None:
    labels = np.frombuffer(picture.messages[MASK].data, np.uint16).reshape(HEIGHT, WIDTH)
    picture.image(MASK, "16UC1", labels[::2, ::2])


def unset_stamp(picture: Picture) -> None:
    picture.messages[COLOR].header.stamp = header(0).stamp


def unaligned(picture: Picture) -> None:
    picture.messages[DEPTH].header.frame_id = "eye_depth_optical"


def late_color(picture: Picture) -> None:
    picture.messages[COLOR].header.stamp = header(picture.stamp_ns + 40 * MS).stamp


def nowhere(picture: Picture) -> None:
    for message in picture.messages.values():
        message.header.frame_id = "eye_in_the_sky"


BAD = {
    "zero-size colour": (empty(COLOR), COLOR, "size", "an image without pixels: 0 x 0"),
    "zero-size depth": (empty(DEPTH), DEPTH, "size", "an image without pixels: 0 x 0"),
    "colour encoding": (encoded(COLOR, "yuv422"), COLOR, "encoding", "unknown 'yuv422' (available: rgb8, bgr8"),
    "depth encoding": (encoded(DEPTH, "64FC1"), DEPTH, "encoding", "unknown '64FC1' (available: 16UC1"),
    "mask encoding": (encoded(MASK, "rgb8"), MASK, "encoding", "unknown 'rgb8' (available: mono8"),
    "data cut off": (cut_off, COLOR, "data", "20636 bytes, but 72 rows of 288 bytes need 20736"),
    "calibration of another resolution": (
        other_resolution,
        INFO,
        "width",
        "but the colour image has 96 x 72",
    ),
    "uncalibrated": (uncalibrated, INFO, "k", "uncalibrated"),
    "unit off by 1000": (unit_of_a_thousandth, DEPTH, "unit", "is the unit wrong by 1000?"),
    "depth of another size": (smaller_depth, DEPTH, "size", "48 x 36 pixels, but colour has 96 x 72"),
    "mask of another size": (smaller_mask, MASK, "size", "48 x 36 pixels, but colour has 96 x 72"),
    "no stamp": (unset_stamp, COLOR, "header.stamp", "not set"),
    "depth in another frame": (unaligned, DEPTH, "header.frame_id", "is depth aligned to colour?"),
    "colour 40 ms apart": (late_color, COLOR, "header.stamp", "the nearest is 40.0 ms away"),
    "no such frame": (nowhere, "tf", "transforms", "frame 'eye_in_the_sky' is unknown"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_used_is_named_once_and_the_next_picture_works(eye, name):
    change, topic, place, text = BAD[name]

    def spoilt() -> Picture:
        picture = eye.picture()
        change(picture)
        return picture

    lines = eye.provoke(text, spoilt)
    check_plate(*eye.cloud_of(eye.picture()))
    assert len(lines) == 1, "four pictures, one line"
    assert f"/{topic}: {place}: " in lines[0]
    assert "Traceback" not in eye.node.output()


def test_transforms_that_hold_no_pose_are_named(eye):
    broken = transform_message(eye.picture().stamp_ns, "base_link", "elbow", pin.SE3.Identity())
    broken.transform.rotation.w = 0.0
    eye.tf.publish(TFMessage(transforms=[broken]))
    eye.graph.until(lambda: eye.warnings("/tf: base_link to elbow: a quaternion of norm 0"), "the warning")
    check_plate(*eye.cloud_of(eye.picture()))


def test_a_pose_of_another_time_is_not_used(eye):
    """The camera rises: pictures wait for the sample after them, and are given up if none comes."""

    def at(picture: Picture, offset_ms: int, height: float) -> Picture:
        pose = pin.SE3(T_BASE_CAMERA.rotation, np.array([0.0, 0.0, height]))
        stamp = picture.stamp_ns + offset_ms * MS
        eye.tf.publish(TFMessage(transforms=[transform_message(stamp, "base_link", "rising_optical", pose)]))
        return picture

    before = "'rising_optical' in 'base_link': the newest sample is 10.0 ms before"
    eye.provoke(before, lambda: at(eye.picture("rising_optical"), -10, 2.0))
    picture = eye.picture("rising_optical")
    at(picture, -10, 2.0)
    at(picture, 10, 2.2)
    cloud, _ = eye.cloud_of(picture)
    points, _, _ = points_of(cloud)
    np.testing.assert_allclose(points[:, 2], 0.9, atol=1e-5)


def test_extrinsics_of_a_file_replace_tf(eye, start, tmp_path):
    """The file says that the camera sits 0.5 m ahead on a neck, which TF has 0.1 m above the base."""
    graph = eye.graph
    residual = Residual(rms_px=0.3, max_px=0.9, translation_std=0.001, rotation_std=0.001, views=9, points=200)
    file = tmp_path / "extrinsics.yaml"
    T_neck_camera = pin.SE3(T_BASE_CAMERA.rotation, np.array([0.5, 0.0, 1.9]))
    fields = {"camera": OPTICAL, "parent": "neck", "date": "2026-05-04T10:00:00+00:00", "method": "board on robot"}
    file.write_text(CameraExtrinsics.of(T_neck_camera, residual=residual, **fields).yaml(), encoding="utf-8")
    neck = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))
    eye.tf_static.publish(TFMessage(transforms=[transform_message(0, "base_link", "neck", neck)]))
    topics = {"points": "calibrated/points", "points/quality": "calibrated/points/quality"}
    parameters = {"mask_source": "labels", "objects": "[plate]", "rate": 1000, "keypoints": False}
    node = start("point_extractor", "calibrated", topics, extrinsics=file, **parameters)
    profile = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    clouds = graph.listen(PointCloud2, "calibrated/points", profile)

    def shown() -> bool:
        eye.show(eye.picture())
        time.sleep(0.2)
        return bool(clouds)

    graph.until(shown, "points")
    points, _, _ = points_of(clouds[-1])
    np.testing.assert_allclose(points[:, 2], 0.8, atol=1e-6)
    assert points[:, 0].mean() == pytest.approx(0.5, abs=0.05)
    eye.show(eye.picture("other_optical"))
    wanted = f"header.frame_id: 'other_optical', but the extrinsics are those of '{OPTICAL}'"
    graph.until(lambda: wanted in node.output(), "a warning")


def test_time_that_jumps_is_said_once_and_points_go_on(eye):
    def jumps() -> int:
        return eye.node.output().count("stamps of the pictures jumped")

    before = jumps()
    eye.numbers = count(400)
    check_plate(*eye.cloud_of(eye.picture()))
    assert jumps() == before + 1, "on"
    eye.numbers = count(1)
    eye.clouds.clear()
    eye.quality.clear()
    for _ in range(3):
        check_plate(*eye.cloud_of(eye.picture()))
    assert jumps() == before + 2, "and back"


def test_every_picture_is_accounted_for(eye):
    """What arrived became points, or was counted by reason."""

    def figures() -> dict[str, int]:
        values = eye.graph.diagnostics["point_extractor"][2]
        return {key: int(value.split()[0]) for key, value in values.items() if value.split()[0].isdigit()}

    outcomes = ("clouds", "skipped", "unmatched pictures", "unusable pictures", "unplaced pictures", "beyond the rate")
    before = figures()["pictures"]
    for _ in range(40):
        eye.show(eye.picture())
        time.sleep(0.01)
    lossy = eye.picture()
    del lossy.messages[COLOR]
    eye.show(lossy)

    def settled() -> bool:
        values = figures()
        made = sum(values.get(key, 0) for key in outcomes)
        dropped = sum(values.get(f"{kind} mask", 0) for kind in ("late", "duplicated", "forgotten"))
        return values["pictures"] > before + 20 and values["pictures"] == made + dropped

    eye.graph.until(settled, "an account of every picture")
    assert figures()["missing color"] > 0
