# SPDX-License-Identifier: Apache-2.0
"""Node that says where every link is: TF from joint_states and odom through Pinocchio, and the robot's description."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from supple.errors import SuppleError
from supple.kinematics.transforms import TransformTree, base_transforms
from supple.nodes.conversion import nanoseconds, pose_of, transform_message
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.lifecycle import declare_parameter
from supple.nodes.qos import LATCHED, SENSOR_INPUT, TRANSFORMS, publisher, subscription
from supple.nodes.runtime import run_node
from supple.robots import robot_named

__all__ = ["RobotStateNode", "main"]


class RobotStateNode(Node):
    """TF and robot_description."""

    def __init__(self) -> None:
        super().__init__("robot_state")
        self._robot = robot_named(declare_parameter(self, "robot", "g1", "name of the robot"))
        rate = declare_parameter(self, "rate", 50.0, "transforms per second of each topic in Hz", minimum=0.1)
        self._interval_ns = round(1e9 / rate)
        self.diagnostics = Diagnostics(self, self._robot.name)
        self._loop = self.diagnostics.loop("tf", 1.0 / rate)
        self._links = TransformTree(self._robot)
        self._tf = publisher(self, TFMessage, "/tf", TRANSFORMS)
        self._tf_static = publisher(self, TFMessage, "/tf_static", LATCHED)
        self._description = publisher(self, String, "robot_description", LATCHED)
        self._last = {"joint_states": -1, "odom": -1}
        subscription(self, JointState, "joint_states", self._on_joints, SENSOR_INPUT)
        subscription(self, Odometry, "odom", self._on_odometry, SENSOR_INPUT)

    def start(self) -> None:
        """Publish what does not change."""
        self._description.publish(String(data=self._links.description))
        stamp = self.get_clock().now().nanoseconds
        fixed = [transform_message(stamp, *names, pose) for names, pose in self._links.fixed.items()]
        self._tf_static.publish(TFMessage(transforms=fixed))

    def make_safe(self) -> None:
        """Do nothing: it moves nothing."""

    def _due(self, topic: str, stamp: int) -> bool:
        """Tell whether a stamp begins a new interval; one before the last means that the clock jumped back."""
        last = self._last[topic]
        if stamp < last:
            # Two publishers, e.g. two simulators in one domain, make it jump for ever.
            what = f"{topic} ({self.count_publishers(topic)} publishers)"
            jump = f"{(last - stamp) * 1e-9:.2f} s"
            self.diagnostics.refuse("clock jumps", f"{what}: stamps jumped back by {jump}; beginning anew", topic)
            self._last = dict.fromkeys(self._last, -1)
        elif stamp // self._interval_ns <= last // self._interval_ns:
            return False
        self._last[topic] = stamp
        return True

    def _on_joints(self, message: JointState) -> None:
        stamp = nanoseconds(message.header.stamp)
        if not self._due("joint_states", stamp):
            return
        began = time.perf_counter()
        try:
            q = self._robot.joints.ordered(message.name, message.position, "joint_states.position")
            if not np.all(np.isfinite(q)):
                names = [self._robot.joints.names[i] for i in np.flatnonzero(~np.isfinite(q))]
                raise SuppleError(f"joint_states.position is not finite for {', '.join(names)}")
        except SuppleError as error:
            self.diagnostics.refuse("unusable messages", str(error))
            return
        moving = self._links.moving(q).items()
        self._tf.publish(TFMessage(transforms=[transform_message(stamp, *names, pose) for names, pose in moving]))
        self._loop.tick(time.perf_counter() - began)

    def _on_odometry(self, message: Odometry) -> None:
        stamp = nanoseconds(message.header.stamp)
        if not self._due("odom", stamp):
            return
        try:
            base = pose_of(message.pose.pose, "odom.pose.pose")
        except SuppleError as error:
            self.diagnostics.refuse("unusable messages", str(error))
            return
        transforms = [transform_message(stamp, *names, pose) for names, pose in base_transforms(base).items()]
        self._tf.publish(TFMessage(transforms=transforms))


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(RobotStateNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
