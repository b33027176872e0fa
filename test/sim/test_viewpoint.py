# SPDX-License-Identifier: Apache-2.0
"""A camera beside the scene: its pose is what its pictures show, and physics does not know of it."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from supple.geometry import pose_error
from supple.robots.description import T_BODY_OPTICAL
from supple.sim.camera import Camera
from supple.sim.viewpoint import Viewpoint

SPOT = """
<mujoco><worldbody>
  <light pos="0 0 3"/>
  <body name="ball" pos="0.3 -0.2 0.5"><geom type="sphere" size="0.03"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize(
    "viewpoint",
    [
        Viewpoint("beside", (0.2, 0.0, 0.4), 1.5, 75.0, -25.0),
        Viewpoint("behind", (0.3, -0.1, 0.5), 0.8, -160.0, -60.0, 320, 240),
        Viewpoint("below", (0.3, -0.2, 0.6), 1.0, 10.0, 30.0),
    ],
    ids=lambda viewpoint: viewpoint.name,
)
def test_what_it_shows_is_where_its_pose_says(viewpoint):
    model = mujoco.MjModel.from_xml_string(SPOT)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with Camera(model, viewpoint.camera(), viewpoint.width, viewpoint.height) as camera:
        rows, columns = np.nonzero(camera.labels(data, ("ball",)))
        fx, fy, cx, cy = camera.intrinsics
    optical = viewpoint.T_world_camera * T_BODY_OPTICAL
    x, y, z = optical.actInv(data.body("ball").xpos)
    assert z > 0.0
    assert columns.mean() == pytest.approx(fx * x / z + cx, abs=0.5)
    assert rows.mean() == pytest.approx(fy * y / z + cy, abs=0.5)


def test_its_frames_follow_from_its_pose():
    viewpoint = Viewpoint("beside", (1.0, 2.0, 0.5), 2.0, 90.0, -30.0)
    frames = viewpoint.fixed_frames("odom")
    assert set(frames) == {
        ("odom", "beside_link"),
        ("beside_link", "beside_color_optical_frame"),
        ("beside_link", "beside_depth_optical_frame"),
    }
    pose = frames["odom", "beside_link"]
    assert max(pose_error(pose, viewpoint.T_world_camera)) < 1e-12
    np.testing.assert_allclose(pose.translation, [1.0, 2.0 - 2.0 * math.cos(math.radians(30.0)), 1.5], atol=1e-12)
    np.testing.assert_allclose(pose.act(np.array([2.0, 0.0, 0.0])), [1.0, 2.0, 0.5], atol=1e-12)
    assert pose.rotation[2, 2] > 0.0, "upright"
