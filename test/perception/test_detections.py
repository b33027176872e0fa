# SPDX-License-Identifier: Apache-2.0
"""Masks from boxes, against the simulator's: what is in the box without what is behind or beside it."""

from __future__ import annotations

import numpy as np
import pytest

from supple.errors import FrameError
from supple.perception.detections import Detection, DetectionMasks
from supple.perception.frames import RgbdFrame

SIZE = (640, 480)
INSIDE = (10.0, 10.0, 90.0, 80.0)


def box_round(truth: np.ndarray, margin: float = 8.0) -> tuple[float, float, float, float]:
    """Return a box that is a little too large, as detectors draw them."""
    rows, columns = np.flatnonzero(truth.any(axis=1)), np.flatnonzero(truth.any(axis=0))
    return columns[0] - margin, rows[0] - margin, columns[-1] + margin, rows[-1] + margin


def check(mask: np.ndarray, truth: np.ndarray, precision: float = 0.95, recall: float = 0.9) -> None:
    both = np.sum(mask & truth)
    assert both / mask.sum() >= precision
    assert both / truth.sum() >= recall


@pytest.mark.parametrize("seed", range(4))
def test_what_is_in_a_box_is_found_without_a_word_about_its_looks(tabletop, seed):
    rng = np.random.default_rng(seed)
    names = ("box", "red", "big_red", "can")
    for name, place in zip(names, [(0.55, -0.3), (0.6, 0.0), (0.85, -0.1), (0.6, 0.3)], strict=True):
        tabletop.put(name, *(place + rng.uniform(-0.03, 0.03, 2)), rng.uniform(-np.pi, np.pi))
    frame = tabletop.frame(rng if seed % 2 else None)
    truth = {name: tabletop.truth(name) for name in names}
    source = DetectionMasks([Detection(name, 0.9, box_round(truth[name])) for name in names], SIZE)
    masks = source.masks(frame)
    assert not source.refused
    assert sum(mask.astype(int) for mask in masks.values()).max() == 1
    for name in names:
        check(masks[name], truth[name], 0.93, 0.85)


def test_a_face_larger_than_its_share_of_the_picture_is_no_background(tabletop):
    """The top of the beam is as long as a plane that counts, but all of it is in the box."""
    tabletop.put("beam", 0.7, 0.0, 1.5)
    frame, truth = tabletop.frame(), tabletop.truth("beam")
    masks = DetectionMasks([Detection("beam", 1.0, box_round(truth))], SIZE).masks(frame)
    check(masks["beam"], truth)


def test_a_thing_beside_the_object_is_not_part_of_it(tabletop):
    tabletop.put("box", 0.6, 0.0)
    tabletop.put("can", 0.6, 0.2)
    frame, truth = tabletop.frame(), tabletop.truth("box")
    left, top, right, bottom = box_round(truth)
    mask = DetectionMasks([Detection("box", 1.0, (left - 60.0, top, right, bottom))], SIZE).masks(frame)["box"]
    check(mask, truth)
    assert not np.any(mask & tabletop.truth("can"))


def test_nothing_reaches_out_of_its_box(tabletop):
    tabletop.put("box", 0.6, 0.0)
    frame, truth = tabletop.frame(), tabletop.truth("box")
    left, top, right, bottom = box_round(truth, 0.0)
    middle = 0.5 * (left + right)
    mask = DetectionMasks([Detection("box", 1.0, (left, top, middle, bottom))], SIZE).masks(frame)["box"]
    columns = np.flatnonzero(mask.any(axis=0))
    assert left <= columns[0] <= columns[-1] <= middle


def test_the_more_certain_box_of_a_name_counts_and_pixels_are_given_once(tabletop):
    tabletop.put("box", 0.6, 0.15)
    tabletop.put("can", 0.6, -0.2)
    frame, box, can = tabletop.frame(), tabletop.truth("box"), tabletop.truth("can")
    rows = [
        Detection("thing", 0.4, box_round(box)),
        Detection("thing", 0.9, box_round(can)),
        Detection("same", 0.8, box_round(can)),
    ]
    source = DetectionMasks(rows, SIZE)
    masks = source.masks(frame)
    check(masks["thing"], can)
    assert "same" not in masks
    assert [error.problem for error in source.refused] == ["nothing stands out in the middle of the box of 'same'"]


def test_a_box_round_the_bare_table_or_without_depth_has_no_mask(tabletop):
    tabletop.put("can", 0.6, 0.3)
    frame = tabletop.frame()
    source = DetectionMasks([Detection("cup", 1.0, (280.0, 200.0, 360.0, 280.0))], SIZE)
    assert source.masks(frame) == {}
    assert [(error.source, error.field) for error in source.refused] == [("detections", "name")]
    blind = RgbdFrame(0, frame.rgb, np.full_like(frame.depth, np.nan), frame.intrinsics)
    assert source.masks(blind) == {}


def test_no_box_is_no_error(tabletop):
    source = DetectionMasks([], SIZE)
    assert source.masks(tabletop.frame()) == {}
    assert not source.refused


def test_boxes_of_a_picture_of_another_size_are_refused(tabletop):
    with pytest.raises(FrameError, match=r"detections\.width: boxes in 1280 x 720 px, but colour has 640 x 480"):
        DetectionMasks([Detection("box", 1.0, INSIDE)], (1280, 720)).masks(tabletop.frame())


@pytest.mark.parametrize(
    ("score", "box", "field", "said"),
    [
        (np.nan, INSIDE, "score", "nan of 'cup'"),
        (-0.1, INSIDE, "score", "expected 0 to 1"),
        (1.0, (np.nan, 10.0, 90.0, 80.0), "left", "nan px of 'cup'"),
        (1.0, (10.0, 10.0, 90.0, np.inf), "bottom", "inf px of 'cup'"),
        (1.0, (90.0, 10.0, 90.0, 80.0), "right", "no width"),
        (1.0, (10.0, 80.0, 90.0, 10.0), "bottom", "no height"),
        (1.0, (640.0, 10.0, 700.0, 80.0), "left", "outside the picture of 640 x 480 px"),
        (1.0, (10.0, 480.0, 90.0, 500.0), "top", "outside"),
        (1.0, (-50.0, 10.0, -1.0, 80.0), "right", "outside"),
        (1.0, (10.0, -50.0, 90.0, -1.0), "bottom", "outside"),
    ],
)
def test_a_box_that_makes_no_sense_is_named_and_the_others_are_used(tabletop, score, box, field, said):
    tabletop.put("can", 0.6, 0.0)
    frame, truth = tabletop.frame(), tabletop.truth("can")
    source = DetectionMasks([Detection("cup", score, box), Detection("can", 0.7, box_round(truth))], SIZE)
    check(source.masks(frame)["can"], truth)
    (error,) = source.refused
    assert (error.source, error.field) == ("detections", field)
    assert said in error.problem
