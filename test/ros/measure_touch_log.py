# SPDX-License-Identifier: Apache-2.0
"""What the logger of touch loses of a whole robot's data, and how soon it sees a sensor that is pulled.

    python test/ros/measure_touch_log.py [--minutes 10] [--folder FOLDER]

A stand-in for the robot publishes at its rates, over real DDS: clock, joints, odometry and IMU at 200 Hz, eighteen pads
and eight wrenches at 100 Hz, objects, contacts, transforms and traces at 50 Hz, and colour and depth of two cameras at
15 Hz. Half-way, one pad is silent for two seconds. Prints what was sent and what is in the log, topic by topic, what
the log says of itself, and how much of a processor the logger took.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# A domain of its own, so that nothing else that runs on the machine is heard.
os.environ["ROS_DOMAIN_ID"] = str(40 + os.getpid() % 40)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("FASTDDS_DEFAULT_PROFILES_FILE", str(ROOT / "config/fastdds_localhost.xml"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

import numpy as np  # noqa: E402 - the environment comes first
import pinocchio as pin  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from node_graph import Graph, NodeProcess  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from rosbags.rosbag2 import Reader  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from supple_interfaces.msg import CommandTrace, ContactArray, ContactEvent  # noqa: E402
from tf2_msgs.msg import TFMessage  # noqa: E402

from supple.contact.readings import PadLayout, TactileReading  # noqa: E402
from supple.nodes.conversion import header, object_poses, transform_message  # noqa: E402
from supple.nodes.point_conversion import camera_info_message, image_message  # noqa: E402
from supple.nodes.qos import CLOCK, EVENT, SENSOR, TRANSFORMS  # noqa: E402
from supple.nodes.touch_output import blank_array, fill_array  # noqa: E402
from supple.robots import g1  # noqa: E402

TICK_NS = 5_000_000
# A number that stands nowhere else in a message.
MARK = 0x1122_3344_5566_7788
PULLED = "left_index_1"
# Both hands hold something, with two fingertips each.
HOLDING = ("left_index_1", "left_middle_1", "right_index_1", "right_middle_1")
SILENCE = 2.0


class Stream:
    """One topic: a serialised message, of which only stamp and count are changed."""

    def __init__(self, graph: Graph, topic: str, message: Any, qos: Any, every: int, counted: bool = False) -> None:
        self.topic, self.every, self.sent = topic, every, 0
        self._publisher = graph.publisher(type(message), topic, qos)
        self._data = bytearray(serialize_message(message))
        self._stamped = hasattr(message, "header") or isinstance(message, Clock)
        self._count = self._data.index(struct.pack("<Q", MARK)) if counted else None

    @property
    def matched(self) -> bool:
        return self._publisher.get_subscription_count() > 0

    def send(self, stamp_ns: int) -> None:
        if self._stamped:
            struct.pack_into("<iI", self._data, 4, stamp_ns // 10**9, stamp_ns % 10**9)
        if self._count is not None:
            struct.pack_into("<Q", self._data, self._count, self.sent)
        self._publisher.publish(bytes(self._data))
        self.sent += 1


def streams(graph: Graph) -> Iterator[Stream]:
    robot = g1()
    names = robot.joints
    n = len(names)
    identity = pin.SE3.Identity()
    links = [transform_message(1, "base_link", name, identity) for name in names.names]
    yield Stream(graph, "/clock", Clock(), CLOCK, 1)
    joints = JointState(name=list(names.names), position=[0.1] * n, velocity=[0.0] * n, effort=[1.0] * n)
    yield Stream(graph, "joint_states", joints, SENSOR, 1)
    yield Stream(graph, "odom", Odometry(header=header(1, "odom"), child_frame_id="base_link"), SENSOR, 1)
    yield Stream(graph, "imu/data", Imu(header=header(1, "imu_link")), SENSOR, 1)
    for name in robot.pads:
        taxels = robot.pads[name].taxels()
        layout = PadLayout(name, robot.pads[name].link, taxels.position, taxels.normal, taxels.area)
        pressure = np.linspace(0.0, 4e4 if name in HOLDING else 5e2, len(layout))
        reading = TactileReading(1, MARK, 0, pressure, np.zeros(len(layout), dtype=np.uint8))
        yield Stream(graph, f"tactile/{name}", fill_array(blank_array(layout), reading), SENSOR, 2, counted=True)
    for kind in ("wrench", "true_wrench"):
        for frame in robot.wrench_frames:
            yield Stream(graph, f"{kind}/{frame}", WrenchStamped(header=header(1, frame)), SENSOR, 2)
    yield Stream(graph, "objects", object_poses({"box": identity}, {"box": np.zeros(6)}, 1), SENSOR, 4)
    yield Stream(graph, "contacts", ContactArray(header=header(1, "odom")), SENSOR, 4)
    yield Stream(graph, "/tf", TFMessage(transforms=links), TRANSFORMS, 4)
    ages = {"observation": ["joint_states"], "observation_age": [0.01]}
    trace = CommandTrace(source="stand_in", name=list(names.names), requested=[0.1] * n, applied=[0.1] * n, **ages)
    yield Stream(graph, "command_trace", trace, EVENT, 4)
    for camera in ("camera", "external_camera"):
        yield from pictures(graph, camera)


def pictures(graph: Graph, camera: str) -> Iterator[Stream]:
    x, y = np.meshgrid(np.arange(640), np.arange(480))
    ball = (x - 300) ** 2 + (y - 200) ** 2 < 80**2
    # The lowest bit is noise, as a camera's is: it is what cannot be compressed.
    rgb = np.stack([x * 255 // 640, y * 255 // 480, np.where(ball, 200, 40)], axis=-1)
    rgb = (rgb & ~1 | np.random.default_rng(0).integers(0, 2, rgb.shape)).astype(np.uint8)
    depth = np.where(ball, 0.8, 1.0 + 0.001 * y).astype(np.float32)
    frame = f"{camera}_color_optical_frame"
    info = camera_info_message(1, frame, (400.0, 400.0, 319.5, 239.5), 640, 480)
    for stream, encoding, pixels in (("color", "rgb8", rgb), ("aligned_depth_to_color", "32FC1", depth)):
        picture = image_message(1, frame, encoding, pixels)
        yield Stream(graph, f"{camera}/{stream}/image_raw", picture, SENSOR, 13)
        yield Stream(graph, f"{camera}/{stream}/camera_info", info, SENSOR, 13)


def play(rows: list[Stream], seconds: float) -> tuple[float, float]:
    """Send everything at its time; returns how late the latest tick was in [s], and when the pad was pulled."""
    begin, start, latest, pulled_at = time.time_ns(), time.monotonic(), 0.0, 0.0
    ticks = round(seconds * 1e9 / TICK_NS)
    pulled = range(ticks // 2, ticks // 2 + round(SILENCE * 1e9 / TICK_NS))
    for tick in range(ticks):
        wait = start + tick * TICK_NS * 1e-9 - time.monotonic()
        if wait > 0.0:
            time.sleep(wait)
        latest = max(latest, -wait)
        if tick == pulled.start:
            pulled_at = time.monotonic()
        for i, row in enumerate(rows):
            # Pictures do not all come in one tick; all readings of one time do.
            due = (tick + i if row.every > 10 else tick) % row.every == 0
            if due and not (tick in pulled and row.topic == f"tactile/{PULLED}"):
                row.send(begin + tick * TICK_NS)
    return latest, pulled_at


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, help="where the log goes; it is kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(arguments.folder or Path(temporary), arguments.minutes * 60.0)


def measure(folder: Path, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    graph = Graph("stand_in")
    events: list[tuple[float, ContactEvent]] = []
    graph.on_executor(
        lambda: graph.node.create_subscription(
            ContactEvent, "contact_events", lambda event: events.append((time.monotonic(), event)), EVENT
        )
    )
    rows = list(streams(graph))
    sensors, output = ROOT / "config/touch/g1_sim", folder / "touch"
    cameras = "['camera','external_camera']"
    logger = NodeProcess(
        "contact_logger", folder / "log.txt", output=output, sensors=sensors, cameras=cameras, settle=1.0
    )
    try:
        graph.until(lambda: all(row.matched for row in rows), "the logger's subscriptions", 120.0)
        graph.until(lambda: "logging to" in logger.output(), "the logger to log", 120.0)
        before = processor_time(logger)
        latest, pulled_at = play(rows, seconds)
        time.sleep(2.0)
        used = processor_time(logger) - before
        logger.send(signal.SIGINT)
        logger.wait(600.0)
    finally:
        logger.stop()
        graph.close()
    with Reader(output) as bag:
        logged = {connection.topic: connection.msgcount for connection in bag.connections}
    lines = [f"{'topic':48} {'sent':>8} {'logged':>8} {'missing':>8}"]
    for row in rows:
        count = logged.get("/" + row.topic.lstrip("/"), 0)
        lines.append(f"{row.topic:48} {row.sent:8} {count:8} {row.sent - count:8}")
    size = sum(file.stat().st_size for file in output.iterdir())
    silent = [row for row in events if row[1].kind == "silent" and row[1].sensor == PULLED and row[0] > pulled_at]
    lines += [
        f"latest tick of the stand-in      {latest:.3f} s",
        f"size of the log                  {size / 1e6:.0f} MB",
        f"processor time of the logger     {100 * used / seconds:.0f} % of a core",
    ]
    for at, event in silent[:1]:
        lines.append(f"pulled sensor: silence known     {at - pulled_at:.3f} s after the reading that did not come")
        lines.append(f"               in the log at     {event.value:.3f} s of silence")
    sys.stdout.write("\n".join([*lines, logger.output().splitlines()[-1], ""]))


def processor_time(node: NodeProcess) -> float:
    """Return what a process has used in [s]."""
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
