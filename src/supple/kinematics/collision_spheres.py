# SPDX-License-Identifier: Apache-2.0
"""A body as spheres: smallest tangent spheres of its surface, inflated a little, as few as cover it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from supple.kinematics.solids import Solid, surface

__all__ = ["INFLATION", "LinkSpheres", "cover", "link_spheres", "tangent_spheres"]

Array = NDArray[np.float64]

INFLATION = 0.01
"""How much larger a sphere is made than the tangent one in [m]: how far the model reaches beyond the body at most."""

_SPACING = 0.012


def tangent_spheres(points: Array, normals: Array) -> tuple[Array, Array]:
    """Return for each surface point the smallest sphere that touches it from within and another point as well.

    No point of the surface lies inside such a sphere, so that it is the largest that fits into the body there.

    Args:
        points: Points of a closed surface in [m], shape (n, 3).
        normals: Outward unit normals there, shape (n, 3).

    Returns:
        Centres (n, 3) and radii (n,) in [m].
    """
    # |p_j - (p_i - r n_i)| = r gives r = |d|^2 / (-2 n_i d) with d = p_j - p_i.
    square = (points**2).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2.0 * points @ points.T, 0.0)
    inward = (normals * points).sum(axis=1)[:, None] - normals @ points.T
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = np.where(inward > 1e-9, distance / (2.0 * inward), np.inf).min(axis=1)
    # On a sharp edge, where one point has two normals, nothing fits.
    radius[((distance < 1e-12) & (normals @ normals.T < 0.9)).any(axis=1)] = 0.0
    return points - radius[:, None] * normals, radius


def cover(points: Array, normals: Array, inflation: float = INFLATION) -> tuple[Array, Array]:
    """Return centres (k, 3) and radii (k,) in [m] of inflated tangent spheres that together hold all surface points.

    Greedy: the sphere that holds most of what no other holds yet comes next (HumanoidMimicGen, collision model).

    Args:
        points: Points of a closed surface in [m], shape (n, 3).
        normals: Outward unit normals there, shape (n, 3).
        inflation: What is added to each radius in [m].
    """
    centres, radii = tangent_spheres(points, normals)
    radii = radii + inflation
    square = (points**2).sum(axis=1) + (centres**2).sum(axis=1)[:, None] - 2.0 * centres @ points.T
    holds = square <= (radii**2)[:, None] + 1e-12
    chosen = []
    left = np.ones(len(points), dtype=bool)
    gains = holds.sum(axis=1)
    while left.any():
        best = int(np.argmax(gains))
        chosen.append(best)
        new = holds[best] & left
        left &= ~new
        gains = gains - holds[:, new].sum(axis=1)
    return centres[chosen], radii[chosen]


@dataclass(frozen=True, eq=False)
class LinkSpheres:
    """The collision spheres of a robot.

    Attributes:
        links: Names of the links that have any.
        link: Index of each sphere's link, shape (n,).
        centres: Centres in the frames of their links in [m], shape (n, 3).
        radii: Radii in [m], inflation included, shape (n,).
        inflation: What the radii are larger than those of the tangent spheres in [m].
    """

    links: tuple[str, ...]
    link: NDArray[np.intp]
    centres: Array
    radii: Array
    inflation: float


def link_spheres(links: Mapping[str, Sequence[Solid]], inflation: float = INFLATION) -> LinkSpheres:
    """Return the spheres of a robot's links.

    Args:
        links: The solids of each link, posed in its frame.
        inflation: What is added to each tangent sphere's radius in [m].
    """
    centres, radii = [], []
    for solids in links.values():
        # What lies inside another solid of the link is not on its surface.
        parts = [surface(solid, _SPACING) for solid in solids]
        outside = [
            np.min([np.inf * np.ones(len(points)), *(s.distance(points) for s in solids if s is not solid)], axis=0)
            > -1e-6
            for solid, (points, _) in zip(solids, parts, strict=True)
        ]
        points = np.vstack([part[0][keep] for part, keep in zip(parts, outside, strict=True)])
        normals = np.vstack([part[1][keep] for part, keep in zip(parts, outside, strict=True)])
        found = cover(points, normals, inflation)
        centres.append(found[0])
        radii.append(found[1])
    link = np.repeat(np.arange(len(centres)), [len(rows) for rows in radii])
    return LinkSpheres(tuple(links), link, np.vstack(centres), np.concatenate(radii), inflation)
