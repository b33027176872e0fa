# SPDX-License-Identifier: Apache-2.0
"""The scripted demonstration of BoxLiftFloor."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw, yaw_of
from supple.teleop.scripts.motions import Motions, Script

__all__ = ["box_lift_floor"]


def box_lift_floor(motions: Motions) -> Script:
    """Walk up to the box, stretch the arms, mark, squat with the hands beside it, press, rise with it, hold.

    The arms go ahead before the knees do: stretched arms shift the base back, and the knees clear the box. They take it
    above its middle, so that it hangs. The walk is not recorded: generation plans its own walks, and the seed stays
    small.
    """
    inward, down, half_width, grip_height, pressed = 0.52, 0.4, 0.1415, 0.47, -0.03
    ready, low, high = 0.70, 0.40, 0.60
    rise, pulled, distance = 0.24, 0.05, 0.44
    box = motions.view().objects["box"]
    heading = yaw_of(box) - np.pi
    ahead = box.translation[:2] - distance * np.array([np.cos(heading), np.sin(heading)])
    yield from motions.walk(ahead[0], ahead[1], heading)
    yield from motions.event("start")
    yield from motions.wait(1.0)
    yield from motions.squat(ready, 0.5)
    x, y, z = motions.view().objects["box"].translation
    frame = pose_from_xyyaw(x, y, heading, z)

    def hands(gap: float, lift: float = 0.0, back: float = 0.0) -> dict[str, pin.SE3]:
        poses = {}
        for name, sign in (("left_hand", 1.0), ("right_hand", -1.0)):
            offset = np.array([-back, sign * (half_width + gap), grip_height + lift])
            # Turned inward until thumb and fingers touch the side together, then about the side's normal.
            turned = pin.utils.rotate("y", down) @ pin.utils.rotate("z", -sign * inward)
            poses[name] = frame * pin.SE3(turned, offset)
        return poses

    start, above = dict(motions.view().effectors), hands(0.11, 0.33, 0.16)
    before, beside = hands(0.11, 0.06, 0.10), hands(0.09)
    held, lifted = hands(pressed), hands(pressed, rise, pulled)
    yield from motions.move(start, above, 2.0)
    yield from motions.move(above, above, 0.5)
    yield from motions.event("mark:lift", above)
    yield from motions.move(above, before, 3.0, (ready, low))
    yield from motions.move(before, before, 0.5)
    yield from motions.move(before, beside, 1.0)
    yield from motions.move(beside, hands(0.02), 0.8)
    yield from motions.move(hands(0.02), held, 1.0)
    yield from motions.move(held, held, 0.4)
    yield from motions.move(held, lifted, 3.0, (low, high))
    yield from motions.move(lifted, lifted, 0.6)
    yield from motions.event("mark:end", lifted)
    yield from motions.move(lifted, lifted, 1.2)
    yield from motions.finish(lifted)
