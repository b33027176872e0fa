# SPDX-License-Identifier: Apache-2.0
"""Node that makes task points of colour and depth: synchronised by stamps, placed by TF at the picture's time."""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticStatus
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from supple_interfaces.msg import Detections, Labels, TaskPoints

from supple.errors import FrameError, SuppleError
from supple.nodes.conversion import nanoseconds
from supple.nodes.diagnostics import Diagnostics, steady_clock
from supple.nodes.latest_worker import LatestWorker
from supple.nodes.lifecycle import declare_parameter
from supple.nodes.mask_parameters import DETECTIONS, LABELS, MASK_SOURCES, label_names, mask_source
from supple.nodes.point_conversion import (
    cloud_message,
    color_of,
    depth_of,
    detections_of,
    intrinsics_of,
    labels_of,
)
from supple.nodes.point_quality import task_points
from supple.nodes.qos import LATCHED_INPUT, SENSOR, publisher, subscription
from supple.nodes.runtime import run_node
from supple.nodes.transform_input import TransformInput
from supple.perception.detections import DetectionMasks
from supple.perception.extraction import PointExtractor
from supple.perception.extrinsics import CameraExtrinsics
from supple.perception.frames import RgbdFrame, depth_in_metres
from supple.perception.masks import LabelMasks
from supple.perception.synchronizer import Matched, Missed, Synchronizer
from supple.perception.tracking import MaskTracker, Track
from supple.perception.transform_buffer import TransformError
from supple.robots import robot_named
from supple.robots.keypoints import Keypoint, gripper_keypoints

__all__ = ["PointExtractorNode", "main"]

# How often what waits is looked at in [s].
_LOOK = 0.02
_REPORT = 1.0
# Pictures that wait for TF; more are given up, the oldest first.
_MOST_PENDING = 10
# Two pictures a little closer than the interval wanted are both used: stamps jitter.
_SLACK = 0.75
# The stream that a mask source needs beside the camera's.
_MASK_STREAMS = MappingProxyType({LABELS: "mask", DETECTIONS: "detections"})
# Parameters of mallopt (malloc.h); what is kept at most, and the largest block that is kept, in bytes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST = 256 << 20, 32 << 20


@dataclass(frozen=True)
class _Pending:
    """A set of messages that waits for the transforms of its time."""

    matched: Matched
    since: float


@dataclass(frozen=True)
class _Job:
    """A set of messages and where the camera and the hands were."""

    matched: Matched
    T_base_camera: pin.SE3
    up: NDArray[np.float64] | None
    keypoints: Mapping[str, NDArray[np.float64]]
    oldest_tf_ns: int
    resets: int
    began: float = field(default_factory=time.perf_counter)


class PointExtractorNode(Node):
    """Task points of one RGB-D camera.

    Messages are received and put together on the executor's thread; a thread of its own works on the newest set, so
    that a slow mask source makes clouds rarer, not later.
    """

    def __init__(self) -> None:
        super().__init__("point_extractor")
        self._robot = robot_named(self._parameter("robot", "g1", "name of the robot"))
        self._base = self._parameter("base_frame", "base_link", "frame of the points")
        self._up_frame = self._parameter("up_frame", "odom", "frame whose z points up; empty: not known")
        self._camera_frame = self._parameter(
            "camera_frame", "", "optical frame of the pictures; empty: what their headers say"
        )
        self._extrinsics = self._read_extrinsics(
            self._parameter("extrinsics", "", "file of 'supple calibrate camera'; empty: TF leads to the camera")
        )
        objects = self._parameter("objects", ["box"], "names of the objects, in the order of their numbers")
        self._kind = self._parameter("mask_source", "geometric", f"one of {', '.join(MASK_SOURCES)}")
        self._source, self._geometric = mask_source(self, self._kind, objects)
        self._tracker = MaskTracker()
        self._tracked_reset = 0
        self._unit = self._parameter("depth_unit", 0.0, "length of one unit of depth in m; 0: by REP 118") or None
        self._rate = self._parameter("rate", 15.0, "most clouds per second of the stamps in Hz", minimum=0.1)
        self._tf_patience = self._parameter("tf_patience", 0.1, "longest wait for TF of a picture's time in s")
        with_hands = self._parameter("keypoints", True, "add the keypoints of the hands")
        self._extractor = PointExtractor(
            objects,
            self._parameter("points_per_object", 128, "points on each object", minimum=1),
            self._parameter("minimum_points", 32, "fewest pixels that an object is made of", minimum=1),
            erosion=self._parameter("erosion", 0.2, "share of a mask's area to take off its edge"),
        )
        self._hands = {name: gripper_keypoints(self._robot, name) for name in self._robot.effectors if with_hands}
        streams = ("depth", "color", "camera_info")
        self._topics = {
            "color": self.resolve_topic_name("camera/color/image_raw"),
            "depth": self.resolve_topic_name("camera/aligned_depth_to_color/image_raw"),
            "camera_info": self.resolve_topic_name("camera/color/camera_info"),
            "mask": self.resolve_topic_name("mask/image_raw"),
            "labels": self.resolve_topic_name("mask/labels"),
            "detections": self.resolve_topic_name("detections"),
            "tf": "/tf",
        }
        self._synchronizer = Synchronizer(
            # A mask may come seldom and late, but says of which picture it is: then pictures wait for masks.
            (_MASK_STREAMS[self._kind], *streams) if self._kind in _MASK_STREAMS else streams,
            self._parameter("tolerance", 0.02, "largest distance between stamps that belong together in s"),
            self._parameter("patience", 0.2, "how long a picture waits for what belongs to it in s"),
        )
        self._labels = label_names(self)
        self._least_score = self._parameter("least_score", 0.0, "detections: boxes less certain are left out")
        self._pending: deque[_Pending] = deque()
        self._last_ns: int | None = None
        self._resets = 0
        self._received = dict.fromkeys(self._synchronizer.streams, 0)
        self._pictures = self._clouds = 0
        self._last_cloud = time.monotonic()
        self.diagnostics = Diagnostics(self, "camera")
        self._loop = self.diagnostics.loop("points", 1.0 / self._rate)
        self._connect()

    def _parameter(self, name: str, default: Any, description: str, minimum: float = 0.0) -> Any:
        return declare_parameter(self, name, default, description, minimum)

    @staticmethod
    def _read_extrinsics(path: str) -> CameraExtrinsics | None:
        return CameraExtrinsics.read(path) if path else None

    def _connect(self) -> None:
        self._cloud = publisher(self, PointCloud2, "points", SENSOR)
        self._quality = publisher(self, TaskPoints, "points/quality", SENSOR)
        self._worker: LatestWorker[_Job] = LatestWorker(self._work, "points")
        self._transforms = TransformInput(self, self.diagnostics, self._place)
        subscription(self, Image, "camera/color/image_raw", self._receiver("color"), SENSOR, self._losing("color"))
        subscription(
            self,
            Image,
            "camera/aligned_depth_to_color/image_raw",
            self._receiver("depth"),
            SENSOR,
            self._losing("depth"),
        )
        subscription(self, CameraInfo, "camera/color/camera_info", self._receiver("camera_info"), SENSOR)
        if self._kind == DETECTIONS:
            subscription(self, Detections, "detections", self._receiver("detections"), SENSOR)
        if self._kind == LABELS:
            subscription(self, Image, "mask/image_raw", self._receiver("mask"), SENSOR, self._losing("mask"))
        if self._kind == LABELS and not self._labels:
            subscription(self, Labels, "mask/labels", self._on_labels, LATCHED_INPUT)
        self.create_timer(_LOOK, self._look, clock=steady_clock())
        self.create_timer(_REPORT, self._report, clock=steady_clock())

    def start(self) -> None:
        """Say what is made of what."""
        names = ", ".join(self._extractor.objects)
        self.get_logger().info(f"points of {names} in {self._base}, masks: {self._kind}")

    def make_safe(self) -> None:
        """Finish the cloud at hand."""
        self._worker.close()

    # -- in: on the executor's thread ----------------------------------------------------------------------------------

    def _receiver(self, stream: str) -> Any:
        def receive(message: Any) -> None:
            self._received[stream] += 1
            stamp = nanoseconds(message.header.stamp)
            if stamp <= 0:
                self._refuse(FrameError(stream, "header.stamp", "not set"))
                return
            self._pictures += stream == self._synchronizer.leading
            self._take(*self._synchronizer.put(stream, stamp, message, time.monotonic()))

        return receive

    def _losing(self, stream: str) -> Any:
        def lost(count: int) -> None:
            self.diagnostics.counts[f"lost {stream}"] += count

        return lost

    def _on_labels(self, message: Labels) -> None:
        if len(message.id) != len(message.name):
            problem = f"{len(message.id)} ids for {len(message.name)} names"
            self._refuse(FrameError("labels", "id", problem))
            return
        self._labels = dict(zip(message.id, message.name, strict=True))
        if absent := [name for name in self._extractor.objects if name not in message.name]:
            known = ", ".join(message.name) or "none"
            self._refuse(
                FrameError("labels", "name", f"not among the labels: {', '.join(absent)} (available: {known})")
            )

    def _take(self, matched: Sequence[Matched], missed: Sequence[Missed]) -> None:
        if self._synchronizer.resets != self._resets:
            self._resets = self._synchronizer.resets
            self.get_logger().info("stamps of the pictures jumped: beginning anew")
            self.diagnostics.counts["unplaced pictures"] += len(self._pending)
            self._pending.clear()
            self._last_ns = None
        for miss in missed:
            self._refuse(self._unmatched(miss), "unmatched pictures")
        for match in matched:
            stamp = match.stamps_ns["depth"]
            if self._last_ns is not None and (stamp - self._last_ns) * 1e-9 < _SLACK / self._rate:
                self.diagnostics.counts["beyond the rate"] += 1
                continue
            self._last_ns = stamp
            self._pending.append(_Pending(match, time.monotonic()))
        if matched:
            self._place()

    def _unmatched(self, miss: Missed) -> FrameError:
        """Return what is wrong with a picture that something lacks, or with a mask that belongs to no picture."""
        leading = self._synchronizer.leading
        if leading != "depth" and miss.stream == "depth" and miss.gap_ns is not None:
            gap = f"of no picture; the nearest depth is {1e-6 * miss.gap_ns:.1f} ms away"
            return FrameError(leading, "header.stamp", gap)
        return FrameError(miss.stream, "header.stamp", str(miss))

    def _look(self) -> None:
        if self._worker.error is not None:
            raise self._worker.error
        self._take(*self._synchronizer.expire(time.monotonic()))
        self._place()

    def _place(self) -> None:
        """Hand on the sets whose transforms are known, in their order."""
        while self._pending:
            first = self._pending[0]
            try:
                job = self._job(first.matched)
            except TransformError as error:
                waited = time.monotonic() - first.since
                if error.pending and waited < self._tf_patience and len(self._pending) <= _MOST_PENDING:
                    return
                self._refuse(FrameError("tf", "transforms", str(error).removeprefix("tf: ")), "unplaced pictures")
            except FrameError as error:
                self._refuse(error, "unusable pictures")
            else:
                self._worker.offer(job)
            self._pending.popleft()

    def _job(self, matched: Matched) -> _Job:
        """Look up where the camera and the hands were when the depth was measured."""
        stamp, buffer = matched.stamps_ns["depth"], self._transforms.buffer
        frame = self._frame_of(matched)
        if self._extrinsics is None:
            camera = buffer.lookup(self._base, frame, stamp)
            T_base_camera = camera.pose
        else:
            camera = buffer.lookup(self._base, self._extrinsics.parent, stamp)
            T_base_camera = camera.pose * self._extrinsics.T_parent_camera
        up = None
        if self._up_frame and self._geometric is not None:
            try:
                T_up_base = buffer.lookup(self._up_frame, self._base, stamp).pose
                up = (T_up_base * T_base_camera).rotation.T @ np.array([0.0, 0.0, 1.0])
            except TransformError as error:
                self.diagnostics.set("up", str(error))
        return _Job(matched, T_base_camera, up, self._keypoints(stamp), camera.oldest_ns, self._resets)

    def _frame_of(self, matched: Matched) -> str:
        """Return the optical frame of a picture.

        Raises:
            FrameError: Depth is in another frame than colour, in none, or in one that the extrinsics are not of.
        """
        frames = {stream: matched.messages[stream].header.frame_id for stream in ("color", "depth")}
        if self._camera_frame:
            frames = dict.fromkeys(frames, str(self._camera_frame))
        if not frames["depth"]:
            raise FrameError("depth", "header.frame_id", "empty; set the parameter camera_frame")
        if frames["color"] != frames["depth"]:
            raise FrameError(
                "depth",
                "header.frame_id",
                f"{frames['depth']!r}, but colour is in {frames['color']!r}: is depth aligned to colour?"
                " If it is, set the parameter camera_frame",
            )
        if self._extrinsics is not None and self._extrinsics.camera != frames["depth"]:
            raise FrameError(
                "depth",
                "header.frame_id",
                f"{frames['depth']!r}, but the extrinsics are those of {self._extrinsics.camera!r}",
            )
        return frames["depth"]

    def _keypoints(self, stamp_ns: int) -> dict[str, NDArray[np.float64]]:
        """Return the keypoints of each hand in the base frame, shape (n, 3) in [m]; empty for a hand that TF lacks."""
        rows: dict[str, tuple[Keypoint, ...]] = self._hands
        found = {}
        for name, points in rows.items():
            try:
                poses = self._transforms.buffer.lookup_all(self._base, {point.frame for point in points}, stamp_ns)
            except TransformError as error:
                found[name] = np.empty((0, 3))
                self._refuse(FrameError("tf", name, str(error).removeprefix("tf: ")), "hands left out")
                continue
            found[name] = np.array([poses[point.frame].pose.act(point.offset) for point in points])
        return found

    # -- work: on the worker's thread ----------------------------------------------------------------------------------

    def _work(self, job: _Job) -> None:
        try:
            self._extract(job)
        except FrameError as error:
            self._refuse(error, "unusable pictures")
        except SuppleError as error:
            self.diagnostics.refuse("unusable pictures", str(error))

    def _extract(self, job: _Job) -> None:
        messages, stamps = job.matched.messages, job.matched.stamps_ns
        raw, encoding = depth_of(messages["depth"])
        frame = RgbdFrame(
            stamps["depth"],
            color_of(messages["color"]),
            depth_in_metres(raw, encoding, self._unit),
            intrinsics_of(messages["camera_info"]),
        )
        sources = self._masks(frame, job)
        # Masks are checked there.
        tracks = self._track(frame, sources, job)
        # What shows no depth at all cannot be tracked; it is not hidden, though.
        masks = {name: track.mask for name, track in tracks.items() if track.mask is not None}
        absent = [name for name in sources if name not in masks]
        masks |= {name: sources[name] for name in absent if not np.isfinite(frame.depth[sources[name]]).any()}
        visible = {name: track.visible_fraction for name, track in tracks.items()}
        cloud = self._extractor.extract(frame, masks, job.T_base_camera, visible)
        points, colors, numbers = cloud.stacked()
        count = len(self._extractor.objects)
        for number, rows in enumerate(job.keypoints.values(), start=count):
            points = np.concatenate([points, rows.astype(np.float32)])
            colors = np.concatenate([colors, np.full((len(rows), 3), 255, np.uint8)])
            numbers = np.concatenate([numbers, np.full(len(rows), number, np.uint32)])
        used = {stream: stamps[stream] for stream in ("color", "depth", "camera_info")}
        used["mask"] = stamps[_MASK_STREAMS.get(self._kind, "color")]
        used["tf"] = job.oldest_tf_ns
        if not self.context.ok():
            return
        self._cloud.publish(cloud_message(frame.stamp_ns, self._base, points, colors, numbers))
        now = self.get_clock().now().nanoseconds
        self._quality.publish(task_points(cloud, tracks, job.keypoints, self._base, used, now))
        self._loop.tick(time.perf_counter() - job.began)
        self._clouds += 1
        self._last_cloud = time.monotonic()

    def _track(self, frame: RgbdFrame, masks: Mapping[str, NDArray[np.bool_]], job: _Job) -> dict[str, Track]:
        """Return the masks under names that stay on their objects."""
        if job.resets != self._tracked_reset:
            self._tracked_reset = job.resets
            self._tracker.reset()
        return self._tracker.update(frame, masks)

    def _masks(self, frame: RgbdFrame, job: _Job) -> Mapping[str, NDArray[np.bool_]]:
        if self._geometric is not None:
            self._geometric.up = job.up
        if self._source is not None:
            return self._source.masks(frame)
        if self._kind == DETECTIONS:
            return self._detected(frame, job.matched.messages["detections"])
        if not self._labels:
            raise FrameError("labels", "name", "nothing received: what stand the pixel values of the masks for?")
        wanted = {label: name for label, name in self._labels.items() if name in self._extractor.objects}
        return LabelMasks(labels_of(job.matched.messages["mask"]), wanted).masks(frame)

    def _detected(self, frame: RgbdFrame, message: Detections) -> Mapping[str, NDArray[np.bool_]]:
        """Return what is in a detector's boxes, and say which of them are of no use."""
        rows = [row for row in detections_of(message) if row.name in self._extractor.objects]
        source = DetectionMasks(
            [row for row in rows if not row.score < self._least_score], (message.width, message.height)
        )
        masks = source.masks(frame)
        for error in source.refused:
            self._refuse(error, "unusable detections")
        return masks

    # -- what went wrong -----------------------------------------------------------------------------------------------

    def _refuse(self, error: FrameError, kind: str = "unusable inputs") -> None:
        """Say which topic and which field, once in two seconds for each."""
        topic = self._topics.get(error.source, error.source)
        self.diagnostics.refuse(kind, f"{topic}: {error.field}: {error.problem}", f"{topic} {error.field}")

    def _report(self) -> None:
        silent = [self._topics[stream] for stream, count in self._received.items() if not count]
        since = time.monotonic() - self._last_cloud
        if since < 2.0:
            self.diagnostics.state(DiagnosticStatus.OK, "running")
        elif silent:
            self.diagnostics.state(DiagnosticStatus.WARN, f"no points: nothing received on {', '.join(silent)}")
        else:
            self.diagnostics.state(DiagnosticStatus.WARN, "no points: see what was refused")
        self._received = dict.fromkeys(self._received, 0)
        self.diagnostics.set("pictures", self._pictures)
        self.diagnostics.set("clouds", self._clouds)
        self.diagnostics.set("skipped", f"{self._worker.skipped} (busy with the one before)")
        for key, count in sorted(self._synchronizer.counts.items()):
            self.diagnostics.set(key, count)
        self.diagnostics.set("resets", f"{self._resets} (of TF: {self._transforms.buffer.resets})")
        tracker = self._tracker
        self.diagnostics.set("masks", f"{tracker.renamed} renamed, {tracker.rejected} given to no object")


def _keep_memory() -> None:
    """Keep memory that was freed: to ask the system for it again costs more than the work on many of the arrays."""
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    # Only the GNU C library has it.
    if adjust is not None:
        adjust(_TRIM_THRESHOLD, _KEPT)
        adjust(_MMAP_THRESHOLD, _LARGEST)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    # On a busy machine OpenCV's threads wait for one another longer than they save.
    cv2.setNumThreads(1)
    _keep_memory()
    return run_node(PointExtractorNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
