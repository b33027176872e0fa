# SPDX-License-Identifier: Apache-2.0
"""Masks: checked against their frame, and read from label images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import FrameError
from supple.perception.frames import Intrinsics, RgbdFrame
from supple.perception.masks import LabelMasks, validate_masks

HEIGHT, WIDTH = 6, 8
FRAME = RgbdFrame(
    0,
    np.zeros((HEIGHT, WIDTH, 3), np.uint8),
    np.ones((HEIGHT, WIDTH), np.float32),
    Intrinsics(10.0, 10.0, 4.0, 3.0, WIDTH, HEIGHT),
)


def mask(*pixels: tuple[int, int]) -> np.ndarray:
    result = np.zeros((HEIGHT, WIDTH), bool)
    for pixel in pixels:
        result[pixel] = True
    return result


def test_masks_that_fit_are_kept_and_empty_ones_are_objects_not_seen():
    masks = {"cup": mask((1, 1), (1, 2)), "lid": mask(), "box": mask((5, 7))}
    kept = validate_masks(masks, FRAME)
    assert list(kept) == ["cup", "box"]
    assert all(kept[name] is masks[name] for name in kept)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.zeros((HEIGHT, WIDTH), np.uint8), "expected bool pixels, got uint8"),
        (np.zeros((HEIGHT, WIDTH + 1), bool), r"9 x 6 pixels, but colour has 8 x 6"),
        (np.zeros((WIDTH, HEIGHT), bool), r"6 x 8 pixels, but colour has 8 x 6"),
        (np.zeros((0, 0), bool), r"0 x 0 pixels"),
        (np.zeros((HEIGHT, WIDTH, 1), bool), r"1 x 8 x 6 pixels"),
        ([[True]], "expected bool pixels, got list"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused_by_its_objects_name(wrong, said):
    with pytest.raises(FrameError, match=said) as raised:
        validate_masks({"box": mask((0, 0)), "cup": wrong}, FRAME)
    assert (raised.value.source, raised.value.field) == ("mask", "cup")


def test_a_pixel_on_two_objects_is_refused():
    with pytest.raises(FrameError, match=r"mask\.lid: shares 2 pixels with cup") as raised:
        validate_masks({"cup": mask((1, 1), (1, 2)), "box": mask((4, 4)), "lid": mask((1, 1), (1, 2), (0, 0))}, FRAME)
    assert raised.value.field == "lid"


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 7, 300]), min_size=HEIGHT * WIDTH, max_size=HEIGHT * WIDTH))
def test_each_pixel_belongs_to_the_object_that_its_label_stands_for(values):
    image = np.array(values, np.uint16).reshape(HEIGHT, WIDTH)
    masks = LabelMasks(image, {1: "cup", 2: "box", 300: "cup"}).masks(FRAME)
    expected = {"cup": np.isin(image, [1, 300]), "box": image == 2}
    assert set(masks) == {name for name, pixels in expected.items() if pixels.any()}
    assert all(np.array_equal(masks[name], expected[name]) for name in masks)
    assert set(validate_masks(masks, FRAME)) == set(masks)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_any_integers_are_labels(dtype):
    image = np.zeros((HEIGHT, WIDTH), dtype)
    image[2, 3] = 5
    assert np.array_equal(LabelMasks(image, {5: "cup"}).masks(FRAME)["cup"], mask((2, 3)))


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((HEIGHT, WIDTH), np.float32), "got float32 of shape"),
        (np.zeros((HEIGHT, WIDTH, 3), np.uint8), r"got uint8 of shape \(6, 8, 3\)"),
        ("labels", "got str"),
    ],
)
def test_what_is_no_label_image_is_refused(image, said):
    with pytest.raises(FrameError, match=said):
        LabelMasks(image, {1: "cup"})


def test_a_label_image_of_another_size_is_refused():
    with pytest.raises(FrameError, match=r"mask\.size: 16 x 6 pixels, but colour has 8 x 6"):
        LabelMasks(np.zeros((HEIGHT, 2 * WIDTH), np.uint8), {1: "cup"}).masks(FRAME)
