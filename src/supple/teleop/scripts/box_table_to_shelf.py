# SPDX-License-Identifier: Apache-2.0
"""The scripted demonstration of BoxTableToShelf."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw, yaw_of
from supple.tasks.box_table_to_shelf import TARGET_BOARD
from supple.teleop.scripts.motions import Motions, Script

__all__ = ["box_table_to_shelf"]

_HANDS = (("left_hand", 1.0), ("right_hand", -1.0))
_INWARD, _HALF_WIDTH, _GRIP_HEIGHT, _PRESSED = 0.52, 0.1395, 0.062, -0.032
# Heights of the base in [m]: a little below walking height, where the standing controller takes over; while the box is
# taken; walking; while it is put down.
_STANDING, _READY, _LOW, _WALKING, _PUT_DOWN = 0.72, 0.70, 0.60, 0.765, 0.62


def box_table_to_shelf(motions: Motions) -> Script:
    """Take the box with bent knees, rise with it, turn to the shelf, put the box down, let go, draw the hands back.

    The first step back from the table is not recorded.
    """
    yield from _pick(motions)
    yield from _place(motions)


def _pick(motions: Motions) -> Script:
    distance, rise, pulled = 0.36, 0.17, 0.09
    box = motions.view().objects["box"]
    heading = yaw_of(box) - np.pi
    ahead = box.translation[:2] - distance * np.array([np.cos(heading), np.sin(heading)])
    yield from motions.walk(ahead[0], ahead[1], heading)
    yield from motions.event("start")
    yield from motions.wait(0.1)
    yield from motions.squat(_READY, 0.2)
    x, y, z = motions.view().objects["box"].translation
    frame = pose_from_xyyaw(x, y, heading, z)

    def hands(gap: float, lift: float = 0.0, back: float = 0.0) -> dict[str, pin.SE3]:
        poses = {}
        for name, sign in _HANDS:
            offset = np.array([-back, sign * (_HALF_WIDTH + gap), _GRIP_HEIGHT + lift])
            poses[name] = frame * pin.SE3(pin.utils.rotate("z", -sign * _INWARD), offset)
        return poses

    start, above, before = dict(motions.view().effectors), hands(0.11, 0.22, 0.10), hands(0.11, 0.12, 0.06)
    beside, held, lifted = hands(0.09), hands(_PRESSED), hands(_PRESSED, rise, pulled)
    yield from motions.move(start, above, 1.1)
    yield from motions.event("mark:pick", above)
    yield from motions.move(above, before, 1.5, (_READY, _LOW))
    yield from motions.move(before, before, 0.3)
    yield from motions.move(before, beside, 0.7)
    yield from motions.move(beside, hands(0.02), 0.6)
    yield from motions.move(hands(0.02), held, 0.7)
    yield from motions.move(held, held, 0.3)
    yield from motions.move(held, lifted, 2.3, (_LOW, _WALKING))
    yield from motions.move(lifted, lifted, 0.4)
    yield from motions.event("mark:end", lifted)


def _place(motions: Motions) -> Script:
    distance, inside, aside = 0.46, 0.12, 0.09
    shelf = motions.view().objects["shelf"]
    heading = yaw_of(shelf) + np.pi
    goal = shelf.act(np.array([inside, aside, TARGET_BOARD]))
    place = goal[:2] - distance * np.array([np.cos(heading), np.sin(heading)])
    yield from motions.walk(place[0], place[1], heading, tolerance=0.10, yaw_tolerance=0.12)
    yield from motions.wait(0.3)
    yield from motions.squat(_STANDING, 0.2)
    view = motions.view()
    box, start = view.objects["box"], dict(view.effectors)
    in_hands = {name: box.actInv(pose) for name, pose in start.items()}
    # The box keeps the way round in which the hands hold it.
    on_board = pose_from_xyyaw(goal[0], goal[1], yaw_of(box), goal[2])

    def hands(up: float, back: float = 0.0, apart: float = 0.0) -> dict[str, pin.SE3]:
        forward = np.array([np.cos(heading), np.sin(heading), 0.0])
        left = np.array([-forward[1], forward[0], 0.0])
        poses = {}
        for name, sign in _HANDS:
            pose = on_board * in_hands[name]
            shift = sign * apart * left - back * forward + [0.0, 0.0, up]
            poses[name] = pin.SE3(pose.rotation, pose.translation + shift)
        return poses

    near, over, down = hands(0.09, 0.08), hands(0.05), hands(-0.005)
    free, away = hands(0.0, apart=0.08), hands(0.02, 0.10, 0.08)
    yield from motions.event("mark:place", start)
    yield from motions.move(start, near, 1.1)
    yield from motions.move(near, over, 1.3, (_STANDING, _PUT_DOWN))
    yield from motions.move(over, over, 0.3)
    yield from motions.move(over, down, 0.9)
    yield from motions.move(down, down, 0.2)
    yield from motions.move(down, free, 0.8)
    yield from motions.move(free, away, 1.0)
    yield from motions.event("mark:end", away)
    yield from motions.move(away, away, 0.2)
    yield from motions.finish(away)
