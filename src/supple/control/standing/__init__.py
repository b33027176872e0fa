# SPDX-License-Identifier: Apache-2.0
"""Standing on both feet with height: a whole-body balance controller and its hand-over to the walking policy."""

from supple.control.standing.balance_qp import BalanceQP, Solution
from supple.control.standing.controller import HEIGHT_RANGE, StandingController
from supple.control.standing.hand_over import WALKING_HEIGHT_TOLERANCE, HandOver, LegMode
from supple.control.standing.references import BalanceReference, HandReference, SmoothReference, SmoothRotation
from supple.control.standing.support import Support

__all__ = [
    "HEIGHT_RANGE",
    "WALKING_HEIGHT_TOLERANCE",
    "BalanceQP",
    "BalanceReference",
    "HandOver",
    "HandReference",
    "LegMode",
    "SmoothReference",
    "SmoothRotation",
    "Solution",
    "StandingController",
    "Support",
]
