# SPDX-License-Identifier: Apache-2.0
"""A buffer of transforms filled from /tf and /tf_static."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from tf2_msgs.msg import TFMessage

from supple.errors import SuppleError
from supple.nodes.conversion import nanoseconds, transform_of
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.qos import LATCHED_INPUT, TRANSFORMS, subscription
from supple.perception.transform_buffer import TransformBuffer

__all__ = ["TransformInput"]


class TransformInput:
    """Listen to transforms.

    Args:
        node: The node that subscribes.
        diagnostics: Where transforms that hold no pose are counted.
        on_change: Called after each message of moving frames.

    Attributes:
        buffer: What was heard.
    """

    def __init__(self, node: Node, diagnostics: Diagnostics, on_change: Callable[[], None]) -> None:
        self.buffer = TransformBuffer()
        self._diagnostics, self._on_change = diagnostics, on_change
        subscription(node, TFMessage, "/tf", self._on_moving, TRANSFORMS)
        subscription(node, TFMessage, "/tf_static", self._on_fixed, LATCHED_INPUT)

    def _on_moving(self, message: TFMessage) -> None:
        for row in message.transforms:
            try:
                pose = transform_of(row.transform, f"/tf: {row.header.frame_id} to {row.child_frame_id}")
                self.buffer.add(row.header.frame_id, row.child_frame_id, nanoseconds(row.header.stamp), pose)
            except SuppleError as error:
                self._diagnostics.refuse("unusable transforms", str(error))
        self._on_change()

    def _on_fixed(self, message: TFMessage) -> None:
        for row in message.transforms:
            try:
                pose = transform_of(row.transform, f"/tf_static: {row.header.frame_id} to {row.child_frame_id}")
                self.buffer.set_fixed(row.header.frame_id, row.child_frame_id, pose)
            except SuppleError as error:
                self._diagnostics.refuse("unusable transforms", str(error))
