# SPDX-License-Identifier: Apache-2.0
"""Extracted points against the simulator's true surface, under distance, occlusion, noise and miscalibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cv2
import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy.spatial import cKDTree

from supple.errors import UnknownNameError
from supple.evaluation.degradation import CONDITIONS, Condition, View, degraded
from supple.evaluation.surfaces import Samples, TrueSurface
from supple.geometry import pose_from_xyyaw
from supple.perception.extraction import ObjectPoints, PointExtractor, PointStatus
from supple.perception.frames import Intrinsics, RgbdFrame
from supple.perception.masks import LabelMasks, MaskSource
from supple.robots.description import T_BODY_OPTICAL
from supple.sim.camera import Camera, RenderContext
from supple.sim.viewpoint import Viewpoint
from supple.tasks import Environment, task_named

__all__ = ["PointEvaluation", "PointPicture", "PointRow", "PointSettings", "evaluate_points"]

Array = NDArray[np.float64]

_NOMINAL_DISTANCE = 0.8
# Views look down like the robot's head, from all over the robot's side of the table.
_ELEVATION, _SPREAD = -40.0, 40.0
# Points that stand for an object's true surface.
_SAMPLES = 20_000
_AWAY = -6.0
# A point is near by within so many times the spacing of as many points spread evenly.
_REACH = 1.5
# How far behind the drawn surface a sample may lie and still be the one that is seen.
_SAME_SURFACE = 0.004
# Errors in [m] at which a point in a picture is green, yellow and red.
_GOOD, _BAD = 0.002, 0.01


class PointSettings(BaseModel):
    """What is measured.

    Attributes:
        task: Name of the task whose scene is looked at.
        distribution: Its initial distribution.
        views: Number of scenes, each seen from another side.
        seed: Seed of the scenes.
        conditions: Names of the conditions; all if empty.
        points_per_object: Fixed number of points on each object.
        tolerance: A point farther than this from the surface, in [m], is wrong.
        width: Picture width in [px].
        height: Picture height in [px].
        fovy: Vertical field of view in [deg].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = "box_lift"
    distribution: str = "D1"
    views: int = Field(default=6, ge=1, le=100)
    seed: int = 0
    conditions: tuple[str, ...] = ()
    points_per_object: int = Field(default=128, ge=8, le=4096)
    tolerance: float = Field(default=0.005, gt=0.0)
    width: int = Field(default=640, ge=64)
    height: int = Field(default=480, ge=48)
    fovy: float = Field(default=42.0, gt=5.0, lt=120.0)


class PointRow(BaseModel):
    """How good the points of one object are at one level of one condition, over all views.

    Attributes:
        condition: What was varied.
        level: Its level.
        unit: Unit of the level.
        object: Name of the object.
        views: Number of views in which something of it can be seen at all.
        found: Number of these in which points were given.
        points: Mean number of different points in a view; fewer than the fixed number if some come more than once.
        error: Mean distance of the points from the true surface in [m]; None if no points were given.
        error_95: 95th percentile of that distance in [m].
        precision: Share of the points within the tolerance.
        coverage: Share of the surface that a perfect camera sees with a point near by: within one and a half times the
            spacing of as many points spread evenly over it. Views without points count as nothing covered.
        chamfer: Mean of the error and of the mean distance from that surface to the nearest point, in [m].
        depth_noise: Median of what the extractor says of the depth's noise in [m].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    condition: str
    level: float
    unit: str
    object: str
    views: int
    found: int
    points: float
    error: float | None
    error_95: float | None
    precision: float | None
    coverage: float
    chamfer: float | None
    depth_noise: float | None


@dataclass(frozen=True, eq=False)
class PointPicture:
    """A picture with the points drawn where they are believed to be: green within 2 mm, red from 10 mm on.

    Attributes:
        title: Condition and level.
        rgb: Colours, uint8, shape (height, width, 3).
    """

    title: str
    rgb: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PointEvaluation:
    """What came of it.

    Attributes:
        settings: What was measured.
        rows: One per condition, level and object, in that order.
        pictures: Of the first view: as it is, and at the worst level of each condition.
    """

    settings: PointSettings
    rows: tuple[PointRow, ...]
    pictures: tuple[PointPicture, ...]


@dataclass(frozen=True, eq=False)
class _Look:
    """One object in one picture.

    Attributes:
        view: The picture.
        cloud: What was extracted, in the world frame.
        distances: Of each point from the true surface in [m].
        gap: Mean distance in [m] from the visible surface to the nearest point; NaN without points.
        coverage: Share of the visible surface with a point near by.
    """

    view: View
    cloud: ObjectPoints
    distances: Array
    gap: float
    coverage: float

    @property
    def found(self) -> bool:
        """Whether there are points."""
        return self.cloud.quality.status in (PointStatus.OK, PointStatus.SPARSE)


def evaluate_points(
    settings: PointSettings | None = None,
    masks: MaskSource | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> PointEvaluation:
    """Measure extracted points under every condition, one at a time; all others are perfect.

    Depth is rounded to millimetres, as depth cameras give it. The robot stands aside.

    Args:
        settings: What is measured.
        masks: Where masks come from; the simulator's segmentation if absent.
        on_progress: Called with the number of pictures done and their total.

    Raises:
        UnknownNameError: There is no such task, distribution or condition.
        SettingError: An object has no surface that is known.
        FrameError: The mask source cannot work with these pictures.
        SceneError: Nothing can be rendered on this machine.
    """
    settings = settings or PointSettings()
    conditions = _chosen(settings.conditions)
    scene = _Scene(settings)
    found: dict[tuple[str, float, str], list[_Look]] = {}
    pictures: list[PointPicture] = []
    total = settings.views * sum(len(condition.levels) for condition in conditions)
    done = 0
    with scene.context:
        for index in range(settings.views):
            scene.lay_out(index)
            shots: dict[float, _Shot] = {}
            plain: dict[float, dict[str, _Look]] = {}
            for condition in conditions:
                for level in condition.levels:
                    varied = condition.name != "distance" and level != 0.0
                    distance = level if condition.name == "distance" else _NOMINAL_DISTANCE
                    if distance not in shots:
                        shots[distance] = scene.shoot(distance, index)
                        plain[distance] = _looks(scene, shots[distance], masks, condition, 0.0, index)
                    # Where nothing is degraded the picture is the same for every condition.
                    looks = plain[distance]
                    if varied:
                        looks = _looks(scene, shots[distance], masks, condition, level, index)
                    for name, look in looks.items():
                        found.setdefault((condition.name, level, name), []).append(look)
                    if index == 0 and looks and level == condition.levels[-1]:
                        title = f"{condition.name} {level:g} {condition.unit}"
                        pictures.append(_picture(title, list(looks.values()), shots[distance], scene))
                    done += 1
                    if on_progress is not None:
                        on_progress(done, total)
    rows = [
        _row(condition, level, name, found.get((condition.name, level, name), []), settings.tolerance)
        for condition in conditions
        for level in condition.levels
        for name in scene.objects
    ]
    return PointEvaluation(settings, tuple(rows), tuple(pictures))


def _chosen(names: Sequence[str]) -> tuple[Condition, ...]:
    known = {condition.name: condition for condition in CONDITIONS}
    for name in names:
        if name not in known:
            raise UnknownNameError("condition", name, known)
    return tuple(condition for condition in CONDITIONS if not names or condition.name in names)


# -- the scene ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Shot:
    """What a perfect camera sees from one place.

    Attributes:
        view: Colours, depth and labels.
        T_world_camera: Pose of its optical frame.
        visible: What it sees of each object's true surface.
    """

    view: View
    T_world_camera: pin.SE3
    visible: Mapping[str, Samples]


class _Scene:
    """A task's scene without its robot, and a camera that looks at it from anywhere."""

    def __init__(self, settings: PointSettings) -> None:
        self.settings = settings
        self.environment = Environment(task_named(settings.task), visual=True)
        self.environment.task.check_distribution(settings.distribution)
        self.objects = tuple(self.environment.task.objects)
        world = self.environment.world
        self.model, self.data = world.model, world.data
        # A free camera has the model's own field of view.
        self.model.vis.global_.fovy = settings.fovy
        self.surfaces = {name: TrueSurface(self.model, self.data, name) for name in self.objects}
        focal = 0.5 * settings.height / np.tan(0.5 * np.radians(settings.fovy))
        centre = 0.5 * (settings.width - 1), 0.5 * (settings.height - 1)
        self.intrinsics = Intrinsics(focal, focal, *centre, settings.width, settings.height)
        self.context = RenderContext(self.model)

    def lay_out(self, index: int) -> None:
        """Place the objects of one view."""
        task, rng = self.environment.task, np.random.default_rng([self.settings.seed, index])
        layout = task.sample(self.settings.distribution, rng)
        self.environment.reset(layout)
        world = self.environment.world
        world.place_robot(pose_from_xyyaw(_AWAY, 0.0, 0.0, float(layout.T_world_base.translation[2])), layout.q)
        mujoco.mj_forward(self.model, self.data)
        self._samples = {name: surface.sample(_SAMPLES) for name, surface in self.surfaces.items()}

    def shoot(self, distance: float, index: int) -> _Shot:
        """Return what the camera sees from a distance in [m], from a side that depends on the view."""
        share = 0.5 if self.settings.views == 1 else index / (self.settings.views - 1)
        first = self._samples[self.objects[0]].points
        place = tuple(float(x) for x in 0.5 * (first.min(axis=0) + first.max(axis=0)))
        size = self.settings.width, self.settings.height
        viewpoint = Viewpoint(
            "evaluation", (place[0], place[1], place[2]), distance, (2.0 * share - 1.0) * _SPREAD, _ELEVATION, *size
        )
        with Camera(self.model, viewpoint.camera(), *size, self.context) as camera:
            frame, labels = camera.render(self.data), camera.labels(self.data, self.objects)
        depth = np.where(np.isfinite(frame.depth), frame.depth, np.float32(np.nan)).astype(np.float32)
        T_world_camera = viewpoint.T_world_camera * T_BODY_OPTICAL
        visible = {
            name: samples.chosen(self._seen(samples, T_world_camera, depth, labels == label))
            for label, (name, samples) in enumerate(self._samples.items(), start=1)
        }
        return _Shot(View(frame.rgb, depth, labels), T_world_camera, visible)

    def _seen(
        self, samples: Samples, T_world_camera: pin.SE3, depth: NDArray[np.float32], mask: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which samples of an object's surface a camera sees."""
        points = (samples.points - T_world_camera.translation) @ T_world_camera.rotation
        facing = np.einsum("ij,ij->i", samples.normals, samples.points - T_world_camera.translation) < 0.0
        z = np.maximum(points[:, 2], 1e-6)
        column = np.round(self.intrinsics.fx * points[:, 0] / z + self.intrinsics.cx).astype(np.int64)
        row = np.round(self.intrinsics.fy * points[:, 1] / z + self.intrinsics.cy).astype(np.int64)
        height, width = depth.shape
        inside = (points[:, 2] > 0.0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
        row, column = np.where(inside, row, 0), np.where(inside, column, 0)
        # A sample beside its pixel's centre is a little nearer or farther, the more so the flatter the view.
        near = np.abs(depth[row, column] - points[:, 2]) < _SAME_SURFACE + 2.0 * z / self.intrinsics.fx
        return inside & facing & mask[row, column] & near


# -- measuring ---------------------------------------------------------------------------------------------------------


def _looks(
    scene: _Scene, shot: _Shot, masks: MaskSource | None, condition: Condition, level: float, index: int
) -> dict[str, _Look]:
    """Extract and measure each object that a perfect camera sees something of, under a condition."""
    found = {}
    for label, name in enumerate(scene.objects, start=1):
        if not len(shot.visible[name].points):
            continue
        # What hides an object or tears its depth is made for this object: every one has a picture of its own.
        view = degraded(shot.view, condition.name, level, shot.view.labels == label, index)
        cloud = _extract(scene, shot, view, masks, name)
        found[name] = _measure(view, cloud, scene, name, shot.visible[name])
    return found


def _extract(scene: _Scene, shot: _Shot, view: View, masks: MaskSource | None, name: str) -> ObjectPoints:
    """Return what the extractor makes of one object, in the world frame."""
    true, count = scene.intrinsics, scene.settings.points_per_object
    believed = Intrinsics(view.focal * true.fx, view.focal * true.fy, true.cx, true.cy, true.width, true.height)
    # Whole millimetres, as cameras give them; what rounds to nothing is no depth.
    depth = np.round(1e3 * view.depth) * np.float32(1e-3)
    frame = RgbdFrame(0, view.rgb, np.where(depth > 0.0, depth, np.nan).astype(np.float32), believed)
    source = masks or LabelMasks(view.labels, dict(enumerate(scene.objects, start=1)))
    extractor = PointExtractor([name], count, min(PointExtractor([name]).minimum_points, count))
    T_world_believed = shot.T_world_camera * view.T_camera_believed
    return extractor.extract(frame, source.masks(frame), T_world_believed).objects[name]


def _measure(view: View, cloud: ObjectPoints, scene: _Scene, name: str, visible: Samples) -> _Look:
    points = cloud.points.astype(np.float64)
    distances = scene.surfaces[name].distance(points)
    if not len(points):
        return _Look(view, cloud, distances, np.nan, 0.0)
    gaps, _ = cKDTree(points).query(visible.points)
    area = visible.area * len(visible.points)
    reach = _REACH * np.sqrt(area / scene.settings.points_per_object)
    return _Look(view, cloud, distances, float(gaps.mean()), float((gaps < reach).mean()))


def _row(condition: Condition, level: float, name: str, looks: Sequence[_Look], tolerance: float) -> PointRow:
    found = [look for look in looks if look.found]
    distances = np.concatenate([look.distances for look in found]) if found else np.empty(0)
    noise = [look.cloud.quality.depth_noise for look in found if np.isfinite(look.cloud.quality.depth_noise)]
    error = float(distances.mean()) if found else None
    return PointRow(
        condition=condition.name,
        level=level,
        unit=condition.unit,
        object=name,
        views=len(looks),
        found=len(found),
        points=float(np.mean([look.cloud.quality.points for look in looks])) if looks else 0.0,
        error=error,
        error_95=float(np.percentile(distances, 95)) if found else None,
        precision=float((distances <= tolerance).mean()) if found else None,
        coverage=float(np.mean([look.coverage for look in looks])) if looks else 0.0,
        chamfer=None if error is None else 0.5 * (error + float(np.mean([look.gap for look in found]))),
        depth_noise=float(np.median(noise)) if noise else None,
    )


# -- pictures ----------------------------------------------------------------------------------------------------------


def _picture(title: str, looks: Sequence[_Look], shot: _Shot, scene: _Scene) -> PointPicture:
    """Draw points where a perfect camera would see them if they were real."""
    lens, back = scene.intrinsics, shot.T_world_camera.inverse()
    rgb = np.ascontiguousarray(looks[0].view.rgb // 2 + 64)
    # Where each object has a picture of its own, this is the first one's.
    for look in [look for look in looks if np.array_equal(look.view.rgb, looks[0].view.rgb)]:
        points = look.cloud.points.astype(np.float64) @ back.rotation.T + back.translation
        pixels = points[:, :2] / points[:, 2:] * [lens.fx, lens.fy] + [lens.cx, lens.cy]
        share = np.clip((look.distances - _GOOD) / (_BAD - _GOOD), 0.0, 1.0)
        for (u, v), s in zip(pixels, share, strict=True):
            colour = (int(60 + 190 * min(1.0, 2.0 * s)), int(60 + 170 * min(1.0, 2.0 * (1.0 - s))), 60)
            cv2.circle(rgb, (round(u), round(v)), 3, colour, -1, cv2.LINE_AA)
    return PointPicture(title, rgb)
