# SPDX-License-Identifier: Apache-2.0
"""The scripted demonstrations that handle a drill."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw, yaw_of
from supple.tasks.furniture import ERGO_TABLE_TOP
from supple.tasks.objects import DRILL_GRIP_HEIGHT
from supple.teleop.scripts.motions import Motions, Script

__all__ = ["drill_lift", "drill_lift_obstacle", "drill_pick_place", "pick_drill_from_holder"]

_HAND = "right_hand"

_HANDLE = np.array([-0.045, 0.008, 0.0])
"""Where the handle is to be in the open right hand's frame in [m]: between fingers and thumb, near the palm."""

_INWARD = 0.35
"""How far the hand points to the left of where the robot looks in [rad]; the forearm then comes from the side."""


def _hand(handle: np.ndarray, heading: float, back: float = 0.0, up: float = 0.0) -> dict[str, pin.SE3]:
    """Return the pose of the right hand with the handle at a point, drawn back along the palm and up, in [m]."""
    rotation = pin.rpy.rpyToMatrix(0.0, 0.0, heading + _INWARD)
    return {_HAND: pin.SE3(rotation, handle + rotation @ (-_HANDLE - [back, 0.0, 0.0]) + [0.0, 0.0, up])}


def _walk_up(motions: Motions) -> Script:
    """Walk to where the drill is ahead, a little to the right."""
    drill = motions.view().objects["drill"]
    yield from motions.walk(*_place_for(drill.translation, yaw_of(drill)))


def _place_for(point: np.ndarray, heading: float) -> tuple[float, float, float]:
    """Return where to stand, x and y in [m] and yaw in [rad], to work with the right hand at a point."""
    forward, left = np.array([np.cos(heading), np.sin(heading)]), np.array([-np.sin(heading), np.cos(heading)])
    x, y = point[:2] - 0.40 * forward + 0.17 * left
    return float(x), float(y), heading


def _grasp(motions: Motions, skill: str, fingers: str, height: float = DRILL_GRIP_HEIGHT) -> Script:
    """Bring the open hand behind the drill's handle, so high in [m], mark, reach round it and close the fingers."""
    drill = motions.view().objects["drill"]
    heading, handle = yaw_of(drill), drill.translation + np.array([0.0, 0.0, height])
    start = {_HAND: motions.view().effectors[_HAND]}
    above, behind, around = _hand(handle, heading, 0.13, 0.06), _hand(handle, heading, 0.13), _hand(handle, heading)
    yield from motions.move(start, above, 1.2)
    yield from motions.move(above, behind, 0.8)
    yield from motions.event(f"mark:{skill}", behind)
    yield from motions.move(behind, around, 1.3)
    yield from motions.finger({_HAND: fingers}, around, 0.6)


def _raise(motions: Motions, up: float, back: float, right: float = 0.0) -> Script:
    """Lift what the hand holds and draw it towards the body and aside, by so much in [m]; mark the skill's end."""
    begin = {_HAND: motions.view().effectors[_HAND]}
    heading = yaw_of(begin[_HAND]) - _INWARD
    shift = pin.rpy.rpyToMatrix(0.0, 0.0, heading) @ np.array([-back, -right, up])
    raised = {_HAND: pin.SE3(begin[_HAND].rotation, begin[_HAND].translation + shift)}
    yield from motions.move(begin, raised, 1.8)
    yield from motions.event("mark:end", raised)
    yield from motions.move(raised, raised, 0.2)


def drill_lift(motions: Motions) -> Script:
    """Grasp the drill, lift it, hold it."""
    yield from motions.wait(0.5)
    yield from motions.event("start")
    yield from _walk_up(motions)
    yield from _lift(motions)


def drill_lift_obstacle(motions: Motions) -> Script:
    """Walk round the shelf, grasp the drill behind it, lift it, hold it.

    The walk is not recorded: generation plans its own walks, and the seed stays small.
    """
    obstacle, drill = motions.view().objects["obstacle"], motions.view().objects["drill"]
    side = float(np.sign(drill.translation[1] - obstacle.translation[1]))
    x, y = obstacle.translation[:2]
    for ahead in (-0.45, 0.25):
        yield from motions.walk(x + ahead, y + side * 0.95, 0.0, tolerance=0.1)
    yield from _walk_up(motions)
    yield from motions.event("start")
    yield from _lift(motions)


def _lift(motions: Motions) -> Script:
    """Grasp the drill, lift it, hold it to the end."""
    yield from _grasp(motions, "lift", "fist")
    yield from _raise(motions, 0.16, 0.05)
    yield from motions.wait(1.2)
    yield from motions.finish({})


def drill_pick_place(motions: Motions) -> Script:
    """Grasp the drill, lift it, carry it to the other table, put it down there, let go, draw the hand back.

    The walk to the first table is not recorded: generation plans its own walks, and the seed stays small.
    """
    yield from _walk_up(motions)
    yield from motions.event("start")
    yield from _grasp(motions, "pick", "closed")
    yield from _raise(motions, 0.16, 0.14, 0.06)
    table = motions.view().objects["target_table"]
    # The screen is on the table's -x side: the robot comes from the +x side.
    heading = yaw_of(table) + np.pi
    goal = table.act(np.array([0.25, 0.0, ERGO_TABLE_TOP]))
    # What the hand carries makes the last steps longer; from a few centimetres off it reaches as well.
    yield from motions.walk(*_place_for(goal, heading), tolerance=0.08)
    view = motions.view()
    in_hand = view.objects["drill"].actInv(view.effectors[_HAND])
    upright = pose_from_xyyaw(goal[0], goal[1], yaw_of(view.objects["drill"]), goal[2])

    def hand(up: float) -> dict[str, pin.SE3]:
        return {_HAND: pin.SE3(np.eye(3), np.array([0.0, 0.0, up])) * upright * in_hand}

    start = {_HAND: view.effectors[_HAND]}
    yield from motions.move(start, hand(0.10), 1.2)
    yield from motions.event("mark:place", hand(0.10))
    yield from motions.move(hand(0.10), hand(-0.01), 1.6)
    yield from motions.finger({_HAND: "open"}, hand(-0.01), 0.7)
    away = {_HAND: hand(-0.01)[_HAND] * pin.SE3(np.eye(3), np.array([-0.11, -0.09, 0.0]))}
    yield from motions.move(hand(-0.01), away, 1.5)
    yield from motions.event("mark:end", away)
    yield from motions.move(away, away, 0.6)
    yield from motions.finish(away)


def pick_drill_from_holder(motions: Motions) -> Script:
    """Grasp the drill where it hangs, pull it straight out of its slot, lift it, hold it; the walk is not recorded."""
    yield from _walk_up(motions)
    yield from motions.event("start")
    yield from _grasp(motions, "pull_out", "fist", 0.095)
    hand = {_HAND: motions.view().effectors[_HAND]}
    forward = pin.rpy.rpyToMatrix(0.0, 0.0, yaw_of(hand[_HAND]) - _INWARD)[:, 0]
    out = {_HAND: pin.SE3(hand[_HAND].rotation, hand[_HAND].translation - 0.12 * forward)}
    yield from motions.move(hand, out, 1.8)
    yield from _raise(motions, 0.06, 0.03)
    yield from motions.wait(1.2)
    yield from motions.finish({})
