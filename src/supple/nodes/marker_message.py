# SPDX-License-Identifier: Apache-2.0
"""Markers of a scene as a message: the same that a bag of an episode holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from geometry_msgs.msg import Point, Pose, Quaternion
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker as MarkerMessage
from visualization_msgs.msg import MarkerArray

from supple.episodes.marker import Marker
from supple.nodes.conversion import WORLD_FRAME, header, point_message, vector_message

__all__ = ["marker_array"]


def _colour(rgba: Sequence[float]) -> ColorRGBA:
    r, g, b, a = map(float, rgba)
    return ColorRGBA(r=r, g=g, b=b, a=a)


def marker_array(markers: Iterable[Marker], stamp_ns: int, frame: str = WORLD_FRAME) -> MarkerArray:
    """Return a message that shows exactly these markers; what was shown before is deleted by its first entry."""
    stamped = header(stamp_ns, frame)
    entries = [MarkerMessage(header=stamped, action=MarkerMessage.DELETEALL)]
    count = Counter[str]()
    for marker in markers:
        qx, qy, qz, qw = (float(value) for value in marker.quaternion)
        entries.append(
            MarkerMessage(
                header=stamped,
                ns=marker.group,
                id=count[marker.group],
                type=int(marker.shape),
                action=MarkerMessage.ADD,
                pose=Pose(position=point_message(marker.position), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)),
                scale=vector_message(marker.scale),
                color=_colour(marker.rgba),
                # Plain numbers: hundreds of taxels would take a millisecond as arrays of three.
                points=[Point(x=x, y=y, z=z) for x, y, z in marker.points.tolist()],
                colors=[_colour(row) for row in marker.point_rgba.tolist()],
            )
        )
        count[marker.group] += 1
    return MarkerArray(markers=entries)
