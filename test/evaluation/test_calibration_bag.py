# SPDX-License-Identifier: Apache-2.0
"""``supple calibrate`` from the recording of an operator: the camera is found, and what is missing is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

sys.path.append(str(Path(__file__).parent))

import board_bag

from supple.cli.main import app
from supple.episodes.bag import BagWriter
from supple.errors import ExtrinsicsError, UnknownNameError
from supple.evaluation.calibration_bag import CalibrationBag, gather_views, read_points
from supple.geometry import pose_error
from supple.perception.boards import Board
from supple.perception.calibration import solve_board_on_robot
from supple.perception.extrinsics import CameraExtrinsics

BOARDS = Path(__file__).resolve().parents[2] / "config/boards"
BOARD = Board.read(BOARDS / "charuco_7x5.yaml")


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    return board_bag.write_bag(tmp_path_factory.mktemp("bags") / "session", BOARD, 1, 10)


def calibrate(*arguments: str):
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def test_camera_is_found_from_a_recording(recording, tmp_path):
    out = tmp_path / "calibration/camera.yaml"
    done = calibrate(
        "camera", recording, "--parent", board_bag.PARENT, "--board", "charuco_7x5",
        "--board-on", board_bag.CARRIER, "--out", out, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = CameraExtrinsics.read(out)
    distance, angle = pose_error(found.T_parent_camera, board_bag.T_PARENT_CAMERA)
    assert distance < 1e-3
    assert angle < 1e-3
    assert found.residual.rms_px < 0.3
    assert (found.camera, found.parent) == (board_bag.CAMERA, board_bag.PARENT)
    assert found.residual.views == 10
    assert json.loads(done.stdout.splitlines()[-1])["residual"]["views"] == 10
    assert "while it moved" in done.stderr


def test_a_chessboard_does_as_well(tmp_path):
    board = Board.read(BOARDS / "chessboard_9x6.yaml")
    bag = CalibrationBag(board_bag.write_bag(tmp_path / "bag", board, 4, 12, rest=7))
    found = gather_views(bag, board, board_bag.PARENT, board_bag.CARRIER)
    assert len(found.views) >= 6
    solution = solve_board_on_robot(found.views, bag.intrinsics)
    assert max(pose_error(solution.T_parent_camera, board_bag.T_PARENT_CAMERA)) < 2e-3
    assert max(pose_error(solution.T_carrier_board, board_bag.T_CARRIER_BOARD)) < 2e-3


def test_only_pictures_at_rest_in_new_poses_are_used(recording):
    bag = CalibrationBag(recording)
    found = gather_views(bag, BOARD, board_bag.PARENT, board_bag.CARRIER)
    pictures = sum(1 for _ in bag.pictures())
    assert sum(found.left_out.values()) + len(found.views) == pictures == 160
    assert set(found.left_out) <= {"while it moved", "in a pose seen before", "without a pose of the robot"}
    names = [view.name for view in found.views]
    assert names == sorted(names, key=lambda name: float(name.split()[0]))


def test_known_points_of_the_robot(recording, tmp_path):
    """Where the board is on the hand is known here, so that its corners are points of the robot."""
    bag = CalibrationBag(recording)
    views = gather_views(bag, BOARD, board_bag.PARENT, board_bag.CARRIER).views[:3]
    points = []
    for view in views:
        for corner, pixel in list(zip(view.sight.points, view.sight.pixels, strict=True))[::6]:
            offset = board_bag.T_CARRIER_BOARD.act(corner)
            depth = (board_bag.T_PARENT_CAMERA.inverse() * view.T_parent_carrier).act(offset)[2]
            points.append(
                {
                    "pixel": pixel.tolist(),
                    "frame": board_bag.CARRIER,
                    "offset": offset.tolist(),
                    "stamp": float(view.name.split()[0]),
                    "depth": float(depth) if len(points) % 2 else None,
                }
            )
    marked, out = tmp_path / "points.yaml", tmp_path / "camera.yaml"
    marked.write_text(yaml.safe_dump(points))
    done = calibrate("camera", recording, "--parent", board_bag.PARENT, "--points", marked, "--out", out)
    assert done.exit_code == 0, done.output
    found = CameraExtrinsics.read(out)
    assert found.method == "known points"
    assert max(pose_error(found.T_parent_camera, board_bag.T_PARENT_CAMERA)) < 2e-3
    assert found.residual.rms_depth < 2e-3


def test_poses_without_variation_are_refused_and_nothing_is_written(tmp_path):
    recording = board_bag.write_bag(tmp_path / "bag", BOARD, 0, 8, tilt=0.02, rest=7)
    out = tmp_path / "camera.yaml"
    done = calibrate(
        "camera", recording, "--parent", board_bag.PARENT, "--board", "charuco_7x5",
        "--board-on", board_bag.CARRIER, "--out", out,
    )  # fmt: skip
    assert done.exit_code == 1
    assert "error: the board turned" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (("--board", "charuco_7x5"), "--board needs --board-on"),
        ((), "give either --board"),
        (("--board", "charuco_7x4", "--board-on", "hand"), "did you mean 'charuco_7x5'"),
        (("--board", "charuco_7x5", "--board-on", "right_wrist_yaw_lnk"), "did you mean 'right_wrist_yaw_link'"),
        (("--board", "charuco_7x5", "--board-on", "x", "--image", "camera/color"), "unknown image topic"),
    ],
)
def test_wrong_usage_is_one_line(recording, tmp_path, extra, said):
    out = ("--parent", board_bag.PARENT, "--out", tmp_path / "camera.yaml")
    done = calibrate("camera", recording, *out, *extra)
    assert done.exit_code == 1
    assert said in " ".join(done.stderr.split())
    assert len(done.stderr.strip().split("error:")) == 2
    assert not (tmp_path / "camera.yaml").exists()


def test_bags_that_lack_something_are_refused_by_topic(tmp_path):
    still = np.r_[np.zeros(3), 0.0, 0.0, 0.0, 1.0]
    grey = np.full((48, 64, 3), 90, np.uint8)
    with BagWriter(tmp_path / "no_info") as bag:
        bag.tf(1, {("a", "b"): still}, static=True)
        bag.image(10**9, grey)
    with pytest.raises(ExtrinsicsError, match="no topic '/camera/color/camera_info'"):
        CalibrationBag(tmp_path / "no_info")
    with BagWriter(tmp_path / "no_tf") as bag:
        bag.image(10**9, grey)
        bag.camera_info(10**9, 64, 48, 50.0, 50.0, 31.5, 23.5)
    with pytest.raises(ExtrinsicsError, match="neither tf nor tf_static"):
        CalibrationBag(tmp_path / "no_tf")
    with BagWriter(tmp_path / "two") as bag:
        bag.tf(1, {("a", "b"): still}, static=True)
        bag.image(10**9, grey)
        bag.image(10**9, grey, topic="wrist/color/image_raw")
    with pytest.raises(ExtrinsicsError, match="/camera/color/image_raw, /wrist/color/image_raw"):
        CalibrationBag(tmp_path / "two")
    with pytest.raises(UnknownNameError, match="did you mean '/wrist/color/image_raw'"):
        CalibrationBag(tmp_path / "two", "wrist/color/image_rw")
    with BagWriter(tmp_path / "size") as bag:
        bag.tf(1, {("a", "b"): still}, static=True)
        bag.image(10**9, grey)
        bag.camera_info(10**9, 640, 480, 500.0, 500.0, 319.5, 239.5)
    with pytest.raises(ExtrinsicsError, match="has 64 x 48 px, camera_info says 640 x 480"):
        gather_views(CalibrationBag(tmp_path / "size"), BOARD, "a", "b")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"pixel": [1, 2]}, "point 1: expected either position or frame"),
        ({"pixel": [1, 2], "position": [1, 2, 3], "frame": "a", "stamp": 1.0}, "either position or frame"),
        ({"pixel": [1, 2], "frame": "a"}, "point 1: frame 'a' needs the stamp"),
        ({"pixel": [1], "position": [1, 2, 3]}, "point 1: pixel"),
        ({"pixl": [1, 2], "position": [1, 2, 3]}, "point 1: pix"),
        ({"pixel": [1, float("nan")], "position": [1, 2, 3]}, "point 1: pixel.1"),
    ],
)
def test_malformed_points_are_named(tmp_path, entry, said):
    path = tmp_path / "points.yaml"
    path.write_text(yaml.safe_dump([{"pixel": [1, 2], "position": [1, 2, 3]}, entry]))
    with pytest.raises(ExtrinsicsError, match=said):
        read_points(path)


def test_board_is_printed_in_its_true_size(tmp_path):
    from PIL import Image

    done = calibrate("board", "charuco_7x5", "--out", tmp_path / "board.png", "--dpi", "200")
    assert done.exit_code == 0, done.output
    with Image.open(tmp_path / "board.png") as picture:
        inches = picture.size[0] / picture.info["dpi"][0]
        sight = BOARD.find(np.asarray(picture.convert("L")))
    assert inches * 25.4 == pytest.approx(8 * 34.0, rel=0.01)
    assert len(sight.points) == 24
    assert calibrate("board", "charuco_7x5", "--out", tmp_path / "board.pdf").exit_code == 0
    assert (tmp_path / "board.pdf").read_bytes()[:4] == b"%PDF"
    assert calibrate("board", "charuco_7x5", "--out", tmp_path / "board.txt").exit_code == 1
