# SPDX-License-Identifier: Apache-2.0
"""A detector's boxes become points of what is in them; a box that makes no sense is named, and the next one works."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from eye import BOXES, DEPTH, HEIGHT, MS, WIDTH, Eye, Picture, check_plate

from supple.nodes.conversion import header


@pytest.fixture(scope="module")
def eye(start, graph) -> Eye:
    camera = {"objects": "[plate]", "rate": 1000, "keypoints": False, "patience": 0.1}
    node = start("point_extractor", mask_source="detections", least_score=0.3, **camera)
    return Eye(graph, node, BOXES)


def test_the_plate_is_cut_out_of_its_box(eye):
    check_plate(*eye.cloud_of(eye.picture()))


def test_the_age_of_a_mask_is_that_of_its_boxes(eye):
    picture = eye.picture()
    picture.messages[BOXES].header = header(picture.stamp_ns - 10 * MS)
    _, quality = eye.cloud_of(picture)
    age = dict(zip(quality.input, quality.age, strict=True))
    assert age["mask"] - age["color"] == pytest.approx(0.010, abs=1e-6)


def test_other_things_in_the_picture_are_left_alone(eye):
    picture = eye.picture()
    boxes = picture.messages[BOXES]
    boxes.name, boxes.score = ["cup", "plate", "plate"], [1.0, 0.4, 0.9]
    boxes.left, boxes.top = [30.0, 0.0, 26.0], [20.0, 0.0, 17.0]
    boxes.right, boxes.bottom = [60.0, 20.0, 73.0], [40.0, 15.0, 53.0]
    check_plate(*eye.cloud_of(picture))


def test_a_box_that_is_not_certain_enough_is_left_out(eye):
    picture = eye.picture()
    picture.messages[BOXES].score = [0.29]
    cloud, quality = eye.cloud_of(picture)
    assert cloud.width == 0
    # The tracker knows that it was there just now.
    assert list(quality.status) == ["occluded"]


def changed(**fields: list[float] | int) -> Callable[[Picture], None]:
    def change(picture: Picture) -> None:
        for name, value in fields.items():
            setattr(picture.messages[BOXES], name, value)

    return change


def stale(picture: Picture) -> None:
    picture.messages[BOXES].header = header(picture.stamp_ns - 40 * MS)


def flat(picture: Picture) -> None:
    picture.image(DEPTH, "32FC1", np.full((HEIGHT, WIDTH), 2.0, np.float32))


BAD = {
    "stale": (stale, "header.stamp", "of no picture; the nearest depth is 40.0 ms away"),
    "of a picture of another size": (
        changed(width=2 * WIDTH, height=2 * HEIGHT),
        "width",
        "boxes in 192 x 144 px, but colour has 96 x 72",
    ),
    "NaN": (changed(left=[math.nan]), "left", "nan px of 'plate', expected a finite number"),
    "infinite": (changed(bottom=[math.inf]), "bottom", "inf px of 'plate', expected a finite number"),
    "outside the picture": (
        changed(left=[200.0], right=[240.0]),
        "left",
        "the box of 'plate' is outside the picture of 96 x 72 px",
    ),
    "without width": (changed(right=[26.0]), "right", "from column 26 to 26 px has no width"),
    "upside down": (changed(top=[53.0], bottom=[17.0]), "bottom", "from row 53 to 17 px has no height"),
    "certain beyond 1": (changed(score=[90.0]), "score", "90 of 'plate', expected 0 to 1"),
    "arrays of different lengths": (changed(top=[17.0, 18.0]), "top", "2 values for 1 names"),
    "round nothing": (flat, "name", "nothing stands out in the middle of the box of 'plate'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_box_of_no_use_is_named_once_and_the_next_one_works(eye, name):
    change, place, text = BAD[name]

    def spoilt() -> Picture:
        picture = eye.picture()
        change(picture)
        return picture

    lines = eye.provoke(text, spoilt)
    check_plate(*eye.cloud_of(eye.picture()))
    assert len(lines) == 1, "four pictures, one line"
    assert f"/{BOXES}: {place}: " in lines[0]
    assert "Traceback" not in eye.node.output()
