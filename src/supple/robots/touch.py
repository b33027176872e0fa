# SPDX-License-Identifier: Apache-2.0
"""Tactile pads as part of a robot: on which surface they lie, and where their taxels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from supple.errors import SensorError

__all__ = ["Capsule", "FingerPatch", "Patch", "PatchGrid", "PlatePatch", "TactilePad"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PatchGrid:
    """A patch of surface cut into cells, row by row along its length.

    Attributes:
        position: Middles of the cells in the link's frame in [m], shape (rows * columns, 3).
        normal: Unit vectors out of the surface there, shape (rows * columns, 3).
        area: Areas of the cells in [m^2], shape (rows * columns,).
    """

    position: Array
    normal: Array
    area: Array


class Patch(Protocol):
    """A piece of a link's surface that feels."""

    def grid(self, rows: int, columns: int) -> PatchGrid:
        """Return it cut into cells: rows along its length, columns across."""


def _middles(count: int) -> Array:
    return (np.arange(count) + 0.5) / count


@dataclass(frozen=True)
class PlatePatch:
    """A flat rectangle.

    Attributes:
        centre: Its middle in the link's frame in [m].
        along: Unit vector of its length.
        normal: Unit vector out of the surface; across is normal x along.
        length: Extent along in [m].
        width: Extent across in [m].
    """

    centre: tuple[float, float, float]
    along: tuple[float, float, float]
    normal: tuple[float, float, float]
    length: float
    width: float

    def grid(self, rows: int, columns: int) -> PatchGrid:
        """Return it cut into equal rectangles."""
        along, normal = np.array(self.along), np.array(self.normal)
        across = np.cross(normal, along)
        s, t = np.meshgrid(_middles(rows) - 0.5, _middles(columns) - 0.5, indexing="ij")
        offsets = s.reshape(-1, 1) * self.length * along + t.reshape(-1, 1) * self.width * across
        count = rows * columns
        area = np.full(count, self.length * self.width / count)
        return PatchGrid(np.array(self.centre) + offsets, np.tile(normal, (count, 1)), area)


@dataclass(frozen=True)
class Capsule:
    """The shape of a finger link.

    Attributes:
        start: Middle of the hemisphere near the palm, in the link's frame in [m].
        end: Middle of the hemisphere at the tip in [m].
        radius: Radius in [m].
    """

    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float


@dataclass(frozen=True)
class FingerPatch:
    """The inner side of a finger link: a part of its cylinder, and of the hemisphere at its tip.

    Attributes:
        capsule: The link's shape.
        inner: Unit vector, perpendicular to the axis, that the finger closes towards.
        width_angle: How far it reaches round the axis, in all, in [rad].
        tip_angle: How far it reaches over the hemisphere from its rim, in [rad]; 0 for a link that is no tip.
    """

    capsule: Capsule
    inner: tuple[float, float, float]
    width_angle: float
    tip_angle: float = 0.0

    def grid(self, rows: int, columns: int) -> PatchGrid:
        """Return it cut into cells of equal length on the surface and equal angle round the axis."""
        start, end = np.array(self.capsule.start), np.array(self.capsule.end)
        radius, straight = self.capsule.radius, float(np.linalg.norm(end - start))
        axis, inner = (end - start) / straight, np.array(self.inner)
        side = np.cross(axis, inner)
        length = straight + radius * self.tip_angle
        s, turn = np.meshgrid(_middles(rows) * length, (_middles(columns) - 0.5) * self.width_angle, indexing="ij")
        s, turn = s.reshape(-1, 1), turn.reshape(-1, 1)
        rise = np.maximum(s - straight, 0.0) / radius
        radial = np.cos(turn) * inner + np.sin(turn) * side
        normal = np.sin(rise) * axis + np.cos(rise) * radial
        position = start + np.minimum(s, straight) * axis + radius * normal
        # What a row covers shrinks with the circles of the hemisphere: exact for each row's two edges.
        edges = np.linspace(0.0, length, rows + 1)
        unrolled = np.minimum(edges, straight) + radius * np.sin(np.maximum(edges - straight, 0.0) / radius)
        area = np.repeat(np.diff(unrolled) * radius * self.width_angle / columns, columns)
        return PatchGrid(position, normal, area)


@dataclass(frozen=True, eq=False)
class TactilePad:
    """One tactile sensor of a robot.

    Attributes:
        name: Name of the sensor.
        link: Link that it is fixed to; its frame is that of all positions.
        shape: Name of the link's collision shape that it lies on.
        patch: The surface that it covers.
        rows: Taxels along the patch.
        columns: Taxels across; taxel ``row * columns + column``.
        cover: How far the link's drawn surface lies above the collision shape in [m]; viewers show taxels up there.
    """

    name: str
    link: str
    shape: str
    patch: Patch
    rows: int
    columns: int
    cover: float = 0.0

    def taxels(self) -> PatchGrid:
        """Return the taxels: their middles, normals and areas."""
        return self.patch.grid(self.rows, self.columns)

    def samples(self, per_side: int) -> tuple[PatchGrid, NDArray[np.intp]]:
        """Return a finer grid, and which taxel each of its cells belongs to.

        Args:
            per_side: Cells along each side of a taxel.

        Raises:
            SensorError: Not at least one.
        """
        if per_side < 1:
            raise SensorError(f"pad {self.name!r}: expected at least one sample per side of a taxel, got {per_side}")
        rows, columns = self.rows * per_side, self.columns * per_side
        row, column = np.divmod(np.arange(rows * columns), columns)
        return self.patch.grid(rows, columns), (row // per_side) * self.columns + column // per_side
