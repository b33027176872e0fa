# SPDX-License-Identifier: Apache-2.0
"""Cameras: metric depth against geometry and against MuJoCo's own renderer, colours, sharing and clear refusals."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from supple.errors import SceneError, StateError, UnknownNameError
from supple.sim.camera import Camera, RenderContext, label_bodies, orbit_camera

FOVY, WIDTH, HEIGHT = 60.0, 160, 120
RADIUS, SPHERE_Z, CAMERA_Z = 0.25, 0.5, 3.0
SCENE = f"""
<mujoco>
  <visual>
    <global offwidth="64" offheight="64" fovy="40"/>
    <quality offsamples="4" numslices="128" numstacks="128"/>
  </visual>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1"/>
    <camera name="down" pos="0 0 {CAMERA_Z}" fovy="{FOVY}"/>
    <camera name="level" pos="-3 0 1" xyaxes="0 -1 0 0 0 1" fovy="{FOVY}"/>
    <camera name="sensor" pos="0 0 1" sensorsize="0.01 0.01" focal="0.01 0.01" resolution="64 64"/>
    <geom name="floor" type="plane" size="6 6 .1" rgba="0 0 1 1"/>
    <body name="ball" pos="0 0 {SPHERE_Z}">
      <freejoint/>
      <geom name="ball" type="sphere" size="{RADIUS}" rgba="1 0 0 1"/>
      <geom type="box" size=".6 .6 .02" pos="0 0 .4" group="3" rgba="0 1 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SCENE)


@pytest.fixture
def data(model):
    state = mujoco.MjData(model)
    mujoco.mj_forward(model, state)
    return state


@pytest.fixture(scope="module")
def context(model):
    with RenderContext(model) as shared:
        yield shared


def rays(camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Return x/z and y/z of every pixel centre in the optical frame."""
    fx, fy, cx, cy = camera.intrinsics
    u, v = np.meshgrid(np.arange(camera.width), np.arange(camera.height))
    return (u - cx) / fx, (v - cy) / fy


def test_depth_is_that_of_plane_and_sphere(model, data, context):
    camera = Camera(model, "down", WIDTH, HEIGHT, context)
    frame = camera.render(data)
    x, y = rays(camera)
    # |p - c|^2 = r^2 along p = z (x, y, 1), with the sphere's centre on the axis at distance h.
    h, square = CAMERA_Z - SPHERE_Z, 1.0 + x**2 + y**2
    inside = h**2 - square * (h**2 - RADIUS**2)
    expected = np.where(inside > 0.0, (h - np.sqrt(np.maximum(inside, 0.0))) / square, CAMERA_Z)
    # The drawn sphere is a polyhedron, so its outline, where depth jumps by half a metre, is off by a pixel.
    plane, sphere = inside < -0.03, inside > 0.01
    assert plane.sum() > 15000
    assert sphere.sum() > 250
    assert frame.depth.dtype == np.float32
    assert np.abs(frame.depth - expected)[plane].max() < 1e-4
    assert np.abs(frame.depth - expected)[sphere].max() < 1e-3


def test_depth_is_that_of_mujocos_renderer(model, data, context, monkeypatch):
    camera = Camera(model, "down", 64, 48, context)
    frame = camera.render(data)
    # MuJoCo chose its context when it was imported; give its renderer the same one.
    backend = importlib.import_module(f"mujoco.{os.environ['MUJOCO_GL']}")
    gl_context = importlib.import_module("mujoco.rendering.classic.gl_context")
    monkeypatch.setattr(gl_context, "GLContext", backend.GLContext, raising=False)
    monkeypatch.setattr(model.vis.quality, "offsamples", 0)
    with mujoco.Renderer(model, 48, 64) as renderer:
        renderer.enable_depth_rendering()
        option = mujoco.MjvOption()
        option.geomgroup[3] = 0
        renderer.update_scene(data, "down", option)
        assert np.abs(renderer.render() - frame.depth).max() < 1e-3


def test_picture_is_upright_and_unmirrored(model, data, context):
    camera = Camera(model, "level", WIDTH, HEIGHT, context)
    data.qpos[:3] = [0.0, 0.6, 1.4]  # to the left and above
    mujoco.mj_forward(model, data)
    frame = camera.render(data)
    fx, fy, cx, cy = camera.intrinsics
    rows, columns = np.nonzero((frame.rgb[..., 0] > 60) & (frame.rgb[..., 2] < 60))
    assert columns.mean() == pytest.approx(cx - fx * 0.6 / 3.0, abs=1.0)
    assert rows.mean() == pytest.approx(cy - fy * 0.4 / 3.0, abs=1.0)
    assert np.isinf(frame.depth[0]).all()
    assert np.isfinite(frame.depth[-1]).all()
    assert np.array_equal(frame.rgb, camera.rgb(data))


def test_focal_length_follows_the_field_of_view(model, context):
    camera = Camera(model, "down", WIDTH, HEIGHT, context)
    f = 0.5 * HEIGHT / math.tan(math.radians(FOVY) / 2)
    assert camera.intrinsics == pytest.approx((f, f, (WIDTH - 1) / 2, (HEIGHT - 1) / 2))
    free = Camera(model, orbit_camera((0, 0, 0), 2.0, 0.0, -30.0), WIDTH, HEIGHT, context)
    assert free.intrinsics[0] == pytest.approx(0.5 * HEIGHT / math.tan(math.radians(40.0) / 2))


def test_collision_shapes_are_not_seen(model, data, context):
    frame = Camera(model, "down", WIDTH, HEIGHT, context).render(data)
    red, green, blue = frame.rgb.astype(int).transpose(2, 0, 1)
    assert (green <= np.maximum(red, blue)).all()


def test_orbit_camera_looks_at_its_point(model, data, context):
    camera = Camera(model, orbit_camera((0.0, 0.0, SPHERE_Z), 2.0, 90.0, -20.0), WIDTH, HEIGHT, context)
    frame = camera.render(data)
    assert frame.depth[HEIGHT // 2, WIDTH // 2] == pytest.approx(2.0 - RADIUS, abs=5e-3)


# -- which body a pixel shows ------------------------------------------------------------------------------------------

PARTS = f"""
<mujoco>
  <worldbody>
    <light pos="0 0 4" dir="0 0 -1"/>
    <camera name="level" pos="-3 0 1" xyaxes="0 -1 0 0 0 1" fovy="{FOVY}"/>
    <geom name="floor" type="plane" size="6 6 .1"/>
    <body name="arm" pos="0 .4 1">
      <geom type="box" size=".1 .2 .1"/>
      <body name="hand" pos="0 0 .4"><geom type="sphere" size=".15"/></body>
      <geom type="box" size=".5 .5 .5" group="3"/>
    </body>
    <body name="ball" pos=".5 -.5 1"><freejoint/><geom type="sphere" size=".3"/></body>
    <flexcomp name="cloth" type="grid" count="5 5 1" spacing=".1 .1 .1" radius=".01" mass="1" pos="0 -.6 .3" dim="2">
      <edge equality="true"/>
    </flexcomp>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def parts():
    model = mujoco.MjModel.from_xml_string(PARTS)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with Camera(model, "level", WIDTH, HEIGHT) as camera:
        yield model, data, camera


def test_segmentation_is_that_of_plane_and_sphere(model, data, context):
    camera = Camera(model, "down", WIDTH, HEIGHT, context)
    bodies = camera.segmentation(data)
    x, y = rays(camera)
    h, square = CAMERA_Z - SPHERE_Z, 1.0 + x**2 + y**2
    inside = h**2 - square * (h**2 - RADIUS**2)
    assert bodies.dtype == np.int32
    assert np.array_equal(bodies[inside > 0.01], np.full(np.sum(inside > 0.01), model.body("ball").id))
    assert np.array_equal(bodies[inside < -0.03], np.zeros(np.sum(inside < -0.03)))


def test_segmentation_has_the_outlines_of_the_colours_and_leaves_them_alone(model, data, context):
    camera = Camera(model, "down", WIDTH, HEIGHT, context)
    before = camera.render(data)
    bodies = camera.segmentation(data)
    after = camera.render(data)
    assert np.array_equal(before.rgb, after.rgb)
    assert np.array_equal(before.depth, after.depth)
    red = before.rgb[..., 0] > before.rgb[..., 2]
    assert red.sum() > 250
    assert np.array_equal(bodies == model.body("ball").id, red)


def test_segmentation_says_where_there_is_nothing(parts):
    _, data, camera = parts
    bodies = camera.segmentation(data)
    assert np.array_equal(bodies == -1, np.isinf(camera.render(data).depth))
    assert (bodies == -1).any()


def test_every_part_is_its_own_body(parts):
    model, data, camera = parts
    bodies = camera.segmentation(data)
    fx, fy, cx, cy = camera.intrinsics
    shown = {}
    for name in ("arm", "hand", "ball"):
        x, y, z = data.xpos[model.body(name).id] - data.cam_xpos[0]
        shown[name] = bodies[round(cy - fy * z / x), round(cx - fx * y / x)]
    assert shown == {name: model.body(name).id for name in shown}
    first_vertex = model.flex_vertbodyid[0]
    assert np.sum(bodies == first_vertex) > 50
    assert set(np.unique(bodies)) == {-1, 0, first_vertex, *shown.values()}


def test_labels_are_of_objects_with_what_hangs_on_them(parts):
    model, data, camera = parts
    bodies = camera.segmentation(data)
    labels = camera.labels(data, ["ball", "arm"])
    assert labels.dtype == np.uint16
    assert np.array_equal(labels == 1, bodies == model.body("ball").id)
    assert np.array_equal(labels == 2, np.isin(bodies, [model.body("arm").id, model.body("hand").id]))
    assert np.array_equal(labels == 0, ~np.isin(labels, [1, 2]))
    apart = camera.labels(data, ["arm", "hand"])
    assert np.array_equal(apart == 2, bodies == model.body("hand").id)


def test_an_unknown_object_has_no_label(parts):
    model, data, camera = parts
    with pytest.raises(UnknownNameError, match="'bal'; did you mean 'ball'"):
        camera.labels(data, ["bal"])
    assert label_bodies(model, []).tolist() == [0] * model.nbody


def test_cameras_that_share_a_context_do_not_disturb_each_other(model, data, context):
    small, large = Camera(model, "down", 80, 60, context), Camera(model, "level", 320, 240, context)
    first = small.rgb(data)
    assert large.rgb(data).shape == (240, 320, 3)
    assert np.array_equal(small.rgb(data), first)
    large.close()
    assert np.array_equal(small.rgb(data), first)


def test_two_contexts_live_side_by_side(model, data):
    other = mujoco.MjModel.from_xml_string(SCENE)
    state = mujoco.MjData(other)
    mujoco.mj_forward(other, state)
    with Camera(model, "down", 80, 60) as one, Camera(other, "down", 80, 60) as two:
        assert np.array_equal(one.rgb(data), two.rgb(state))
        two.close()
        assert one.rgb(data).any()


def test_closing_is_final_and_may_be_repeated(model, data):
    camera = Camera(model, "down", 80, 60)
    camera.close()
    camera.close()
    with pytest.raises(SceneError, match="closed"):
        camera.render(data)


def test_model_is_left_as_it_was(model):
    assert model.vis.quality.offsamples == 4
    assert model.vis.quality.shadowsize == mujoco.MjModel.from_xml_string(SCENE).vis.quality.shadowsize


def test_bad_requests_are_refused(model, data, context):
    with pytest.raises(UnknownNameError, match="'dwon'; did you mean 'down'"):
        Camera(model, "dwon", 80, 60, context)
    with pytest.raises(SceneError, match="sensor size"):
        Camera(model, "sensor", 80, 60, context)
    with pytest.raises(SceneError, match="at least one pixel"):
        Camera(model, "down", 0, 60, context)
    with pytest.raises(SceneError, match="another model"):
        Camera(mujoco.MjModel.from_xml_string(SCENE), "down", 80, 60, context)
    other = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    with pytest.raises(StateError, match="of another model"):
        Camera(model, "down", 80, 60, context).render(mujoco.MjData(other))


def run_fresh(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter in which neither MuJoCo nor a graphics library is loaded yet."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    inherited["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, env=inherited | environment, timeout=120, check=False
    )


DRAW = """
import os, mujoco
from supple.sim.camera import Camera
assert "MUJOCO_GL" not in os.environ or os.environ["MUJOCO_GL"] == os.environ.get("WANTED"), "set at import"
scene = "<mujoco><worldbody><geom size='1'/><camera name='c' pos='0 0 3'/></worldbody></mujoco>"
model = mujoco.MjModel.from_xml_string(scene)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
camera = Camera(model, "c", 32, 32)
print(os.environ["MUJOCO_GL"], float(camera.render(data).depth[16, 16]))
"""


def test_a_backend_is_chosen_when_none_is_set_and_the_end_is_quiet():
    result = run_fresh(DRAW)
    assert result.returncode == 0, result.stderr
    backend, depth = result.stdout.split()
    assert backend in ("egl", "osmesa")
    assert float(depth) == pytest.approx(2.0, abs=0.02)
    assert result.stderr == ""


def test_a_backend_that_fails_is_named_with_what_to_install():
    result = run_fresh(DRAW, MUJOCO_GL="egl", WANTED="egl", PYOPENGL_PLATFORM="osmesa")
    assert result.returncode != 0
    assert "SceneError" in result.stderr
    assert "MUJOCO_GL=egl" in result.stderr
    assert "libosmesa6" in result.stderr
