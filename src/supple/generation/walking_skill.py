# SPDX-License-Identifier: Apache-2.0
"""Skills that are shown walking, e.g. pushing a cart: how the robot walked, and what its hand did as seen from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from supple.control.path_following import FloorPath
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.kinematics.model import KinematicModel
from supple.robots import Robot

__all__ = ["Walk", "walk_shown"]

Array = NDArray[np.float64]

# A base that ends this far from where the skill began in [m] has walked.
_WALKED = 0.3
# The mean of the base's pose over so many steps is free of the gait's sway. Between so many steps a way is straight.
_SWAY_STEPS, _KNOT = 80, 20


@dataclass(frozen=True)
class Walk:
    """How the robot walked in a skill.

    Attributes:
        places: Where the base was, one per step, free of sway, relative to the object: (x, y, yaw), shape (steps, 3).
        T_base_targets: Where the hand was sent to, one per step, as seen from the base.
    """

    places: Array
    T_base_targets: tuple[pin.SE3, ...]

    def path(self, T_world_reference: pin.SE3, here: Array, interval: float) -> FloorPath:
        """Return the way for another object pose: from where the robot is to where it was shown to end.

        At its beginning it is shifted to the robot; along the way that shift fades out.

        Args:
            T_world_reference: Pose of the object.
            here: Where the robot is: (x, y, yaw) in [m, m, rad].
            interval: Time of a step in [s].
        """
        way = np.array([xyyaw_of(T_world_reference * pose_from_xyyaw(*place)) for place in self.places])
        way[:, 2] = np.unwrap(way[:, 2])
        shift = here - way[0]
        shift[2] = wrap_angle(shift[2])
        way += np.linspace(1.0, 0.0, len(way))[:, None] * shift
        knots = np.unique([*range(0, len(way), _KNOT), len(way) - 1])
        return FloorPath(way[knots], interval * knots)


def walk_shown(T_reference_bases: Sequence[pin.SE3], postures: Array, robot: Robot, frame: str) -> Walk | None:
    """Return how the robot walked in a skill; None if it stood.

    Args:
        T_reference_bases: Base pose per step, relative to the object at the skill's start.
        postures: Commanded joint positions per step in [rad], shape (steps, n), table order.
        robot: The robot.
        frame: The hand's frame.
    """
    places = np.array([xyyaw_of(pose) for pose in T_reference_bases])
    if float(np.hypot(*(places[-1] - places[0])[:2])) < _WALKED:
        return None
    places[:, 2] = np.unwrap(places[:, 2])
    places = uniform_filter1d(places, min(_SWAY_STEPS, len(places)), axis=0, mode="nearest")
    model = KinematicModel(robot)
    # As it was commanded: where a hand that pushes was measured, it would no longer push.
    seen = (model.frame_poses(model.configuration(pin.SE3.Identity(), q), frame)[0] for q in postures)
    return Walk(places, tuple(seen))
