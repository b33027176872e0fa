# SPDX-License-Identifier: Apache-2.0
"""What the simulator knows about forces: every point of contact as arrays, and the external wrench on links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.sim.world import World

__all__ = ["ContactForces", "LinkWrenches", "contact_forces"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_NEXT, _AFTER = [1, 2, 0], [2, 0, 1]


@dataclass(frozen=True, eq=False)
class ContactForces:
    """All points of contact that carry force, at one instant.

    Attributes:
        geom: Indices of both geoms, shape (n, 2); -1 for a flexible body's surface.
        body: Indices of the bodies that they belong to, shape (n, 2); -1 for a flexible body.
        position: Points of contact in the world frame in [m], shape (n, 3).
        frame: Rows: unit normal from the first to the second, two tangents; world frame, shape (n, 3, 3).
        force: Force on the second along the rows of ``frame`` in [N], shape (n, 3); the first feels the opposite.
        torque: Moment on the second about the rows of ``frame`` in [Nm], shape (n, 3).
    """

    geom: Indices
    body: Indices
    position: Array
    frame: Array
    force: Array
    torque: Array

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.geom)

    @property
    def force_in_world(self) -> Array:
        """Force on the second body in the world frame in [N], shape (n, 3)."""
        return np.einsum("nij,ni->nj", self.frame, self.force)

    @property
    def torque_in_world(self) -> Array:
        """Moment on the second body in the world frame in [Nm], shape (n, 3)."""
        return np.einsum("nij,ni->nj", self.frame, self.torque)


def contact_forces(world: World) -> ContactForces:
    """Return the contacts of the last step, or of the state that was set last.

    A step leaves them as they were at its beginning, one physics interval before the poses.
    """
    model, data = world.model, world.data
    contact = data.contact
    at = np.flatnonzero(contact.efc_address >= 0)
    geom = contact.geom[at].astype(np.intp).reshape(-1, 2)
    wrench = np.zeros((len(at), 6))
    row = np.zeros(6)
    for i, index in enumerate(at.tolist()):
        mujoco.mj_contactForce(model, data, index, row)
        wrench[i] = row
    return ContactForces(
        geom=geom,
        body=np.where(geom >= 0, model.geom_bodyid[geom], -1),
        position=contact.pos[at].reshape(-1, 3),
        frame=contact.frame[at].reshape(-1, 3, 3),
        force=wrench[:, :3],
        torque=wrench[:, 3:],
    )


class LinkWrenches:
    """The external wrench on links of the robot, with everything that hangs on them: contacts and pushes.

    Args:
        world: The scene; it is only read.
        frames: Names of the robot's frames in which it is wanted; by default those that the robot names for it.
    """

    def __init__(self, world: World, frames: Iterable[str] | None = None) -> None:
        self._world = world
        self.frames = tuple(world.robot.wrench_frames if frames is None else frames)
        self._bodies = {name: world.attached_to(world.robot.frame(name).link) for name in self.frames}

    def read(self, contacts: ContactForces | None = None) -> dict[str, Array]:
        """Return force in [N] and moment in [Nm] about the frame's origin, in the frame's axes, shape (6,), by frame.

        Args:
            contacts: The contacts, if somebody has gathered them already.
        """
        world, data = self._world, self._world.data
        contacts = contact_forces(world) if contacts is None else contacts
        force = contacts.force_in_world
        # Force, and moment about the world's origin, on the second body of each contact.
        wrench = np.concatenate([force, _cross(contacts.position, force) + contacts.torque_in_world], axis=1)
        pushed = np.flatnonzero(data.xfrc_applied.any(axis=1))
        result = {}
        for name, bodies in self._bodies.items():
            pose = world.link_pose(name)
            # A contact within the link gives nothing: once with each sign.
            inside = bodies[contacts.body] & (contacts.body >= 0)
            total = (inside[:, 1].astype(float) - inside[:, 0]) @ wrench
            for body in pushed[bodies[pushed]]:
                applied = data.xfrc_applied[body]
                total[:3] += applied[:3]
                total[3:] += applied[3:] + _cross(data.xipos[body], applied[:3])
            moment = total[3:] - _cross(pose.translation, total[:3])
            result[name] = np.r_[total[:3] @ pose.rotation, moment @ pose.rotation]
        return result


def _cross(a: Array, b: Array) -> Array:
    """Return the products of vectors along the last axis; NumPy's own takes ten times as long on a few."""
    return a[..., _NEXT] * b[..., _AFTER] - a[..., _AFTER] * b[..., _NEXT]
