# SPDX-License-Identifier: Apache-2.0
"""What a calibration needs out of a bag: pictures of a board, or marked points, with the robot's pose at each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from supple.episodes.bag_images import COMPRESSED, RAW, colours_of
from supple.episodes.bag_reader import read_bag, stream_bag
from supple.errors import ExtrinsicsError, UnknownNameError
from supple.geometry import pose_error, pose_from_quaternion
from supple.perception.boards import Board
from supple.perception.calibration import BoardView
from supple.perception.frames import Intrinsics
from supple.perception.transform_buffer import TransformBuffer, TransformError
from supple.yaml_file import first_problem, read_yaml

__all__ = ["CalibrationBag", "Gathered", "KnownPoint", "gather_points", "gather_views", "read_points"]

_MOST_VIEWS = 60
# A pose counts as still if this long before and after the picture it was the same within these limits.
_STILL_NS, _STILL_DISTANCE, _STILL_ANGLE = 150_000_000, 0.002, 0.006
# Poses closer than this to one that was taken already say nothing new.
_NEW_DISTANCE, _NEW_ANGLE = 0.02, 0.07


class KnownPoint(BaseModel):
    """A point of the robot that somebody found in a picture.

    Attributes:
        pixel: Column and row in [px].
        position: Place in the camera's parent frame in [m]; or
        frame: frame of the robot that it belongs to, with ``stamp``.
        offset: Place in that frame in [m].
        stamp: Stamp of the picture in [s].
        depth: Distance along the optical axis in [m]; None if not measured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    pixel: tuple[float, float]
    position: tuple[float, float, float] | None = None
    frame: str | None = None
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stamp: float | None = None
    depth: float | None = None


@dataclass(frozen=True, eq=False)
class Gathered:
    """Views of a board.

    Attributes:
        views: The views.
        left_out: Number of pictures that gave none, by reason.
    """

    views: tuple[BoardView, ...]
    left_out: Mapping[str, int]


class CalibrationBag:
    """A bag with pictures of one camera, its calibration and transforms.

    Args:
        path: Folder of the bag.
        image: Topic of the pictures; the only colour topic if absent.

    Attributes:
        path: Folder of the bag.
        image: Topic of the pictures.
        camera: Optical frame of the camera.
        intrinsics: Its pinhole parameters and distortion.
        transforms: All transforms of the bag.

    Raises:
        ExtrinsicsError: No or several colour topics, no camera_info or no transforms.
        CalibrationError: The camera is not calibrated.
        DatasetError: No bag.
    """

    def __init__(self, path: Path | str, image: str | None = None) -> None:
        self.path = Path(path)
        types = read_bag(self.path, ()).types
        self.image = _colour_topic(self.path, types, image)
        info = f"{self.image.removesuffix('/compressed').rpartition('/')[0]}/camera_info"
        moving = [topic for topic in types if topic == "/tf" or topic.endswith("/tf")]
        fixed = [topic for topic in types if topic == "/tf_static" or topic.endswith("/tf_static")]
        if info not in types:
            raise ExtrinsicsError(f"{self.path}: no topic {info!r} beside {self.image!r}; record it too")
        if not moving and not fixed:
            raise ExtrinsicsError(f"{self.path}: neither tf nor tf_static; record them while robot_state runs")
        self.transforms = TransformBuffer(duration=1e6)
        found = None
        for topic, _, message in stream_bag(self.path, [*moving, *fixed, info]):
            if topic == info:
                found = found or message
            else:
                self._take(message, topic in fixed)
        if found is None:
            raise ExtrinsicsError(f"{self.path}: {info}: no message")
        # Pictures of a rectifying driver bear "rect" in their name (REP 104); the others are described by K and D.
        self.intrinsics = Intrinsics.from_camera_info(
            found.k, found.p, found.width, found.height, found.distortion_model, found.d, "rect" in self.image
        )
        self.camera: str = found.header.frame_id

    def _take(self, message: Any, fixed: bool) -> None:
        for transform in message.transforms:
            parent, child = transform.header.frame_id.lstrip("/"), transform.child_frame_id.lstrip("/")
            t, r = transform.transform.translation, transform.transform.rotation
            pose = pose_from_quaternion((t.x, t.y, t.z), (r.x, r.y, r.z, r.w), f"tf {parent} to {child}")
            if fixed:
                self.transforms.set_fixed(parent, child, pose)
            else:
                self.transforms.add(parent, child, _ns(transform.header.stamp), pose)

    def pictures(self) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield stamp in [ns] and colours of each picture.

        Raises:
            FrameError: A picture cannot be read, or has another size than the camera's calibration.
        """
        for _, _, message in stream_bag(self.path, [self.image]):
            yield _ns(message.header.stamp), colours_of(message, self.image)

    def pose(self, parent: str, frame: str, stamp_ns: int) -> pin.SE3:
        """Return the pose of a frame in another at a time.

        Raises:
            TransformError: It is not known.
        """
        return self.transforms.lookup(parent, frame, stamp_ns).pose


def gather_views(bag: CalibrationBag, board: Board, parent: str, carrier: str) -> Gathered:
    """Look for a board in those pictures in which the robot stands still in a new pose.

    Args:
        bag: The bag.
        board: The board.
        parent: Frame that the camera is fixed to.
        carrier: Frame that the board is fixed to.

    Raises:
        ExtrinsicsError: A frame is not in the bag, or the pictures have another size than the calibration says.
        FrameError: A picture cannot be read.
    """
    views: list[BoardView] = []
    left_out: Counter[str] = Counter()
    seen = 0
    for stamp, picture in bag.pictures():
        seen += 1
        if picture.shape[:2] != (bag.intrinsics.height, bag.intrinsics.width):
            raise ExtrinsicsError(
                f"{bag.path}: {bag.image} has {picture.shape[1]} x {picture.shape[0]} px, camera_info says "
                f"{bag.intrinsics.width} x {bag.intrinsics.height}"
            )
        try:
            poses = [bag.pose(parent, carrier, stamp + shift) for shift in (-_STILL_NS, 0, _STILL_NS)]
        except TransformError as error:
            if error.pending and "unknown" in str(error):
                raise ExtrinsicsError(f"{bag.path}: {error}") from error
            left_out["without a pose of the robot"] += 1
            continue
        if any(_apart(poses[1], pose, _STILL_DISTANCE, _STILL_ANGLE) for pose in (poses[0], poses[2])):
            left_out["while it moved"] += 1
        elif not all(_apart(poses[1], view.T_parent_carrier, _NEW_DISTANCE, _NEW_ANGLE) for view in views):
            left_out["in a pose seen before"] += 1
        elif (sight := board.find(picture)) is None:
            left_out["without the board"] += 1
        else:
            views.append(BoardView(f"{stamp * 1e-9:.2f} s", sight, poses[1]))
            if len(views) == _MOST_VIEWS:
                break
    if not seen:
        raise ExtrinsicsError(f"{bag.path}: {bag.image}: no message")
    return Gathered(tuple(views), dict(left_out))


def read_points(path: Path | str) -> list[KnownPoint]:
    """Read marked points: a YAML list of the fields of ``KnownPoint``.

    Raises:
        ExtrinsicsError: Missing, no YAML, or a field is missing, unknown or malformed; names point and field.
    """
    plain = read_yaml(path, ExtrinsicsError)
    if not isinstance(plain, list):
        raise ExtrinsicsError(f"{path}: expected a list of points, got {type(plain).__name__}")
    points = []
    for i, entry in enumerate(plain):
        try:
            point = KnownPoint.model_validate(entry)
        except ValidationError as error:
            raise ExtrinsicsError(f"{path}: point {i}: {first_problem(error, KnownPoint)}") from error
        if (point.position is None) == (point.frame is None):
            raise ExtrinsicsError(f"{path}: point {i}: expected either position or frame")
        if point.frame is not None and point.stamp is None:
            raise ExtrinsicsError(f"{path}: point {i}: frame {point.frame!r} needs the stamp of its picture")
        points.append(point)
    return points


def gather_points(bag: CalibrationBag, points: list[KnownPoint], parent: str) -> NDArray[np.float64]:
    """Return where the points are in the camera's parent frame in [m], shape (n, 3).

    Raises:
        ExtrinsicsError: The pose of a point's frame is not known at its time.
    """
    positions = []
    for i, point in enumerate(points):
        if point.position is not None:
            positions.append(point.position)
            continue
        try:
            pose = bag.pose(parent, str(point.frame), round(float(point.stamp or 0.0) * 1e9))
        except TransformError as error:
            raise ExtrinsicsError(f"{bag.path}: point {i}: {error}") from error
        positions.append(tuple(pose.act(np.array(point.offset))))
    return np.array(positions, dtype=np.float64).reshape(-1, 3)


def _colour_topic(path: Path, types: Mapping[str, str], wanted: str | None) -> str:
    pictures = [topic for topic, kind in types.items() if kind in (RAW, COMPRESSED)]
    if wanted is not None:
        topic = "/" + wanted.strip("/")
        if topic not in pictures:
            raise UnknownNameError("image topic", topic, pictures)
        return topic
    colour = [t for t in pictures if "depth" not in t and "segmentation" not in t and "infra" not in t]
    raw = [topic for topic in colour if types[topic] == RAW] or colour
    if len(raw) != 1:
        what = (
            "no colour pictures" if not raw else f"several colour topics ({', '.join(sorted(raw))}); choose by --image"
        )
        raise ExtrinsicsError(f"{path}: {what}")
    return raw[0]


def _apart(first: pin.SE3, second: pin.SE3, distance: float, angle: float) -> bool:
    error = pose_error(first, second)
    return error[0] > distance or error[1] > angle


def _ns(stamp: Any) -> int:
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)
