# SPDX-License-Identifier: Apache-2.0
"""A robot of four parts, and boxes on the floor plan to lead it round."""

from __future__ import annotations

import numpy as np

from supple.kinematics.outlines import Outline

__all__ = ["box", "robot"]


def box(name, x, y, width, depth, bottom=0.0, top=1.0, yaw=0.0):
    """Return the outline of a box whose middle is at (x, y), ``width`` along its x and ``depth`` along its y."""
    corners = 0.5 * np.array([[-width, -depth], [width, -depth], [width, depth], [-width, depth]])
    c, s = np.cos(yaw), np.sin(yaw)
    return Outline(name, corners @ np.array([[c, s], [-s, c]]) + [x, y], bottom, top)


def robot():
    """Return feet, a trunk, and arms that reach ahead at a height of a metre."""
    return [
        box("feet", 0.0, 0.0, 0.3, 0.3, 0.0, 0.1),
        box("trunk", 0.0, 0.0, 0.2, 0.4, 0.1, 1.2),
        box("left_arm", 0.25, 0.25, 0.4, 0.1, 0.95, 1.05),
        box("right_arm", 0.25, -0.25, 0.4, 0.1, 0.95, 1.05),
    ]
