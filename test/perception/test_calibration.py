# SPDX-License-Identifier: Apache-2.0
"""The camera is found where it is, its stated uncertainty is true, and sets that do not determine it are refused."""

from __future__ import annotations

import cv2
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import ExtrinsicsError
from supple.geometry import pose_error
from supple.perception.boards import BoardSight
from supple.perception.calibration import (
    BoardView,
    CalibrationLimits,
    solve_board_on_robot,
    solve_known_points,
)
from supple.perception.frames import Intrinsics

LENS = Intrinsics(455.0, 455.0, 319.5, 239.5, 640, 480)
BENT = Intrinsics(455.0, 452.0, 310.0, 236.0, 640, 480, "plumb_bob", (0.12, -0.25, 0.001, -0.002, 0.05))
FISH = Intrinsics(300.0, 300.0, 320.0, 240.0, 640, 480, "equidistant", (0.05, -0.01, 0.002, 0.0))
# Optical frame of a head camera that looks ahead and down.
T_PARENT_CAMERA = pin.SE3(
    pin.rpy.rpyToMatrix(0.0, 0.7, 0.05) @ np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]), np.array([0.06, 0.02, 0.43])
)
T_CARRIER_BOARD = pin.SE3(pin.rpy.rpyToMatrix(0.4, -1.2, 0.3), np.array([0.12, 0.03, -0.05]))
CORNERS = np.array([[0.036 * (x + 1), 0.036 * (y + 1), 0.0] for y in range(4) for x in range(6)])


def project(T_camera_points: pin.SE3, points: np.ndarray, lens: Intrinsics = LENS) -> np.ndarray:
    """Return pixels as OpenCV projects them, independently of the code under test."""
    K = np.array([[lens.fx, 0, lens.cx], [0, lens.fy, lens.cy], [0, 0, 1.0]])
    vector, moved = pin.log3(T_camera_points.rotation), T_camera_points.translation
    if lens.distortion_model == "equidistant" and lens.distortion:
        pixels, _ = cv2.fisheye.projectPoints(points.reshape(-1, 1, 3), vector, moved, K, np.array(lens.distortion))
    else:
        pixels, _ = cv2.projectPoints(points, vector, moved, K, np.array(lens.distortion or (0.0,) * 4))
    return np.asarray(pixels).reshape(-1, 2)


def board_views(
    rng: np.random.Generator, count: int, noise: float = 0.0, lens: Intrinsics = LENS, tilt: float = 0.5, scale=1.0
) -> list[BoardView]:
    """Return views of a board that a hand holds before the camera in random poses."""
    views = []
    while len(views) < count:
        # Facing the camera (OpenCV's board frame looks away from it), tilted at random.
        turn = pin.exp3(rng.uniform(-tilt, tilt, 3))
        T_camera_board = pin.SE3(turn, np.array([*rng.uniform(-0.15, 0.1, 2), rng.uniform(0.35, 0.7)]))
        pixels = project(T_camera_board, CORNERS * scale, lens)
        if ((pixels < 0) | (pixels > [639, 479])).any():
            continue
        carrier = T_PARENT_CAMERA * T_camera_board * T_CARRIER_BOARD.inverse()
        sight = BoardSight(CORNERS, pixels + rng.normal(0.0, noise, pixels.shape))
        views.append(BoardView(f"view {len(views)}", sight, carrier))
    return views


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), lens=st.sampled_from([LENS, BENT, FISH]))
def test_board_without_noise_gives_the_exact_camera(seed, lens):
    views = board_views(np.random.default_rng(seed), 6, lens=lens)
    found = solve_board_on_robot(views, lens)
    assert max(pose_error(found.T_parent_camera, T_PARENT_CAMERA)) < 1e-5
    assert max(pose_error(found.T_carrier_board, T_CARRIER_BOARD)) < 1e-5
    assert found.residual.rms_px < 1e-3
    assert (found.residual.views, found.residual.points) == (6, 6 * 24)


def test_board_with_noise_is_as_good_as_it_says():
    """Over many sets the true error has to be of the size of the stated deviation, and small."""
    shares = []
    for seed in range(12):
        found = solve_board_on_robot(board_views(np.random.default_rng(seed), 15, noise=0.3), LENS)
        distance, angle = pose_error(found.T_parent_camera, T_PARENT_CAMERA)
        assert distance < 2e-3
        assert angle < 2e-3
        assert found.residual.rms_px == pytest.approx(0.3 * np.sqrt(2.0), rel=0.15)
        shares.append((distance / found.residual.translation_std, angle / found.residual.rotation_std))
    # A deviation along the worst axis bounds the root mean square along all three by a factor of 1 / sqrt(3).
    assert np.all(np.sqrt(np.mean(np.square(shares), axis=0)) < 1.8)
    assert np.all(np.sqrt(np.mean(np.square(shares), axis=0)) > 0.3)


def test_one_bad_view_does_not_bend_the_others_and_is_named():
    rng = np.random.default_rng(3)
    views = board_views(rng, 14, noise=0.2)
    late = pin.SE3(pin.exp3(np.array([0.0, 0.0, 0.02])), np.array([0.006, 0.0, 0.0]))
    views[4] = BoardView("12.5 s", views[4].sight, views[4].T_parent_carrier * late)
    found = solve_board_on_robot(views, LENS, CalibrationLimits(residual=20.0))
    assert int(np.argmax(found.errors_px)) == 4
    distance, angle = pose_error(found.T_parent_camera, T_PARENT_CAMERA)
    assert distance < 4e-3
    assert angle < 4e-3
    with pytest.raises(ExtrinsicsError, match=r"worst views: 12\.5 s"):
        solve_board_on_robot(views, LENS, CalibrationLimits(residual=0.5))


def test_kinematics_that_are_off_raise_the_stated_deviation():
    rng = np.random.default_rng(5)
    clean, sloppy = board_views(rng, 15, noise=0.2), []
    for view in clean:
        off = pin.SE3(pin.exp3(rng.normal(0.0, 0.003, 3)), rng.normal(0.0, 0.002, 3))
        sloppy.append(BoardView(view.name, view.sight, view.T_parent_carrier * off))
    found = [solve_board_on_robot(views, LENS, CalibrationLimits(residual=50.0)) for views in (clean, sloppy)]
    assert found[1].residual.translation_std > 3.0 * found[0].residual.translation_std
    distance, _ = pose_error(found[1].T_parent_camera, T_PARENT_CAMERA)
    assert distance < 4.0 * found[1].residual.translation_std


def test_too_few_views_are_refused():
    with pytest.raises(ExtrinsicsError, match="4 views show the board, expected at least 5"):
        solve_board_on_robot(board_views(np.random.default_rng(0), 4), LENS)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 0.6, 0.8)])
def test_turns_about_one_axis_are_refused(axis):
    views = []
    for i in range(10):
        turn = pin.exp3(np.array(axis) * (-0.4 + 0.08 * i))
        T_camera_board = pin.SE3(turn, np.array([-0.1 + 0.01 * i, -0.05, 0.4 + 0.02 * i]))
        carrier = T_PARENT_CAMERA * T_camera_board * T_CARRIER_BOARD.inverse()
        views.append(BoardView(str(i), BoardSight(CORNERS, project(T_camera_board, CORNERS)), carrier))
    with pytest.raises(ExtrinsicsError, match="about one axis only"):
        solve_board_on_robot(views, LENS)


def test_a_board_that_hardly_turns_is_refused():
    with pytest.raises(ExtrinsicsError, match=r"turned by .* deg at most, expected at least 8 deg"):
        solve_board_on_robot(board_views(np.random.default_rng(0), 10, tilt=0.01), LENS)


def test_wrong_size_of_the_squares_is_refused():
    with pytest.raises(ExtrinsicsError, match=r"residual .* px, expected at most 3\.0 px: .* another size"):
        solve_board_on_robot(board_views(np.random.default_rng(1), 12, scale=1.15), LENS)


def robot_points(rng: np.random.Generator, count: int, flat: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return points in the camera's view, in the parent's frame and in the camera's."""
    z = np.full(count, 0.6) if flat else rng.uniform(0.4, 1.0, count)
    camera = np.column_stack([rng.uniform(-0.5, 0.5, count) * z, rng.uniform(-0.4, 0.4, count) * z, z])
    return np.array([T_PARENT_CAMERA.act(p) for p in camera]), camera


@pytest.mark.parametrize("lens", [LENS, BENT, FISH], ids=["straight", "bent", "fisheye"])
@pytest.mark.parametrize("with_depth", [True, False])
def test_known_points_give_the_exact_camera(lens, with_depth):
    points, camera = robot_points(np.random.default_rng(2), 10)
    pixels = project(pin.SE3.Identity(), camera, lens)
    found = solve_known_points(points, pixels, lens, camera[:, 2] if with_depth else None)
    assert max(pose_error(found.T_parent_camera, T_PARENT_CAMERA)) < 1e-5
    assert (found.residual.rms_depth is not None) == with_depth


def test_depths_that_are_missing_are_left_out():
    rng = np.random.default_rng(4)
    points, camera = robot_points(rng, 12)
    depths = camera[:, 2] + rng.normal(0.0, 0.002, 12)
    depths[::3] = np.nan
    pixels = project(pin.SE3.Identity(), camera) + rng.normal(0.0, 0.3, (12, 2))
    found = solve_known_points(points, pixels, LENS, depths)
    distance, angle = pose_error(found.T_parent_camera, T_PARENT_CAMERA)
    assert distance < 4e-3
    assert angle < 5e-3
    assert found.residual.rms_depth == pytest.approx(0.002, rel=0.6)


def test_points_on_a_line_are_refused():
    points = np.array([[0.3 + 0.05 * i, 0.1 * i, 0.02 * i] for i in range(8)])
    T = T_PARENT_CAMERA.inverse()
    pixels = project(T, points)
    with pytest.raises(ExtrinsicsError, match="the points lie on a line"):
        solve_known_points(points, pixels, LENS)
    depths = np.array([T.act(p)[2] for p in points])
    with pytest.raises(ExtrinsicsError, match="the points lie on a line"):
        solve_known_points(points, pixels, LENS, depths)


def test_small_flat_set_with_two_solutions_is_refused():
    rng = np.random.default_rng(0)
    flat = np.column_stack([rng.uniform(-0.05, 0.05, (8, 2)), np.zeros(8)])
    T_camera_flat = pin.SE3(pin.exp3(np.array([0.5, 0.2, 0.0])), np.array([0.0, 0.0, 1.5]))
    pixels = project(T_camera_flat, flat) + rng.normal(0.0, 0.5, (8, 2))
    with pytest.raises(ExtrinsicsError, match=r"on a plane and two camera poses|determine the camera to"):
        solve_known_points(np.array([(T_PARENT_CAMERA * T_camera_flat).act(p) for p in flat]), pixels, LENS)


def test_far_and_narrow_set_is_refused_by_its_uncertainty():
    rng = np.random.default_rng(0)
    camera = np.column_stack([rng.uniform(-0.05, 0.05, (10, 2)), 3.0 + rng.uniform(-0.05, 0.05, 10)])
    pixels = project(pin.SE3.Identity(), camera) + rng.normal(0.0, 0.7, (10, 2))
    with pytest.raises(ExtrinsicsError, match=r"determine the camera (to \d+ mm|not at all)"):
        solve_known_points(np.array([T_PARENT_CAMERA.act(p) for p in camera]), pixels, LENS)


@pytest.mark.parametrize(
    ("count", "depths", "said"),
    [
        (5, None, "5 points, 0 with depth; expected at least 6, or 4 with depth"),
        (3, np.full(3, 0.5), "3 points, 3 with depth"),
        (8, np.full(7, 0.5), r"depths: expected shape \(8,\), got \(7,\)"),
        (8, np.zeros(8), r"depths: point 0 is 0\.0"),
    ],
)
def test_malformed_points_are_refused(count, depths, said):
    points, camera = robot_points(np.random.default_rng(0), count)
    with pytest.raises(ExtrinsicsError, match=said):
        solve_known_points(points, project(pin.SE3.Identity(), camera), LENS, depths)


def test_points_that_are_not_finite_are_named():
    points, camera = robot_points(np.random.default_rng(0), 8)
    pixels = project(pin.SE3.Identity(), camera)
    pixels[3, 1] = np.nan
    with pytest.raises(ExtrinsicsError, match="pixels: point 3"):
        solve_known_points(points, pixels, LENS)


def test_points_and_pixels_in_another_order_are_refused():
    points, camera = robot_points(np.random.default_rng(0), 10)
    pixels = project(pin.SE3.Identity(), camera)
    with pytest.raises(ExtrinsicsError, match=r"residual .*do not belong together"):
        solve_known_points(points[::-1], pixels, LENS)
