# SPDX-License-Identifier: Apache-2.0
"""What really happens at the robot's tactile pads: the simulator's contact forces, spread as a soft skin would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from supple.contact.readings import PadLayout
from supple.errors import SensorError
from supple.robots.touch import TactilePad
from supple.sim.distance import distances_from
from supple.sim.forces import ContactForces, contact_forces
from supple.sim.world import World

__all__ = ["SKIN_SPREAD", "SKIN_STIFFNESS", "PadTouch", "TactileSkin", "indentation", "layout_of"]

Array = NDArray[np.float64]

SKIN_STIFFNESS = 1.7e8
"""Pressure per indentation in [Pa/m]: 3 mm of soft rubber (0.5 MPa)."""

SKIN_SPREAD = 0.0025
"""How far the skin spreads a load sideways in [m], standard deviation: 3 mm of rubber over the taxels."""

# Points along each side of a taxel at which the gap to what touches it is taken.
_SAMPLES = 3
# A contact counts for the pads of a shape when it lies this close to them, in sizes of a taxel, and is turned by less
# than 60 degrees against them: the points of a face on a face lie at its corners, a little off the pads.
_REACH, _LEAST_COSINE = 0.75, 0.5
# What has no simple shape (a mesh, cloth) is taken for a ball of this radius in [m] at each of its points of contact.
_BALL_RADIUS = 0.005


@dataclass(frozen=True, eq=False)
class PadTouch:
    """What really happens at one pad.

    Attributes:
        pressure: Mean pressure on each taxel in [Pa], shape (n,).
        normal_force: Force along the normals in [N].
        tangential_force: Magnitude of the friction force in [N].
        slip_speed: Speed of what touches across the pad in [m/s], weighted by force; NaN when nothing touches, or when
            a flexible body does.
        bodies: Names of what touches it; a flexible body has none.
    """

    pressure: Array
    normal_force: float = 0.0
    tangential_force: float = 0.0
    slip_speed: float = float("nan")
    bodies: tuple[str, ...] = ()


def layout_of(pad: TactilePad) -> PadLayout:
    """Return where a robot's pad has its taxels, for a calibrated sensor."""
    grid = pad.taxels()
    return PadLayout(pad.name, pad.link, grid.position, grid.normal, grid.area)


class _Surface:
    """The pads of one collision shape, as one skin; all arrays in the frame of the link that carries it."""

    def __init__(self, world: World, pads: list[TactilePad], first_taxel: Mapping[str, int]) -> None:
        self.geom = world.model.geom(pads[0].shape).id
        self.body = world.body_id(pads[0].link)
        if world.model.geom_bodyid[self.geom] != self.body:
            raise SensorError(f"pad {pads[0].name!r}: shape {pads[0].shape!r} is no part of link {pads[0].link!r}")
        grids = [pad.samples(_SAMPLES) for pad in pads]
        self.position = np.concatenate([grid.position for grid, _ in grids])
        self.normal = np.concatenate([grid.normal for grid, _ in grids])
        self.area = np.concatenate([grid.area for grid, _ in grids])
        size = [np.full(len(at), np.sqrt(pad.taxels().area.max())) for pad, (_, at) in zip(pads, grids, strict=True)]
        self.reach = _REACH * np.concatenate(size)
        taxel = np.concatenate([at + first_taxel[pad.name] for pad, (_, at) in zip(pads, grids, strict=True)])
        self.taxels = np.unique(taxel)
        self.shares = self._shares(taxel, np.repeat(np.arange(len(pads)), [len(at) for _, at in grids]))

    def _shares(self, taxel: NDArray[np.intp], pad: NDArray[np.intp]) -> Array:
        """Return which part of the force on each sample each taxel feels, shape (taxels, samples): columns sum to 1."""
        offsets = self.position[:, None] - self.position
        near = np.exp(-0.5 * np.einsum("ijk,ijk->ij", offsets, offsets) / SKIN_SPREAD**2) * self.area[:, None]
        # Each pad has a skin of its own.
        near[pad[:, None] != pad] = 0.0
        felt = np.stack([near[taxel == index].sum(axis=0) for index in self.taxels])
        return felt / felt.sum(axis=0)


@dataclass(frozen=True, eq=False)
class _Load:
    """What one shape does to the pads of another."""

    force: Array  # along the normal of each taxel of the robot, in N
    pair: tuple[int, int]  # the shape that carries the pads, and the other
    side: int  # which of both the first one is in the contacts
    at: NDArray[np.intp]  # the contacts on the pads
    push: Array  # what each of them adds to the force, in N


def indentation(gap: Array, area: Array, load: float) -> Array:
    """Return how deep each sample of a skin is pressed in [m] under a load, shape (n,).

    The skin is a bed of springs (Winkler): the other body sinks in until the springs that it reaches carry the load.

    Args:
        gap: Distance of the other body's surface from each sample in [m], up to a constant, shape (n,).
        area: Areas of the samples in [m^2], shape (n,).
        load: Force over stiffness in [m^3].
    """
    order = np.argsort(gap)
    gaps, areas = gap[order], area[order]
    # Depth if exactly the first k samples are reached; it is the right one when it ends before the next sample.
    depth = (load + np.cumsum(areas * gaps)) / np.cumsum(areas)
    reached = int(np.argmax(depth <= np.append(gaps[1:], np.inf)))
    return np.maximum(depth[reached] - gap, 0.0)


class TactileSkin:
    """What really happens at every pad of the robot, from the simulator's contacts.

    MuJoCo gives a force per point of contact between rigid shapes. Here each pair of a pad's shape and another shape is
    one contact of a soft skin: its normal force is spread over the taxels by the distance of the other shape's surface
    from them, and a little sideways within the skin. Forces are kept exactly, a fingertip's patch grows with the force,
    and a plate loads a flat palm evenly.

    Args:
        world: The scene; it is only read.
        stiffness: Pressure per indentation of the skin in [Pa/m].

    Attributes:
        layouts: Where each pad has its taxels.
        at: Which entries of ``pressure`` are each pad's.

    Raises:
        SensorError: A pad's shape is no part of its link in this scene.
    """

    def __init__(self, world: World, stiffness: float = SKIN_STIFFNESS) -> None:
        self._world, self._stiffness = world, stiffness
        pads = world.robot.pads
        self.layouts = {name: layout_of(pad) for name, pad in pads.items()}
        self.at: dict[str, slice] = {}
        self._count = 0
        shapes: dict[str, list[TactilePad]] = {}
        for name, pad in pads.items():
            self.at[name] = slice(self._count, self._count + len(self.layouts[name]))
            self._count = self.at[name].stop
            shapes.setdefault(pad.shape, []).append(pad)
        self._area = np.concatenate([np.zeros(0), *(layout.area for layout in self.layouts.values())])
        first = {name: at.start for name, at in self.at.items()}
        surfaces = [_Surface(world, group, first) for group in shapes.values()]
        self._surfaces = {surface.geom: surface for surface in surfaces}
        # One entry more than there are shapes: that of index -1, a flexible body's.
        self._feels = np.zeros(world.model.ngeom + 1, dtype=bool)
        self._feels[list(self._surfaces)] = True

    def pressure(self, contacts: ContactForces | None = None) -> Array:
        """Return the mean pressure on every taxel of the robot in [Pa], one pad after the other as in ``at``.

        Args:
            contacts: The contacts, if somebody has gathered them already.
        """
        contacts = contact_forces(self._world) if contacts is None else contacts
        force = np.zeros(self._count)
        for load in self._loads(contacts):
            force += load.force
        return force / self._area

    def touches(self, contacts: ContactForces | None = None) -> dict[str, PadTouch]:
        """Return what happens at every pad now.

        Args:
            contacts: The contacts, if somebody has gathered them already.
        """
        contacts = contact_forces(self._world) if contacts is None else contacts
        loads = self._loads(contacts)
        motions = [self._motion(load, contacts) for load in loads]
        return {name: self._touch(name, loads, motions) for name in self.at}

    def _touch(self, name: str, loads: list[_Load], motions: list[tuple[Array, float]]) -> PadTouch:
        at = self.at[name]
        # What presses on several pads at once, e.g. on the whole palm, gives each its share.
        shares = np.array([load.force[at].sum() for load in loads])
        touching, total = np.flatnonzero(shares), float(shares.sum())
        if not len(touching):
            return PadTouch(np.zeros(at.stop - at.start))
        friction = np.sum([shares[i] / loads[i].force.sum() * motions[i][0] for i in touching], axis=0)
        others = [loads[i].pair[1] for i in touching]
        model = self._world.model
        return PadTouch(
            pressure=np.sum([loads[i].force[at] for i in touching], axis=0) / self._area[at],
            normal_force=total,
            tangential_force=float(np.linalg.norm(friction)),
            slip_speed=sum(float(shares[i]) * motions[i][1] for i in touching) / total,
            bodies=tuple(sorted({model.body(model.geom_bodyid[other]).name for other in others if other >= 0})),
        )

    def _loads(self, contacts: ContactForces) -> list[_Load]:
        """Return one entry per pair of a shape that feels and another shape on its pads."""
        pairs: dict[tuple[int, int, int], list[int]] = {}
        for side in (0, 1):
            for i in np.flatnonzero(self._feels[contacts.geom[:, side]]).tolist():
                pair = (int(contacts.geom[i, side]), int(contacts.geom[i, 1 - side]), side)
                pairs.setdefault(pair, []).append(i)
        loads = (self._load((geom, other), side, at, contacts) for (geom, other, side), at in pairs.items())
        return [load for load in loads if load is not None]

    def _load(self, pair: tuple[int, int], side: int, at: list[int], contacts: ContactForces) -> _Load | None:
        data, surface = self._world.data, self._surfaces[pair[0]]
        rotation, origin = data.xmat[surface.body].reshape(3, 3), data.xpos[surface.body]
        # Which part of the skin each point of contact lies on, and how its normal is turned against the skin's.
        offsets = ((contacts.position[at] - origin) @ rotation)[:, None, :] - surface.position
        distance = np.einsum("ijk,ijk->ij", offsets, offsets)
        nearest = distance.argmin(axis=1)
        outwards = contacts.frame[at, 0] @ rotation if side == 0 else -contacts.frame[at, 0] @ rotation
        cosine = np.einsum("ij,ij->i", outwards, surface.normal[nearest])
        push = contacts.force[at, 0] * cosine
        on_pad = (distance.min(axis=1) < surface.reach[nearest] ** 2) & (cosine > _LEAST_COSINE) & (push > 0.0)
        if not on_pad.any():
            return None
        gap = distances_from(self._world.model, data, pair[1], surface.position @ rotation.T + origin)
        if gap is None:
            gap = distance[on_pad].min(axis=0) / (2.0 * _BALL_RADIUS)
        push = push[on_pad]
        volume = indentation(gap, surface.area, float(push.sum()) / self._stiffness) * surface.area
        force = np.zeros(self._count)
        force[surface.taxels] = surface.shares @ (self._stiffness * volume)
        return _Load(force, pair, side, np.asarray(at)[on_pad], push)

    def _motion(self, load: _Load, contacts: ContactForces) -> tuple[Array, float]:
        """Return the friction on the robot's side in the world frame in [N], and the speed across it in [m/s]."""
        frame, (geom, other) = contacts.frame[load.at], load.pair
        friction = np.einsum("ni,nij->j", contacts.force[load.at, 1:], frame[:, 1:])
        if load.side == 0:
            friction = -friction
        if other < 0:
            return friction, float("nan")
        position, body = contacts.position[load.at], self._world.model.geom_bodyid
        relative = self._velocity(int(body[other]), position) - self._velocity(int(body[geom]), position)
        across = relative - np.einsum("ni,ni->n", relative, frame[:, 0])[:, None] * frame[:, 0]
        return friction, float(load.push @ np.linalg.norm(across, axis=1) / load.push.sum())

    def _velocity(self, body: int, points: Array) -> Array:
        """Return the velocity of a body's points in the world frame in [m/s], shape (n, 3)."""
        data = self._world.data
        x, y, z, *linear = data.cvel[body].tolist()
        spin = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])
        return linear + (points - data.subtree_com[self._world.model.body_rootid[body]]) @ spin
