# SPDX-License-Identifier: Apache-2.0
"""Back-projection: round trips through a pinhole and its distortions, and the same points as Open3D's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.errors import CalibrationError
from supple.perception.deprojection import deproject, deproject_image, pixel_rays
from supple.perception.frames import Intrinsics

PLAIN = Intrinsics(600.0, 590.0, 322.0, 238.0, 640, 480)
LENSES = {
    "plumb_bob": ((0.1, -0.2, 0.001, -0.002, 0.05), (-0.3, 0.1, 0.0, 0.0, 0.0), (0.08, -0.1, 0.0, 0.0)),
    "rational_polynomial": ((0.5, -2.6, 0.001, -0.001, 1.5, 0.4, -2.4, 1.4),),
    "equidistant": ((0.05, -0.01, 0.002, 0.0),),
}


@given(
    st.tuples(st.floats(200, 1200), st.floats(200, 1200), st.floats(10, 630), st.floats(10, 470)),
    st.lists(st.tuples(st.integers(0, 479), st.integers(0, 639), st.floats(0.05, 20.0)), min_size=1, max_size=20),
)
def test_a_point_projects_to_its_pixel(numbers, pixels):
    camera = Intrinsics(*numbers, 640, 480)
    rows, columns, depth = np.array(pixels).T
    points = deproject(camera, rows, columns, depth)
    assert np.array_equal(points[:, 2], depth)
    np.testing.assert_allclose(camera.fx * points[:, 0] / points[:, 2] + camera.cx, columns, atol=1e-9)
    np.testing.assert_allclose(camera.fy * points[:, 1] / points[:, 2] + camera.cy, rows, atol=1e-9)


def test_the_optical_frame_looks_along_z_with_y_down():
    right_and_low = deproject(PLAIN, np.array([400]), np.array([600]), np.array([2.0]))
    assert (right_and_low > 0.0).all()
    middle = deproject(PLAIN, np.array([238]), np.array([322]), np.array([2.0]))
    assert np.array_equal(middle, [[0.0, 0.0, 2.0]])


@pytest.mark.parametrize(("model", "d"), [(model, d) for model, sets in LENSES.items() for d in sets])
def test_a_distortion_is_undone_to_a_hundredth_of_a_pixel(model, d):
    camera = Intrinsics(600.0, 590.0, 322.0, 238.0, 640, 480, model, d)
    rows, columns = np.meshgrid(np.arange(0, 480, 20), np.arange(0, 640, 20))
    rows, columns = rows.ravel(), columns.ravel()
    points = deproject(camera, rows, columns, np.full(rows.shape, 1.5))
    K = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1.0]])
    project = cv2.fisheye.projectPoints if model == "equidistant" else cv2.projectPoints
    pixels, _ = project(points[:, None], np.zeros(3), np.zeros(3), K, np.array(d))
    assert np.abs(pixels.reshape(-1, 2) - np.stack([columns, rows], axis=1)).max() < 0.01
    # It is a distortion: without undoing it pixels would be off by far more.
    assert np.abs(points - deproject(PLAIN, rows, columns, np.full(rows.shape, 1.5))).max() > 0.005


def test_pixels_that_no_ray_belongs_to_are_named():
    folded = Intrinsics(500.0, 500.0, 320.0, 240.0, 640, 480, "plumb_bob", (-2.0, 0.0, 0.0, 0.0, 0.0))
    pixel_rays(folded, np.array([240]), np.array([330]))
    with pytest.raises(CalibrationError, match=r"camera_info.d: this plumb_bob cannot be undone at row 3, column 5"):
        pixel_rays(folded, np.array([240, 3]), np.array([330, 5]))


@pytest.mark.parametrize("camera", [PLAIN, Intrinsics(600.0, 590.0, 322.0, 238.0, 640, 480, "plumb_bob", (0.1,) * 4)])
def test_an_image_gives_the_points_of_its_pixels(camera):
    depth = np.random.default_rng(0).uniform(0.5, 2.0, (480, 640)).astype(np.float32)
    depth[::7, ::5] = np.nan
    points = deproject_image(camera, depth)
    assert points.dtype == np.float32
    rows, columns = np.indices(depth.shape).reshape(2, -1)
    expected = deproject(camera, rows, columns, depth.ravel())
    np.testing.assert_allclose(points.reshape(-1, 3), expected, atol=1e-6)
    assert np.array_equal(np.isnan(points).all(axis=2), np.isnan(depth))


@pytest.mark.parametrize("camera", [PLAIN, Intrinsics(600.0, 590.0, 322.0, 238.0, 640, 480, "plumb_bob", (0.1,) * 4)])
def test_no_pixel_no_point(camera):
    nothing = np.zeros(0, np.intp)
    assert deproject(camera, nothing, nothing, np.zeros(0)).shape == (0, 3)


def test_points_are_open3ds():
    o3d = pytest.importorskip("open3d", reason="compared with Open3D where it is installed")
    rng = np.random.default_rng(1)
    depth = rng.uniform(0.3, 4.0, (480, 640)).astype(np.float32)
    pinhole = o3d.camera.PinholeCameraIntrinsic(640, 480, PLAIN.fx, PLAIN.fy, PLAIN.cx, PLAIN.cy)
    cloud = o3d.geometry.PointCloud.create_from_depth_image(
        o3d.geometry.Image(depth), pinhole, depth_scale=1.0, depth_trunc=10.0
    )
    expected = np.asarray(cloud.points).reshape(480, 640, 3)
    np.testing.assert_allclose(deproject_image(PLAIN, depth), expected, atol=1e-6)
