# SPDX-License-Identifier: Apache-2.0
"""How long it takes from the pictures of a camera to the points of three objects, over DDS, and what is lost.

measure_points.py [--seconds 20] [--rate 15] [--priority 0]

Draws a table with a box, a ball and a can once, publishes the pictures again and again with new stamps, as a driver
would, and measures on arrival of the cloud how old its stamp is: two DDS hops, synchronisation, TF, masks, extraction.
Prints a table with a row per mask source, and what it costs to make a message of a cloud of 10 MB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(Path(__file__).parent)]
os.environ["ROS_DOMAIN_ID"] = str(100 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(ROOT / "config/fastdds_localhost.xml")
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])

import mujoco  # noqa: E402 - the middleware reads the environment when it is imported
import numpy as np  # noqa: E402
import pinocchio as pin  # noqa: E402
from node_graph import Graph, NodeProcess  # noqa: E402
from points import OBJECTS, SCENE  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from sensor_msgs.msg import CameraInfo, Image, PointCloud2  # noqa: E402
from supple_interfaces.msg import Labels  # noqa: E402
from tf2_msgs.msg import TFMessage  # noqa: E402

from supple.nodes.conversion import nanoseconds, time_message, transform_message  # noqa: E402
from supple.nodes.point_conversion import camera_info_message, cloud_message, image_message, points_of  # noqa: E402
from supple.nodes.qos import LATCHED, SENSOR, TRANSFORMS  # noqa: E402
from supple.nodes.scheduling import take_priority  # noqa: E402
from supple.sim.camera import Camera  # noqa: E402

LOOKS = """
objects:
  box: {size: [0.24, 0.20, 0.18], colors: [[178, 128, 77]]}
  ball: {size: [0.18, 0.18, 0.18], colors: [[204, 26, 26]]}
  can: {size: [0.12, 0.12, 0.20], colors: [[26, 77, 204]]}
"""
COLOR, DEPTH, INFO = "camera/color/image_raw", "camera/aligned_depth_to_color/image_raw", "camera/color/camera_info"
MASK = "mask/image_raw"


def pictures() -> dict[str, object]:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    with Camera(model, "head", 640, 480) as camera:
        picture, labels, intrinsics = camera.render(data), camera.labels(data, OBJECTS), camera.intrinsics
    depth = np.where(np.isfinite(picture.depth), picture.depth, 0.0)
    noisy = depth + 0.001 * depth**2 * np.random.default_rng(0).standard_normal(depth.shape)
    return {
        COLOR: image_message(0, "eye", "rgb8", picture.rgb),
        DEPTH: image_message(0, "eye", "16UC1", np.rint(1000.0 * noisy).clip(0).astype(np.uint16)),
        INFO: camera_info_message(0, "eye", intrinsics, 640, 480),
        MASK: image_message(0, "eye", "16UC1", labels),
    }


def measure(graph: Graph, publishers: dict[str, object], source: str, options: argparse.Namespace, folder: Path) -> str:
    looks = folder / "looks.yaml"
    looks.write_text(LOOKS, encoding="utf-8")
    parameters = {"mask_source": source, "looks": looks, "objects": f"[{', '.join(OBJECTS)}]", "rate": 1000}
    node = NodeProcess("point_extractor", folder / f"{source}.log", keypoints=False, **parameters)
    if options.priority:
        time.sleep(4.0)
        for thread in Path(f"/proc/{node.process.pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_RR, os.sched_param(options.priority))
    ages: list[float] = []
    counts: list[int] = []

    def arrived(message: PointCloud2) -> None:
        ages.append((time.time_ns() - nanoseconds(message.header.stamp)) * 1e-6)
        counts.append(len(np.unique(points_of(message)[2])))

    listening = graph.on_executor(lambda: graph.node.create_subscription(PointCloud2, "points", arrived, SENSOR))
    messages, sent = pictures(), 0
    try:
        graph.until(publishers[DEPTH].get_subscription_count, "the extractor", 30.0)
        graph.until(lambda: _send(publishers, messages) and (time.sleep(0.1) or ages), "the first points", 30.0)
        time.sleep(1.0)
        ages.clear()
        counts.clear()
        due = time.monotonic()
        while sent < options.seconds * options.rate:
            _send(publishers, messages)
            sent += 1
            due += 1.0 / options.rate
            time.sleep(max(0.0, due - time.monotonic()))
        time.sleep(1.5)
        values = graph.diagnostics["point_extractor"][2]
    finally:
        node.stop()
        graph.on_executor(lambda: graph.node.destroy_subscription(listening))
    p50, p99 = np.percentile(ages, [50, 99])
    work = f"{values['points latency p50 [ms]']} | {values['points latency p99 [ms]']}"
    seen = np.mean(counts)
    return f"| {source} | {sent} | {len(ages)} | {seen:.2f} | {p50:.1f} | {p99:.1f} | {max(ages):.1f} | {work} |"


def conversion(points: int = 500_000, times: int = 20) -> str:
    rng = np.random.default_rng(0)
    rows = rng.random((points, 3), np.float32), rng.integers(0, 255, (points, 3), np.uint8), np.zeros(points, np.uint32)
    took = []
    for _ in range(times):
        began = time.perf_counter()
        message = cloud_message(1, "base_link", *rows)
        took.append(1e3 * (time.perf_counter() - began))
    return f"a cloud of {points:,} points, {len(message.data) * 1e-6:.0f} MB: {np.median(took):.1f} ms"


def _send(publishers: dict[str, object], messages: dict[str, object]) -> bool:
    stamp = time_message(time.time_ns())
    for topic, message in messages.items():
        message.header.stamp = stamp
        publishers[topic].publish(message)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=15.0, help="pictures per second in [Hz]")
    parser.add_argument("--priority", type=int, default=0, help="real-time priority, to leave others' load out of it")
    options = parser.parse_args()
    graph = Graph("measure")
    profile = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    kinds = {COLOR: Image, DEPTH: Image, INFO: CameraInfo, MASK: Image}
    publishers = {topic: graph.publisher(kind, topic, profile) for topic, kind in kinds.items()}
    graph.publisher(Labels, "mask/labels", LATCHED).publish(Labels(id=[1, 2, 3], name=list(OBJECTS)))
    pose = pin.SE3(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 1.25]))
    fixed = TFMessage(transforms=[transform_message(0, "base_link", "eye", pose)])
    graph.publisher(TFMessage, "/tf_static", LATCHED).publish(fixed)
    graph.publisher(TFMessage, "/tf", TRANSFORMS)
    if options.priority:
        sys.stdout.write(f"scheduling: {take_priority(options.priority)}\n")
    sys.stdout.write("| masks | sent | received | objects in each | p50 [ms] | p99 | max | of it work p50 | p99 |\n")
    sys.stdout.write("|---|---|---|---|---|---|---|---|---|\n")
    with tempfile.TemporaryDirectory() as folder:
        for source in ("labels", "geometric"):
            sys.stdout.write(measure(graph, publishers, source, options, Path(folder)) + "\n")
            sys.stdout.flush()
    sys.stdout.write(conversion() + "\n")
    graph.close()


if __name__ == "__main__":
    main()
