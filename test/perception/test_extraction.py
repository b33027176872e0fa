# SPDX-License-Identifier: Apache-2.0
"""Points on objects: exact on what MuJoCo renders, a fixed number, reported where there are too few, never invented."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import FrameError, SettingError
from supple.perception.depth_repair import DepthLimits
from supple.perception.extraction import PointExtractor, PointStatus
from supple.perception.frames import Intrinsics, RgbdFrame, depth_in_metres
from supple.perception.masks import LabelMasks
from supple.sim.camera import Camera

WIDTH, HEIGHT, FOVY = 640, 480, 58.0
RADIUS, BOX = 0.09, np.array([0.12, 0.1, 0.09])
OBJECTS = ("box", "ball", "wall")
SCENE = f"""
<mujoco>
  <visual><quality numslices="256" numstacks="256"/></visual>
  <worldbody>
    <light pos="0 0 3" dir="0 0 -1"/>
    <camera name="head" pos=".1 -.2 1.3" xyaxes="0 -1 0 .6 0 .8" fovy="{FOVY}"/>
    <body name="floor"><geom type="plane" size="4 4 .1" rgba=".5 .5 .5 1"/></body>
    <body name="box" pos=".8 .1 .5" euler="10 20 30">
      <geom type="box" size="{BOX[0]} {BOX[1]} {BOX[2]}" rgba="0 1 0 1"/>
    </body>
    <body name="ball" pos=".8 -.25 .6"><geom type="sphere" size="{RADIUS}" rgba="1 0 0 1"/></body>
    <body name="wall" pos="1.3 -.6 .5" euler="0 -20 40"><geom type="box" size=".01 .2 .2" rgba="0 0 1 1"/></body>
  </worldbody>
</mujoco>
"""
FLAT = Intrinsics(600.0, 600.0, 320.0, 240.0, 640, 480)


class Scene:
    """What the camera sees, and where everything truly is."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(SCENE)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        with Camera(self.model, "head", WIDTH, HEIGHT) as camera:
            self.picture = camera.render(self.data)
            labels = camera.labels(self.data, OBJECTS)
        f = 0.5 * HEIGHT / math.tan(math.radians(FOVY) / 2)
        self.intrinsics = Intrinsics(f, f, (WIDTH - 1) / 2, (HEIGHT - 1) / 2, WIDTH, HEIGHT)
        self.frame = self.with_depth(depth_in_metres(self.picture.depth, "32FC1"))
        self.masks = LabelMasks(labels, dict(enumerate(OBJECTS, start=1))).masks(self.frame)
        row = self.data.camera("head")
        # MuJoCo's cameras look along -z with y up.
        self.T_base_camera = pin.SE3(row.xmat.reshape(3, 3) @ np.diag([1.0, -1.0, -1.0]), row.xpos)

    def with_depth(self, depth: np.ndarray) -> RgbdFrame:
        return RgbdFrame(7, self.picture.rgb, depth, self.intrinsics)

    def distances(self, name: str, points: np.ndarray) -> np.ndarray:
        """Return how far points in the world frame are from an object's surface, in [m]."""
        body = self.data.body(name)
        local = (points.astype(np.float64) - body.xpos) @ body.xmat.reshape(3, 3)
        if name == "ball":
            return np.abs(np.linalg.norm(local, axis=1) - RADIUS)
        outside = np.abs(local) - (BOX if name == "box" else [0.01, 0.2, 0.2])
        return np.abs(np.linalg.norm(np.maximum(outside, 0.0), axis=1) + np.minimum(outside.max(axis=1), 0.0))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("name", OBJECTS)
def test_points_lie_on_rendered_planes_and_spheres_within_a_millimetre(scene, name):
    cloud = PointExtractor(OBJECTS).extract(scene.frame, scene.masks, scene.T_base_camera)
    assert cloud.stamp_ns == 7
    found = cloud.objects[name]
    assert found.points.shape == (128, 3)
    assert found.points.dtype == np.float32
    assert scene.distances(name, found.points).max() < 1e-3
    assert found.quality.status == PointStatus.OK
    assert found.quality.points == 128
    assert found.quality.mask_area == scene.masks[name].sum()
    assert found.quality.coverage > 0.9
    # The ball is not flat, which shows as a little noise.
    assert found.quality.depth_noise < (2e-4 if name == "ball" else 2e-5)
    assert math.isnan(found.quality.visible_fraction)


def test_millimetres_of_a_depth_camera_cost_half_a_millimetre(scene):
    raw = np.where(np.isfinite(scene.picture.depth), np.round(1000 * scene.picture.depth), 0).astype(np.uint16)
    frame = scene.with_depth(depth_in_metres(raw, "16UC1"))
    cloud = PointExtractor(OBJECTS).extract(frame, scene.masks, scene.T_base_camera)
    for name in OBJECTS:
        assert scene.distances(name, cloud.objects[name].points).max() < 1e-3


def test_points_spread_over_what_is_seen(scene):
    extractor = PointExtractor(OBJECTS)
    found = extractor.extract(scene.frame, scene.masks, scene.T_base_camera).objects["ball"]
    apart = np.linalg.norm(found.points[:, None] - found.points[None], axis=2)
    nearest = np.where(np.eye(128, dtype=bool), np.inf, apart).min(axis=1)
    # 128 points on a cap of about 3/4 of half a sphere's area cannot be farther apart than in a hexagonal lattice.
    lattice = math.sqrt(2.0 / math.sqrt(3.0) * 1.5 * math.pi * RADIUS**2 / 128)
    assert nearest.min() > 0.4 * lattice


def test_pixels_colours_and_points_belong_together(scene):
    colours = {"box": 1, "ball": 0, "wall": 2}
    cloud = PointExtractor(OBJECTS).extract(scene.frame, scene.masks, scene.T_base_camera)
    for name, channel in colours.items():
        found = cloud.objects[name]
        rows, columns = found.pixels.T
        assert scene.masks[name][rows, columns].all()
        assert np.array_equal(found.colors, scene.frame.rgb[rows, columns])
        assert (found.colors.argmax(axis=1) == channel).all()
        camera = (found.points - scene.T_base_camera.translation) @ scene.T_base_camera.rotation
        np.testing.assert_allclose(camera[:, 2], scene.frame.depth[rows, columns], atol=1e-6)
        np.testing.assert_allclose(
            scene.intrinsics.fx * camera[:, 0] / camera[:, 2] + scene.intrinsics.cx, columns, atol=1e-3
        )


def test_the_same_frame_gives_the_same_points(scene):
    first, second = (PointExtractor(OBJECTS).extract(scene.frame, scene.masks, scene.T_base_camera) for _ in range(2))
    for name in OBJECTS:
        assert np.array_equal(first.objects[name].points, second.objects[name].points)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6))
def test_points_move_with_the_camera(numbers):
    T = pin.exp6(np.array(numbers))
    frame, masks = wall(1.0)
    extractor = PointExtractor(["wall"])
    here = extractor.extract(frame, masks, pin.SE3.Identity()).objects["wall"].points
    there = extractor.extract(frame, masks, T).objects["wall"].points
    np.testing.assert_allclose(there, here @ T.rotation.T + T.translation, atol=1e-5)


def test_stacked_numbers_count_objects_that_are_left_out(scene):
    masks = {name: mask for name, mask in scene.masks.items() if name != "ball"}
    cloud = PointExtractor(OBJECTS, points_per_object=64).extract(scene.frame, masks, scene.T_base_camera)
    points, colours, numbers = cloud.stacked()
    assert points.shape == colours.shape == (128, 3)
    assert numbers.tolist() == [0] * 64 + [2] * 64
    assert np.array_equal(points[64:], cloud.objects["wall"].points)
    nothing = PointExtractor(["ball"]).extract(scene.frame, {}, scene.T_base_camera).stacked()
    assert [part.shape for part in nothing] == [(0, 3), (0, 3), (0,)]


# -- what is missing -----------------------------------------------------------------------------------------------


def wall(distance: float = 1.0, noise: float = 0.0) -> tuple[RgbdFrame, dict[str, np.ndarray]]:
    """Return a flat wall that fills the picture and a square mask in its middle."""
    rng = np.random.default_rng(5)
    depth = (distance + noise * rng.standard_normal((480, 640))).astype(np.float32)
    mask = np.zeros((480, 640), bool)
    mask[180:300, 240:400] = True
    return RgbdFrame(0, np.zeros((480, 640, 3), np.uint8), depth, FLAT), {"wall": mask}


def with_holes(frame: RgbdFrame, holes: np.ndarray) -> RgbdFrame:
    depth = frame.depth.copy()
    depth[holes] = np.nan
    return RgbdFrame(0, frame.rgb, depth, FLAT)


def extract(frame, masks, **settings_):
    return PointExtractor(["wall"], **settings_).extract(frame, masks, pin.SE3.Identity()).objects["wall"]


def test_an_object_that_is_not_seen_has_no_points():
    frame, masks = wall()
    for nothing in ({}, {"wall": np.zeros_like(masks["wall"])}, {"another": masks["wall"]}):
        found = extract(frame, nothing)
        assert found.points.shape == found.colors.shape == (0, 3)
        assert found.quality.status == PointStatus.NOT_SEEN
        assert (found.quality.points, found.quality.mask_area) == (0, 0)


def test_a_mask_too_thin_to_trust_has_no_points():
    frame, _ = wall()
    line = np.zeros((480, 640), bool)
    line[100:102, 50:600] = True
    found = extract(frame, {"wall": line})
    assert found.quality.status == PointStatus.THIN
    assert found.quality.mask_area == 1100
    assert math.isnan(found.quality.coverage)
    assert len(found.points) == 0


def test_without_depth_there_are_no_points_and_coverage_says_so():
    frame, masks = wall()
    found = extract(with_holes(frame, masks["wall"]), masks)
    assert found.quality.status == PointStatus.NO_DEPTH
    assert found.quality.coverage == 0.0
    assert len(found.points) == 0


def test_out_of_range_is_no_depth():
    frame, masks = wall(2.0)
    assert extract(frame, masks, limits=DepthLimits(farthest=1.5)).quality.status == PointStatus.NO_DEPTH
    assert extract(frame, masks, limits=DepthLimits(farthest=2.5)).quality.status == PointStatus.OK


def test_coverage_is_the_share_of_the_eroded_mask_with_depth():
    frame, masks = wall()
    holes = np.zeros((480, 640), bool)
    holes[:, :320] = True
    found = extract(with_holes(frame, holes), masks)
    assert found.quality.status == PointStatus.OK
    assert found.quality.coverage == pytest.approx(0.5, abs=0.02)
    assert (found.pixels[:, 1] >= 320).all()


def test_few_pixels_are_all_there_repeat_and_say_so():
    frame, masks = wall()
    holes = np.ones((480, 640), bool)
    holes[230:240, 300:310] = False
    found = extract(with_holes(frame, holes), masks)
    assert found.quality.status == PointStatus.SPARSE
    different = np.unique(found.pixels, axis=0)
    assert len(found.points) == 128
    # The corners of the patch have too few valid neighbours.
    assert found.quality.points == len(different) == 96
    assert np.array_equal(found.points[:32], found.points[96:])
    assert not holes[found.pixels[:, 0], found.pixels[:, 1]].any()


@pytest.mark.parametrize(("least", "status"), [(96, PointStatus.SPARSE), (97, PointStatus.NO_DEPTH)])
def test_below_the_minimum_nothing_is_left(least, status):
    frame, masks = wall()
    holes = np.ones((480, 640), bool)
    holes[230:240, 300:310] = False
    found = extract(with_holes(frame, holes), masks, minimum_points=least)
    assert found.quality.status == status


def test_what_hides_an_object_gives_no_points_on_it():
    # A hand a third of a metre in front covers the left half, and the mask has not noticed 8 pixels of it.
    frame, masks = wall()
    depth = frame.depth.copy()
    depth[:, :320] = 0.6
    masks["wall"][:, :312] = False
    found = extract(RgbdFrame(0, frame.rgb, depth, FLAT), masks)
    assert found.quality.status == PointStatus.OK
    assert np.isclose(found.points[:, 2], 1.0).all()


def test_depth_noise_is_told_on_any_plane():
    v, u = np.indices((480, 640))
    ray = np.stack([(u - 320) / 600, (v - 240) / 600, np.ones((480, 640))], axis=2)
    steep = 1.0 / (ray @ np.array([1.2, 0.6, 1.0]))
    _, masks = wall()
    for sigma in (0.0, 0.001, 0.003):
        noise = sigma * np.random.default_rng(6).standard_normal(steep.shape)
        frame = RgbdFrame(0, np.zeros((480, 640, 3), np.uint8), (steep + noise).astype(np.float32), FLAT)
        found = extract(frame, masks, limits=DepthLimits(edge=0.1))
        assert found.quality.depth_noise == pytest.approx(0.66 * sigma, rel=0.15, abs=2e-6)


def test_depth_noise_is_unknown_where_no_window_is_whole():
    frame, masks = wall()
    holes = np.ones((480, 640), bool)
    holes[:, ::4] = holes[:, 1::4] = holes[:, 2::4] = False
    found = extract(with_holes(frame, holes), masks)
    assert found.quality.status == PointStatus.OK
    assert math.isnan(found.quality.depth_noise)


def test_what_a_tracker_knows_is_passed_on():
    frame, masks = wall()
    extractor = PointExtractor(["wall", "other"])
    found = extractor.extract(frame, masks, pin.SE3.Identity(), {"wall": 0.4, "other": 0.0}).objects
    assert found["wall"].quality.visible_fraction == 0.4
    assert found["other"].quality.visible_fraction == 0.0


def test_an_object_at_the_border_of_the_picture():
    frame, _ = wall()
    for rows, columns in ((slice(0, 60), slice(0, 60)), (slice(420, 480), slice(580, 640)), (slice(None), slice(None))):
        mask = np.zeros((480, 640), bool)
        mask[rows, columns] = True
        found = extract(frame, {"wall": mask})
        assert found.quality.status == PointStatus.OK
        assert np.isclose(found.points[:, 2], 1.0).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.99), st.integers(1, 40))
def test_points_are_those_of_trusted_pixels_of_the_mask_or_none(seed, holes, blocks):
    rng = np.random.default_rng(seed)
    frame, _ = wall(0.8, 0.001)
    frame = with_holes(frame, rng.random((480, 640)) < holes)
    mask = np.zeros((480, 640), bool)
    for row, column in zip(rng.integers(0, 470, blocks), rng.integers(0, 630, blocks), strict=True):
        mask[row : row + rng.integers(1, 40), column : column + rng.integers(1, 40)] = True
    found = extract(frame, {"wall": mask})
    assert len(found.points) == (128 if found.quality.points else 0)
    assert np.isfinite(found.points).all()
    rows, columns = found.pixels.T
    assert mask[rows, columns].all()
    assert np.isfinite(frame.depth[rows, columns]).all()
    assert len(np.unique(found.pixels, axis=0)) == found.quality.points
    assert (found.quality.points == 128) == (found.quality.status == PointStatus.OK)


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (np.ones((240, 320), bool), "mask.wall: 320 x 240 pixels, but colour has 640 x 480"),
        (np.ones((480, 640), np.uint8), "mask.wall: expected bool pixels, got uint8"),
        (None, "mask.wall: expected bool pixels, got NoneType"),
    ],
)
def test_a_mask_that_does_not_fit_is_named(mask, said):
    frame, _ = wall()
    with pytest.raises(FrameError) as caught:
        extract(frame, {"wall": mask})
    assert str(caught.value) == said


def test_two_masks_that_claim_the_same_pixels_are_refused():
    frame, masks = wall()
    with pytest.raises(FrameError, match=r"mask.other: shares 19200 pixels with wall"):
        PointExtractor(["wall", "other"]).extract(frame, masks | {"other": masks["wall"]}, pin.SE3.Identity())


def test_a_pose_that_is_not_finite_is_refused():
    frame, masks = wall()
    lost = pin.SE3(np.eye(3), np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(FrameError, match=r"tf.transform"):
        PointExtractor(["wall"]).extract(frame, masks, lost)


@pytest.mark.parametrize(
    ("objects", "settings_", "said"),
    [
        ([], {}, "names that differ"),
        (["box", "box"], {}, "names that differ"),
        (["box"], {"minimum_points": 0}, "minimum_points"),
        (["box"], {"minimum_points": 200}, "minimum_points"),
        (["box"], {"pixels_per_object": 100}, "pixels_per_object"),
        (["box"], {"erosion": 1.0}, "erosion"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(objects, settings_, said):
    with pytest.raises(SettingError, match=said):
        PointExtractor(objects, **settings_)
