# SPDX-License-Identifier: Apache-2.0
"""How fast and how exact task points are, against the same pipeline written in plain Open3D calls.

    python benchmarks/points.py [--frames 100] [--noise 0.001]

Renders a table with a box, a ball and a can in MuJoCo at 640 x 480, and extracts 128 points on each on one core.
Prints the time per frame of Supple and of Open3D, the ratio, and how far the points are from the true surfaces. Without
Open3D (requirements/benchmarks.txt) only Supple's half is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable

import cv2
import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.perception.extraction import PointExtractor
from supple.perception.frames import Intrinsics, RgbdFrame, depth_in_metres
from supple.perception.masks import LabelMasks
from supple.sim.camera import Camera

Points = dict[str, NDArray[np.floating]]
OBJECTS = ("box", "ball", "can")
WIDTH, HEIGHT = 640, 480
BOX, BALL, CAN = (0.12, 0.10, 0.09), 0.09, (0.06, 0.10)
SCENE = f"""
<mujoco>
  <visual><quality numslices="256" numstacks="256"/></visual>
  <worldbody>
    <light pos="0 0 3" dir="0 0 -1"/>
    <camera name="head" pos="0 0 1.25" xyaxes="0 -1 0 .6 0 .8" fovy="58"/>
    <geom name="floor" type="plane" size="4 4 .1" rgba=".5 .5 .5 1"/>
    <body name="table" pos=".75 0 .78"><geom type="box" size=".4 .7 .02" rgba=".7 .6 .4 1"/></body>
    <body name="box" pos=".68 .28 .89" euler="0 0 25">
      <geom type="box" size="{BOX[0]} {BOX[1]} {BOX[2]}" rgba=".7 .5 .3 1"/>
    </body>
    <body name="ball" pos=".66 0 .89"><geom type="sphere" size="{BALL}" rgba=".8 .1 .1 1"/></body>
    <body name="can" pos=".68 -.26 .9"><geom type="cylinder" size="{CAN[0]} {CAN[1]}" rgba=".1 .3 .8 1"/></body>
  </worldbody>
</mujoco>
"""


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--noise", type=float, default=0.001, help="standard deviation of depth at 1 m, in [m]")
    arguments = parser.parse_args()
    # One core for both: no library may spread over more.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cv2.setNumThreads(1)

    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with Camera(model, "head", WIDTH, HEIGHT) as camera:
        picture, labels = camera.render(data), camera.labels(data, OBJECTS)
        intrinsics = Intrinsics(*camera.intrinsics, WIDTH, HEIGHT)
    rng = np.random.default_rng(0)
    seen = np.where(np.isfinite(picture.depth), picture.depth, 0.0)
    noisy = seen + arguments.noise * seen**2 * rng.standard_normal(seen.shape)
    raw = np.round(1000.0 * noisy).clip(0).astype(np.uint16)
    turn = np.diag([1.0, -1.0, -1.0])
    T_base_camera = pin.SE3(data.camera("head").xmat.reshape(3, 3) @ turn, data.camera("head").xpos)
    extractor = PointExtractor(OBJECTS)
    names = dict(enumerate(OBJECTS, start=1))

    def supple() -> Points:
        frame = RgbdFrame(0, picture.rgb, depth_in_metres(raw, "16UC1"), intrinsics)
        masks = LabelMasks(labels, names).masks(frame)
        found = extractor.extract(frame, masks, T_base_camera).objects
        return {name: found[name].points for name in OBJECTS}

    print(f"{'pixels of box, ball, can':38} {', '.join(str(int((labels == label).sum())) for label in names)}")
    pipelines: dict[str, Callable[[], Points]] = {"Supple": supple}
    if importlib.util.find_spec("open3d") is not None:
        masks = {name: labels == label for label, name in names.items()}
        plain = open3d_pipeline(picture.rgb, raw, masks, intrinsics, T_base_camera)
        pipelines["Open3D"] = lambda: plain(True)
        pipelines["Open3D, flying pixels left in"] = lambda: plain(False)
    times = measure(pipelines, arguments.frames)
    for name, run in pipelines.items():
        errors = 1e3 * np.concatenate([distances(data, body, points) for body, points in run().items()])
        print(
            f"{name + ', ms per frame':38} {np.median(times[name]):.2f}   (99 %: {np.percentile(times[name], 99):.2f})"
        )
        print(f"{'  distance to the surface, mm':38} {np.median(errors):.2f}   (largest: {errors.max():.2f})")
    for name in list(pipelines)[1:]:
        ratio = np.median(np.array(times[name]) / np.array(times["Supple"]))
        print(f"{name + ', times Supple':38} {ratio:.1f}")
    if len(pipelines) == 1:
        print("Open3D is not installed: no comparison")


def measure(pipelines: dict[str, Callable[[], Points]], frames: int) -> dict[str, list[float]]:
    """Return the wall time of each frame in [ms]; the pipelines take turns, so that each meets the same machine."""
    times: dict[str, list[float]] = {name: [] for name in pipelines}
    for frame in range(frames + 1):
        for name, run in pipelines.items():
            start = time.perf_counter_ns()
            run()
            # The first frame pays for what is set up once.
            if frame > 0:
                times[name].append((time.perf_counter_ns() - start) / 1e6)
    return times


def distances(data: mujoco.MjData, name: str, points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the distance in [m] of points in the world frame from an object's true surface."""
    body = data.body(name)
    local = (points.astype(np.float64) - body.xpos) @ body.xmat.reshape(3, 3)
    if name == "ball":
        return np.abs(np.linalg.norm(local, axis=1) - BALL)
    if name == "box":
        outside = np.abs(local) - BOX
    else:
        outside = np.stack([np.hypot(local[:, 0], local[:, 1]) - CAN[0], np.abs(local[:, 2]) - CAN[1]], axis=1)
    return np.abs(np.linalg.norm(np.maximum(outside, 0.0), axis=1) + np.minimum(outside.max(axis=1), 0.0))


def open3d_pipeline(
    rgb: NDArray[np.uint8],
    raw: NDArray[np.uint16],
    masks: dict[str, NDArray[np.bool_]],
    intrinsics: Intrinsics,
    T_base_camera: pin.SE3,
) -> Callable[[bool], Points]:
    """Return the same steps in Open3D's own calls: erosion, back-projection, outliers, sampling, farthest points."""
    import open3d as o3d

    pinhole = o3d.camera.PinholeCameraIntrinsic(
        WIDTH, HEIGHT, intrinsics.fx, intrinsics.fy, intrinsics.cx, intrinsics.cy
    )
    extrinsic = T_base_camera.inverse().homogeneous
    colour = o3d.geometry.Image(np.ascontiguousarray(rgb))

    def eroded(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        outside = o3d.t.geometry.Image(o3d.core.Tensor((~mask).astype(np.uint8)))
        area, size = int(mask.sum()), 3
        while True:
            inside = outside.dilate(size).as_tensor().numpy()[..., 0] == 0
            if inside.sum() <= 0.8 * area:
                return inside
            size += 2

    def run(outliers: bool) -> Points:
        points = {}
        for name, mask in masks.items():
            depth = o3d.geometry.Image(np.where(eroded(mask), raw, 0).astype(np.uint16))
            rgbd = o3d.geometry.RGBDImage.create_from_color_and_depth(colour, depth, 1000.0, 5.0, False)
            cloud = o3d.geometry.PointCloud.create_from_rgbd_image(rgbd, pinhole, extrinsic)
            if outliers:
                cloud, _ = cloud.remove_statistical_outlier(nb_neighbors=20, std_ratio=2.0)
            cloud = cloud.uniform_down_sample(max(len(cloud.points) // 1000, 1))
            points[name] = np.asarray(cloud.farthest_point_down_sample(128).points)
        return points

    return run


if __name__ == "__main__":
    main()
