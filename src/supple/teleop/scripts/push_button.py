# SPDX-License-Identifier: Apache-2.0
"""The scripted demonstration of PushButton."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw, yaw_of
from supple.teleop.scripts.motions import Motions, Script

__all__ = ["push_button"]

_FACE = np.array([0.0, 0.079, 0.0455])
"""Middle of the button's face in the panel's frame in [m]."""

_INDEX_TIP = np.array([0.062, -0.035, 0.0285])
"""Tip of the straight index finger in the right hand's frame in [m]."""


def push_button(motions: Motions) -> Script:
    """Walk up to the button, point at it, mark, press with the index finger and stay there."""
    yield from motions.wait(0.5)
    yield from motions.event("start")
    panel = motions.view().objects["button"]
    heading = yaw_of(panel) - 0.5 * np.pi
    face = panel.act(_FACE)
    forward, left = np.array([np.cos(heading), np.sin(heading)]), np.array([-np.sin(heading), np.cos(heading)])
    place = face[:2] - 0.46 * forward + 0.16 * left
    yield from motions.walk(place[0], place[1], heading)
    frame = pose_from_xyyaw(face[0], face[1], heading, face[2])

    def hand(depth: float) -> dict[str, pin.SE3]:
        return {"right_hand": frame * pin.SE3(np.eye(3), np.array([depth, 0.0, 0.0]) - _INDEX_TIP)}

    start = {"right_hand": motions.view().effectors["right_hand"]}
    yield from motions.move(start, hand(-0.08), 1.5)
    yield from motions.event("mark:press", hand(-0.08))
    yield from motions.move(hand(-0.08), hand(-0.01), 0.8)
    yield from motions.move(hand(-0.01), hand(0.03), 1.0)
    yield from motions.move(hand(0.03), hand(0.03), 0.5)
    yield from motions.event("mark:end", hand(0.03))
    yield from motions.move(hand(0.03), hand(0.03), 1.5)
    yield from motions.finish(hand(0.03))
