# SPDX-License-Identifier: Apache-2.0
"""The Dex3 hand's surface: the shapes that touch things, and its nine tactile pads of 3 x 4 taxels."""

from __future__ import annotations

import math

from supple.robots.touch import Capsule, FingerPatch, Patch, PlatePatch, TactilePad

__all__ = ["PALM_CENTRE", "PALM_HALF_SIZE", "dex3_pads", "finger_capsule"]

PALM_CENTRE = (0.085, 0.008, 0.0)
"""Middle of the left palm's box in the wrist yaw link in [m]; y changes sign for the right hand."""

PALM_HALF_SIZE = (0.038, 0.014, 0.036)
"""Half extents of the palm's box in [m]."""

_ROWS, _COLUMNS = 4, 3
# What is left free between a pad and the palm's rim, in [m].
_RIM = 0.002
# The thumb's base stands in the middle of the palm and covers it up to here (x in the wrist yaw link, in [m]).
_THUMB_END = 0.079
_WIDTH_ANGLE, _TIP_ANGLE = math.radians(130.0), math.radians(60.0)
# Measured on the vendor's meshes, above the collision shapes, in [m].
_PALM_COVER, _LINK_COVER, _TIP_COVER = 0.0095, 0.004, 0.001


def finger_capsule(side: str, joint: str) -> Capsule:
    """Return the shape of a finger link in the link's frame (measured on the vendor's meshes).

    Args:
        side: ``"left"`` or ``"right"``.
        joint: Short name of the joint that moves it, e.g. ``"thumb_1"``.
    """
    sign = 1 if side == "left" else -1
    if joint == "thumb_0":
        return Capsule((0.0, -sign * 0.002, 0.0), (0.0, -sign * 0.018, 0.0), 0.010)
    if joint == "thumb_1":
        return Capsule((0.0, -sign * 0.010, 0.0), (0.0, -sign * 0.040, 0.0), 0.010)
    if joint == "thumb_2":
        return Capsule((0.0, -sign * 0.008, 0.0), (0.0, -sign * 0.038, 0.0), 0.009)
    if joint.endswith("_0"):
        return Capsule((0.010, 0.0, 0.0), (0.040, 0.0, 0.0), 0.010)
    return Capsule((0.008, 0.0, 0.0), (0.038, 0.0, 0.0), 0.009)


def _palm_patches(sign: int) -> list[Patch]:
    """Return three strips from the wrist to the fingers: the middle finger's side, between, the index finger's side."""
    low, high = PALM_CENTRE[0] - PALM_HALF_SIZE[0] + _RIM, PALM_CENTRE[0] + PALM_HALF_SIZE[0] - _RIM
    face = sign * (PALM_CENTRE[1] - PALM_HALF_SIZE[1])
    width = 2.0 * (PALM_HALF_SIZE[2] - _RIM) / 3.0
    patches: list[Patch] = []
    for z, begin in ((-width, low), (0.0, _THUMB_END), (width, low)):
        centre = (0.5 * (begin + high), face, z)
        patches.append(PlatePatch(centre, (1.0, 0.0, 0.0), (0.0, -float(sign), 0.0), high - begin, width))
    return patches


def dex3_pads(side: str) -> list[TactilePad]:
    """Return the pads of one hand: three on the palm, two on each finger.

    The vendor's data sheet gives nine arrays of 3 x 4 per hand, two to a finger, and no drawing: the pads here cover
    the palm and the inner sides of the two outer links of each finger of our collision model.
    """
    sign = 1 if side == "left" else -1
    pads = [
        TactilePad(f"{side}_palm_{i}", f"{side}_wrist_yaw_link", f"{side}_palm", patch, _ROWS, _COLUMNS, _PALM_COVER)
        for i, patch in enumerate(_palm_patches(sign))
    ]
    # Fingers close towards the palm's side, the thumb towards the fingers.
    palmar, distal = (0.0, -float(sign), 0.0), (1.0, 0.0, 0.0)
    for finger, links, inner in (("thumb", (1, 2), distal), ("middle", (0, 1), palmar), ("index", (0, 1), palmar)):
        for link, tip_angle in zip(links, (0.0, _TIP_ANGLE), strict=True):
            short = f"{finger}_{link}"
            patch = FingerPatch(finger_capsule(side, short), inner, _WIDTH_ANGLE, tip_angle)
            name, cover = f"{side}_{short}", _TIP_COVER if tip_angle else _LINK_COVER
            pads.append(TactilePad(name, f"{side}_hand_{short}_link", name, patch, _ROWS, _COLUMNS, cover))
    return pads
