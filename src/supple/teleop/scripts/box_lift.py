# SPDX-License-Identifier: Apache-2.0
"""The scripted demonstration of BoxLift."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw, yaw_of
from supple.teleop.scripts.motions import Motions, Script

__all__ = ["box_lift"]


def box_lift(motions: Motions) -> Script:
    """Walk up to the box, put the hands beside it, mark, press, lift, hold.

    The hands are turned inward until thumb knuckle and finger tips touch the side together; pressed by the knuckle
    alone, the box would swing about it.
    """
    inward, half_width, grip_height, pressed = 0.52, 0.086, 0.088, -0.03
    rise, pulled = 0.175, 0.02
    yield from motions.wait(0.5)
    yield from motions.event("start")
    box = motions.view().objects["box"]
    # The box's frame is turned by a quarter to the left of the robot's heading in front of it.
    heading = yaw_of(box) - 0.5 * np.pi
    ahead = box.translation[:2] - 0.38 * np.array([np.cos(heading), np.sin(heading)])
    yield from motions.walk(ahead[0], ahead[1], heading)
    x, y, z = motions.view().objects["box"].translation
    frame = pose_from_xyyaw(x, y, heading, z)

    def hands(gap: float, lift: float) -> dict[str, pin.SE3]:
        poses = {}
        for name, sign in (("left_hand", 1.0), ("right_hand", -1.0)):
            # Drawn towards the body as it rises: at arm's length its weight would tip the robot forward.
            offset = np.array([0.01 - pulled * lift / rise, sign * (half_width + gap), grip_height + lift])
            poses[name] = frame * pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, -sign * inward), offset)
        return poses

    start = dict(motions.view().effectors)
    # Above and beside the box first, so that no finger touches it on the way.
    yield from motions.move(start, hands(0.12, 0.12), 1.5)
    yield from motions.move(hands(0.12, 0.12), hands(0.09, 0.0), 1.0)
    yield from motions.event("mark:lift", hands(0.09, 0.0))
    yield from motions.move(hands(0.09, 0.0), hands(0.02, 0.0), 0.8)
    yield from motions.move(hands(0.02, 0.0), hands(pressed, 0.0), 0.8)
    yield from motions.move(hands(pressed, 0.0), hands(pressed, 0.0), 0.3)
    yield from motions.move(hands(pressed, 0.0), hands(pressed, rise), 2.0)
    yield from motions.event("mark:end", hands(pressed, rise))
    yield from motions.move(hands(pressed, rise), hands(pressed, rise), 1.5)
    yield from motions.finish(hands(pressed, rise))
