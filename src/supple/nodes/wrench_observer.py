# SPDX-License-Identifier: Apache-2.0
"""Node that estimates the wrenches at feet and wrists from joint torques, by the robot's generalised momentum."""

from __future__ import annotations

import time
from collections.abc import Sequence

from geometry_msgs.msg import Wrench, WrenchStamped
from rclpy.node import Node

from supple.kinematics.momentum_observer import ExternalWrenches, MomentumObserver
from supple.nodes.conversion import header, vector_message
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.lifecycle import declare_parameter
from supple.nodes.qos import SENSOR, publisher
from supple.nodes.runtime import run_node
from supple.nodes.state_input import StateInput
from supple.robots import RobotState, robot_named

__all__ = ["WrenchObserverNode", "main"]


class WrenchObserverNode(Node):
    """States in, one WrenchStamped for each limb out; the frame of each is that of its link."""

    def __init__(self) -> None:
        super().__init__("wrench_observer")
        robot = robot_named(declare_parameter(self, "robot", "g1", "name of the robot"))
        cutoff = declare_parameter(self, "cutoff", 10.0, "bandwidth of the estimate in Hz", minimum=0.1)
        rate = declare_parameter(self, "rate", 100.0, "estimates per second of each topic in Hz", minimum=0.1)
        self._interval_ns = round(1e9 / rate)
        self.diagnostics = Diagnostics(self, robot.name)
        self._loop = self.diagnostics.loop("estimate", 1.0 / rate)
        self._observer = MomentumObserver(robot, cutoff=cutoff)
        self._out = {
            frame: publisher(self, WrenchStamped, f"wrench/{frame}", SENSOR) for frame in self._observer.frames
        }
        self._tick = -1
        # Every state counts: what happened between two that were used would be missing in the momentum's balance.
        self._states = StateInput(self, robot.joints, 0.0, self._on_state, self._on_reset, self.diagnostics)

    def start(self) -> None:
        """Do nothing: it answers what it hears."""

    def make_safe(self) -> None:
        """Stop listening; it moves nothing."""
        self._states.close()

    def _on_reset(self) -> None:
        self._observer.reset()
        self._tick = -1

    def _on_state(self, state: RobotState) -> None:
        began = time.perf_counter()
        found = self._observer.step(state)
        tick = state.stamp_ns // self._interval_ns
        due, self._tick = tick != self._tick, tick
        if found is None or not due:
            return
        self._publish(found)
        self.diagnostics.set("unexplained", f"{found.unexplained:.3f}")
        self._loop.tick(time.perf_counter() - began)

    def _publish(self, found: ExternalWrenches) -> None:
        for frame, wrench in found.wrench.items():
            message = WrenchStamped(header=header(found.stamp_ns, frame))
            message.wrench = Wrench(force=vector_message(wrench[:3]), torque=vector_message(wrench[3:]))
            self._out[frame].publish(message)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(WrenchObserverNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
