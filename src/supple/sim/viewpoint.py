# SPDX-License-Identifier: Apache-2.0
"""A camera that stands beside a scene: nothing in the model, so that physics and its fingerprint are the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin

from supple.robots.description import OPTICAL_STREAMS, T_BODY_OPTICAL, optical_frame
from supple.sim.camera import orbit_camera

__all__ = ["Viewpoint"]


@dataclass(frozen=True)
class Viewpoint:
    """A fixed camera that looks at a point; its field of view is the model's (``visual/global/fovy``).

    Attributes:
        name: Camera name; topics and frames begin with it.
        lookat: Point in the world frame in [m].
        distance: Distance from it in [m].
        azimuth: Direction of view about z in [deg]; 0 looks along +x, 90 along +y.
        elevation: Angle above the horizon in [deg]; negative looks down.
        width: Image width in [px].
        height: Image height in [px].
    """

    name: str
    lookat: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float
    width: int = 640
    height: int = 480

    def camera(self) -> mujoco.MjvCamera:
        """Return the camera to draw with."""
        return orbit_camera(self.lookat, self.distance, self.azimuth, self.elevation)

    @property
    def T_world_camera(self) -> pin.SE3:
        """Pose of its body frame (+x forward, +z up; REP-103) in the world."""
        pitch, yaw = -math.radians(self.elevation), math.radians(self.azimuth)
        rotation = pin.rpy.rpyToMatrix(0.0, pitch, yaw)
        return pin.SE3(rotation, np.array(self.lookat) - self.distance * rotation[:, 0])

    def fixed_frames(self, world: str) -> dict[tuple[str, str], pin.SE3]:
        """Return the pose of its body frame and of its optical frames, by (parent, child).

        Args:
            world: Name of the world's frame.
        """
        link = f"{self.name}_link"
        optical = {(link, optical_frame(self.name, stream)): T_BODY_OPTICAL for stream in OPTICAL_STREAMS}
        return {(world, link): self.T_world_camera, **optical}
