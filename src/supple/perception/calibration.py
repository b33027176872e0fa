# SPDX-License-Identifier: Apache-2.0
"""Camera-to-robot calibration: from a board that the robot moves about, or from points whose place is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from supple.errors import ExtrinsicsError
from supple.perception.boards import BoardSight
from supple.perception.deprojection import pixel_rays
from supple.perception.extrinsics import Residual
from supple.perception.frames import Intrinsics

__all__ = [
    "FEWEST_VIEWS",
    "BoardView",
    "CalibrationLimits",
    "Solution",
    "solve_board_on_robot",
    "solve_known_points",
]

Array = NDArray[np.float64]

FEWEST_VIEWS = 5
"""Pictures of a moved board that a calibration needs at least; ten to twenty are good."""

_FEWEST_PIXELS, _FEWEST_DEPTHS = 6, 4
# What a picture and a depth camera are good for; they weigh pixels against depths.
_PIXEL_NOISE, _DEPTH_NOISE = 0.5, 0.003
# Beyond two standard deviations an error counts linearly: one bad view must not bend the others.
_ROBUST = 2.0
# Variance of what is not determined at all.
_UNKNOWN = 1e12


@dataclass(frozen=True)
class CalibrationLimits:
    """What a set of measurements must fulfil.

    Attributes:
        turn: Angle in [rad] that the board must turn by, about its second axis too.
        spread: Distance in [m] that known points must spread over, along their second direction too.
        residual: Largest root mean square distance in the picture in [px].
        translation_std: Largest standard deviation of the camera's position in [m].
        rotation_std: Largest standard deviation of the camera's orientation in [rad].
    """

    turn: float = 0.14
    spread: float = 0.02
    residual: float = 3.0
    translation_std: float = 0.01
    rotation_std: float = 0.0175


@dataclass(frozen=True, eq=False)
class BoardView:
    """One picture of a board that the robot holds.

    Attributes:
        name: What the view is called in messages, e.g. its time.
        sight: The board's corners in the picture.
        T_parent_carrier: Pose of the link that holds the board, in the frame that the camera is fixed to, at the
            picture's time.
    """

    name: str
    sight: BoardSight
    T_parent_carrier: pin.SE3


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved calibration.

    Attributes:
        T_parent_camera: Pose of the optical frame in its parent's frame.
        T_carrier_board: Pose of the board on the link that held it; None where the points were known.
        residual: How well it fits.
        errors_px: Root mean square distance in [px] by view (or by point), in the order given.
    """

    T_parent_camera: pin.SE3
    T_carrier_board: pin.SE3 | None
    residual: Residual
    errors_px: Array


def solve_board_on_robot(
    views: Sequence[BoardView],
    intrinsics: Intrinsics,
    limits: CalibrationLimits | None = None,
) -> Solution:
    """Find the camera from a board that sits, anywhere but firmly, on a link of the robot that moves before it.

    The place of the board on the link is found too. Rotations are aligned in closed form (Park and Martin 1994), then
    the distances of all corners in all pictures are minimised.

    Args:
        views: The pictures, at least ``FEWEST_VIEWS``.
        intrinsics: The camera's, with the distortion of its pictures.
        limits: What the set must fulfil.

    Raises:
        ExtrinsicsError: Too few views, poses too much alike, or a residual or an uncertainty above the limits.
    """
    limits = limits or CalibrationLimits()
    if len(views) < FEWEST_VIEWS:
        raise ExtrinsicsError(f"{len(views)} views show the board, expected at least {FEWEST_VIEWS}, better 10 to 20")
    _check_turns([view.T_parent_carrier for view in views], limits.turn)
    pixels = [_ideal(view.sight.pixels, intrinsics) for view in views]
    candidates = [_board_poses(v.sight.points, p, intrinsics, v.name) for v, p in zip(views, pixels, strict=True)]
    carriers = [view.T_parent_carrier for view in views]
    boards = [poses[0] for poses in candidates]
    # A flat board can look the same from two sides; the pose that fits the others is the right one.
    for _ in range(3):
        X, Z = _hand_eye(carriers, boards)
        expected = [X.inverse() * carrier * Z for carrier in carriers]
        boards = [_nearest(poses, want) for poses, want in zip(candidates, expected, strict=True)]

    def errors(step: Array) -> Array:
        camera, board = (X * pin.exp6(step[:6])).inverse(), Z * pin.exp6(step[6:])
        parts = []
        for view, seen in zip(views, pixels, strict=True):
            T = camera * view.T_parent_carrier * board
            parts.append((_project(T, view.sight.points, intrinsics)[:, :2] - seen).ravel() / _PIXEL_NOISE)
        return np.concatenate(parts)

    owner = np.repeat(np.arange(len(views)), [2 * len(view.sight.points) for view in views])
    step, covariance = _refine(errors, 12, owner)
    final = errors(step) * _PIXEL_NOISE
    residual = _residual(final.reshape(-1, 2), None, covariance, len(views))
    by_view = np.array([_rms(final[owner == i].reshape(-1, 2)) for i in range(len(views))])
    worst = ", ".join(f"{views[i].name} ({by_view[i]:.1f} px)" for i in np.argsort(-by_view)[:3])
    _check(
        residual,
        limits,
        f"the board moved on the robot, its squares have another size, or the pictures do not belong to the poses; "
        f"worst views: {worst}",
        "show the board nearer, tilted about more axes and in more corners of the picture",
    )
    return Solution(X * pin.exp6(step[:6]), Z * pin.exp6(step[6:]), residual, by_view)


def solve_known_points(
    positions: ArrayLike,
    pixels: ArrayLike,
    intrinsics: Intrinsics,
    depths: ArrayLike | None = None,
    limits: CalibrationLimits | None = None,
) -> Solution:
    """Find the camera from points whose place in its parent's frame is known: of the robot, or of a board beside it.

    Args:
        positions: Points in the frame that the camera is fixed to in [m], shape (n, 3).
        pixels: Where each is in the picture in [px], shape (n, 2).
        intrinsics: The camera's, with the distortion of its pictures.
        depths: Measured distance of each along the optical axis in [m], shape (n,), NaN where there is none.
        limits: What the set must fulfil.

    Raises:
        ExtrinsicsError: Arrays that do not fit, too few points, points on a line, points on a plane that allow two
            poses, or a residual or an uncertainty above the limits.
    """
    limits = limits or CalibrationLimits()
    points, seen, measured = _correspondences(positions, pixels, depths)
    if len(points) < _FEWEST_PIXELS and np.isfinite(measured).sum() < _FEWEST_DEPTHS:
        raise ExtrinsicsError(
            f"{len(points)} points, {np.isfinite(measured).sum()} with depth; expected at least {_FEWEST_PIXELS}, or "
            f"{_FEWEST_DEPTHS} with depth"
        )
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) / np.sqrt(len(points))
    if spread[1] < limits.spread:
        raise ExtrinsicsError(
            f"the points lie on a line: they spread by {1e3 * spread[0]:.0f} mm along it, {1e3 * spread[1]:.0f} mm "
            f"across it, expected at least {1e3 * limits.spread:.0f} mm"
        )
    ideal = _ideal(seen, intrinsics)
    has_depth = np.isfinite(measured)

    def errors(T_camera_parent: pin.SE3) -> Array:
        found = _project(T_camera_parent, points, intrinsics)
        depth = (found[has_depth, 2] - measured[has_depth]) / _DEPTH_NOISE
        return np.concatenate([(found[:, :2] - ideal).ravel() / _PIXEL_NOISE, depth])

    def moved(start: pin.SE3, step: Array) -> Array:
        return errors(start * pin.exp6(step))

    owner = np.r_[np.repeat(np.arange(len(points)), 2), np.flatnonzero(has_depth)]
    fits = []
    for start in _starts(points, ideal, measured, intrinsics, spread[2] < 0.05 * spread[0]):
        step, covariance = _refine(partial(moved, start), 6, owner)
        fits.append((float(np.sum(moved(start, step) ** 2)), start * pin.exp6(step), covariance))
    fits.sort(key=lambda fit: fit[0])
    cost, T, covariance = fits[0]
    for other_cost, other, _ in fits[1:]:
        angle = float(np.linalg.norm(pin.log3(other.rotation.T @ T.rotation)))
        if angle > 0.1 and other_cost < 2.0 * cost + 1.0:
            raise ExtrinsicsError(
                f"the points lie on a plane and two camera poses, {np.degrees(angle):.0f} deg apart, fit them almost "
                "equally well: add points off the plane, or depths"
            )
    final = errors(T)
    off = final[: 2 * len(points)].reshape(-1, 2) * _PIXEL_NOISE
    along = final[2 * len(points) :] * _DEPTH_NOISE if has_depth.any() else None
    # The step is taken in the frame of the parent; what is reported is that of the camera.
    adjoint = T.toActionMatrix()
    residual = _residual(off, along, adjoint @ covariance @ adjoint.T, 1)
    by_point = np.linalg.norm(off, axis=1)
    worst = ", ".join(f"number {i} ({by_point[i]:.1f} px)" for i in np.argsort(-by_point)[:3])
    _check(
        residual,
        limits,
        f"positions and pixels do not belong together, or the intrinsics are another camera's; worst points: {worst}",
        "spread the points over the whole picture and over different distances",
    )
    return Solution(T.inverse(), None, residual, by_point)


# -- parts -------------------------------------------------------------------------------------------------------------


def _correspondences(positions: ArrayLike, pixels: ArrayLike, depths: ArrayLike | None) -> tuple[Array, Array, Array]:
    points, seen = np.asarray(positions, np.float64), np.asarray(pixels, np.float64)
    measured = np.full(len(points), np.nan) if depths is None else np.asarray(depths, np.float64)
    for name, array, shape in (
        ("positions", points, (len(points), 3)),
        ("pixels", seen, (len(points), 2)),
        ("depths", measured, (len(points),)),
    ):
        if array.shape != shape:
            raise ExtrinsicsError(f"{name}: expected shape {shape}, got {array.shape}")
        bad = ~np.isfinite(array) if name != "depths" else np.isinf(array) | (array <= 0.0)
        if bad.any():
            index = int(np.argwhere(bad)[0][0])
            raise ExtrinsicsError(f"{name}: point {index} is {array[index].tolist()}, expected finite numbers")
    return points, seen, measured


def _ideal(pixels: Array, intrinsics: Intrinsics) -> Array:
    """Return where a lens without distortion would show these pixels."""
    rays = pixel_rays(intrinsics, pixels[:, 1], pixels[:, 0])
    return rays * [intrinsics.fx, intrinsics.fy] + [intrinsics.cx, intrinsics.cy]


def _matrix(intrinsics: Intrinsics) -> Array:
    return np.array([[intrinsics.fx, 0.0, intrinsics.cx], [0.0, intrinsics.fy, intrinsics.cy], [0.0, 0.0, 1.0]])


def _project(T_camera_frame: pin.SE3, points: Array, intrinsics: Intrinsics) -> Array:
    """Return (u, v, depth) of points, shape (n, 3)."""
    x, y, z = (points @ T_camera_frame.rotation.T + T_camera_frame.translation).T
    # Behind the camera a projection is meaningless; a small positive depth makes it very wrong instead.
    z_safe = np.maximum(z, 1e-3)
    return np.column_stack([intrinsics.fx * x / z_safe + intrinsics.cx, intrinsics.fy * y / z_safe + intrinsics.cy, z])


def _nearest(poses: Sequence[pin.SE3], wanted: pin.SE3) -> pin.SE3:
    """Return the pose whose orientation is nearest to one."""
    return min(poses, key=lambda pose: float(np.linalg.norm(pin.log3(wanted.rotation.T @ pose.rotation))))


def _pose(rotation_vector: ArrayLike, translation: ArrayLike) -> pin.SE3:
    return pin.SE3(
        pin.exp3(np.asarray(rotation_vector, np.float64).ravel()), np.asarray(translation, np.float64).ravel()
    )


def _board_poses(points: Array, pixels: Array, intrinsics: Intrinsics, name: str) -> list[pin.SE3]:
    """Return the poses of a flat board in the camera that its corners allow, best first."""
    count, rotations, translations, _ = cv2.solvePnPGeneric(
        points, pixels.reshape(-1, 1, 2), _matrix(intrinsics), np.zeros(5), flags=cv2.SOLVEPNP_IPPE
    )
    poses = [_pose(r, t) for r, t in zip(rotations, translations, strict=True)]
    if not count or not all(np.all(np.isfinite(pose.homogeneous)) for pose in poses):
        raise ExtrinsicsError(f"view {name}: the board's corners allow no pose; are they all on one line?")
    return poses


def _starts(points: Array, pixels: Array, depths: Array, intrinsics: Intrinsics, flat: bool) -> list[pin.SE3]:
    """Return poses of the parent in the camera to start a refinement from."""
    known = np.isfinite(depths)
    if known.sum() >= _FEWEST_DEPTHS:
        spread = np.linalg.svd(points[known] - points[known].mean(axis=0), compute_uv=False)
        if spread[1] > 1e-3:
            # The pixels are ideal ones already.
            rays = (pixels[known] - [intrinsics.cx, intrinsics.cy]) / [intrinsics.fx, intrinsics.fy]
            return [_align(points[known], depths[known, None] * np.column_stack([rays, np.ones(known.sum())]))]
    flag = cv2.SOLVEPNP_IPPE if flat else cv2.SOLVEPNP_SQPNP
    frame = _plane_frame(points) if flat else pin.SE3.Identity()
    local = (points - frame.translation) @ frame.rotation
    if flat:
        local[:, 2] = 0.0
    count, rotations, translations, _ = cv2.solvePnPGeneric(
        local, pixels.reshape(-1, 1, 2), _matrix(intrinsics), np.zeros(5), flags=flag
    )
    poses = [_pose(r, t) * frame.inverse() for r, t in zip(rotations, translations, strict=True)]
    poses = [pose for pose in poses if np.all(np.isfinite(pose.homogeneous))]
    if not count or not poses:
        raise ExtrinsicsError("no camera pose explains the points; do positions and pixels belong together?")
    return poses


def _plane_frame(points: Array) -> pin.SE3:
    """Return a frame in the middle of points whose z axis is across them."""
    _, _, axes = np.linalg.svd(points - points.mean(axis=0))
    rotation = axes.T
    rotation[:, 2] *= np.sign(np.linalg.det(rotation))
    return pin.SE3(rotation, points.mean(axis=0))


def _align(source: Array, target: Array) -> pin.SE3:
    """Return the rigid motion that takes source points to target points (Kabsch 1976)."""
    centre, goal = source.mean(axis=0), target.mean(axis=0)
    rotation = _rotation_between(source - centre, target - goal)
    return pin.SE3(rotation, goal - rotation @ centre)


def _rotation_between(source: Array, target: Array) -> Array:
    u, _, vt = np.linalg.svd(target.T @ source)
    return np.asarray(u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt)


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _check_turns(carriers: Sequence[pin.SE3], needed: float) -> None:
    """Refuse poses of the carrier that turn about less than two axes: the camera's place along one would stay free."""
    turns = np.array([pin.log3(carriers[i].rotation.T @ carriers[j].rotation) for i, j in _pairs(len(carriers))])
    # Of many small turns the largest along each direction counts, not their mean: one good tilt is enough.
    _, _, axes = np.linalg.svd(turns)
    first, second = (float(np.abs(turns @ axis).max()) for axis in axes[:2])
    if first < needed:
        raise ExtrinsicsError(
            f"the board turned by {np.degrees(first):.1f} deg at most, expected at least {np.degrees(needed):.0f} deg "
            "about two axes"
        )
    if second < needed:
        axis = ", ".join(f"{x:.2f}" for x in axes[0])
        raise ExtrinsicsError(
            f"the board turned about one axis only, ({axis}) of the link that holds it: {np.degrees(first):.0f} deg "
            f"about it, {np.degrees(second):.1f} deg about others, expected at least {np.degrees(needed):.0f} deg"
        )


def _hand_eye(carriers: Sequence[pin.SE3], boards: Sequence[pin.SE3]) -> tuple[pin.SE3, pin.SE3]:
    """Return the camera's pose X in its parent and the board's pose Z on its carrier, from X B = A Z in all views."""
    moved = [(carriers[j] * carriers[i].inverse(), boards[j] * boards[i].inverse()) for i, j in _pairs(len(carriers))]
    a = np.array([pin.log3(A.rotation) for A, _ in moved])
    b = np.array([pin.log3(B.rotation) for _, B in moved])
    rotation = _rotation_between(b, a)
    left = np.concatenate([A.rotation - np.eye(3) for A, _ in moved])
    right = np.concatenate([rotation @ B.translation - A.translation for A, B in moved])
    translation = np.linalg.lstsq(left, right, rcond=None)[0]
    X = pin.SE3(rotation, translation)
    placed = [carrier.inverse() * X * board for carrier, board in zip(carriers, boards, strict=True)]
    u, _, vt = np.linalg.svd(np.sum([pose.rotation for pose in placed], axis=0))
    mean = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return X, pin.SE3(mean, np.median([pose.translation for pose in placed], axis=0))


def _refine(errors: Callable[[Array], Array], size: int, owner: NDArray[np.intp]) -> tuple[Array, Array]:
    """Minimise errors from zero on, robustly; return the step and the covariance of its first six entries.

    Args:
        errors: Whitened errors as a function of a step (size,), shape (m,).
        size: Number of unknowns.
        owner: Which view or point each error belongs to, shape (m,): those of one share its mistakes.
    """
    found = least_squares(errors, np.zeros(size), loss="huber", f_scale=_ROBUST, x_scale="jac", max_nfev=200)
    J, r = found.jac, errors(found.x)
    information = J.T @ J
    if not np.all(np.isfinite(information)) or np.linalg.cond(information) > 1e14:
        return found.x, _UNKNOWN * np.eye(6)
    inverse = np.linalg.inv(information)
    free = max(len(r) - size, 1)
    plain = inverse * max(float(r @ r) / free, 0.01)
    groups = np.unique(owner)
    scores = np.array([J[owner == g].T @ r[owner == g] for g in groups])
    # Errors of one view go together (its pose was off); counted as one measurement each they weigh more.
    grouped = inverse @ (scores.T @ scores) @ inverse * len(groups) / max(len(groups) - size / 2.0, 1.0)
    return found.x, (plain if np.trace(plain[:6, :6]) > np.trace(grouped[:6, :6]) else grouped)[:6, :6]


def _rms(off: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(off**2, axis=-1)))) if len(off) else 0.0


def _residual(off: Array, along: Array | None, covariance: Array, views: int) -> Residual:
    blocks = covariance[:3, :3], covariance[3:, 3:]
    deviation = [float(np.sqrt(max(np.linalg.eigvalsh(block)[-1], 0.0))) for block in blocks]
    return Residual(
        rms_px=_rms(off),
        max_px=float(np.linalg.norm(off, axis=1).max()),
        rms_depth=None if along is None else float(np.sqrt(np.mean(along**2))),
        translation_std=deviation[0],
        rotation_std=deviation[1],
        views=views,
        points=len(off),
    )


def _check(residual: Residual, limits: CalibrationLimits, why: str, remedy: str) -> None:
    if residual.rms_px > limits.residual:
        raise ExtrinsicsError(f"residual {residual.rms_px:.1f} px, expected at most {limits.residual:.1f} px: {why}")
    if residual.translation_std > limits.translation_std or residual.rotation_std > limits.rotation_std:
        place, turn = residual.translation_std, np.degrees(residual.rotation_std)
        found = f"to {1e3 * place:.0f} mm and {turn:.1f} deg only" if place < 1.0 else "not at all"
        raise ExtrinsicsError(
            f"the measurements determine the camera {found}, expected {1e3 * limits.translation_std:.0f} mm and "
            f"{np.degrees(limits.rotation_std):.1f} deg: {remedy}"
        )
