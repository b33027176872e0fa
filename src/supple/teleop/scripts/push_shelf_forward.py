# SPDX-License-Identifier: Apache-2.0
"""The scripted demonstration of PushShelfForward."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from supple.control.path_following import FloorPath
from supple.geometry import xyyaw_of, yaw_of
from supple.tasks.cart import CART_END
from supple.teleop.scripts.motions import Motions, Script

__all__ = ["push_shelf_forward"]

_HANDS = {"left_hand": 1.0, "right_hand": -1.0}
_KNUCKLES = np.array([-0.012, -0.012, 0.0])
"""Front of the right fist in the hand's frame in [m]."""

# Where the fists, backs up, meet the edge of a board: it is as wide as the cart, so that they may move sideways on it.
_APART, _HEIGHT, _INWARD = 0.11, 0.885, 0.35
# The hands stop short of the cart: the first steps carry the robot aside, and hands that touched it would slip off.
_SHORT = 0.05
_BEHIND, _SPEED = 0.44, 0.33
# The end is walked more slowly, so that the cart does not roll on, in [m] and [m/s].
_SLOW_LENGTH, _SLOW = 0.35, 0.1
# How far robot and cart go on at the end in [m]; it does not walk back, for then the hands would let go.
_GOES_ON = 0.12


def push_shelf_forward(motions: Motions) -> Script:
    """Bring the fists behind the cart's end and walk forward with it; the walk up to it is not recorded."""
    cart = motions.view().objects["cart"]
    # The cart's +x end faces the robot.
    x, y = cart.act(np.array([CART_END + _BEHIND, 0.0, 0.0]))[:2]
    yield from motions.walk(x, y, yaw_of(cart) + np.pi)
    yield from motions.event("start")
    rotation = pin.rpy.rpyToMatrix(0.0, 0.0, yaw_of(cart) + np.pi)
    hands = {}
    for name, side in _HANDS.items():
        spot = cart.act(np.array([CART_END + _SHORT, -side * _APART, _HEIGHT]))
        turned = rotation @ pin.rpy.rpyToMatrix(side * 0.5 * np.pi, 0.0, -side * _INWARD)
        hands[name] = pin.SE3(turned, spot - turned @ (_KNUCKLES * [1.0, -side, 1.0]))
    start = dict(motions.view().effectors)
    yield from motions.finger(dict.fromkeys(_HANDS, "fist"), start, 0.5)
    yield from motions.event("mark:reach", start)
    yield from motions.move(start, hands, 1.5)
    yield from motions.move(hands, hands, 0.3)
    yield from motions.event("mark:push")
    begin, target = xyyaw_of(motions.view().state.T_world_base), motions.view().objects["target"].translation
    end = np.array([target[0] - CART_END - _BEHIND + _SHORT - _GOES_ON, target[1], 0.0])
    length = float(np.hypot(*(end - begin)[:2]))
    slower = end + _SLOW_LENGTH / length * (begin - end)
    times = np.cumsum([0.0, (length - _SLOW_LENGTH) / _SPEED, _SLOW_LENGTH / _SLOW])
    yield from motions.follow(FloorPath(np.array([begin, slower, end]), times))
    yield from motions.wait(1.5)
    yield from motions.event("mark:end")
    yield from motions.wait(1.1)
    yield from motions.finish({})
