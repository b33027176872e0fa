# SPDX-License-Identifier: Apache-2.0
"""Intrinsics from CameraInfo, depth in metres, and frames whose parts do not fit one another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from supple.errors import CalibrationError, FrameError
from supple.perception.frames import PLAUSIBLE_DEPTH, Intrinsics, RgbdFrame, depth_in_metres

K = [600.0, 0.0, 320.0, 0.0, 610.0, 240.0, 0.0, 0.0, 1.0]
P = [580.0, 0.0, 318.0, 0.0, 0.0, 590.0, 238.0, 0.0, 0.0, 0.0, 1.0, 0.0]
BENT = (0.1, -0.2, 0.001, 0.002, 0.05)
CAMERA = Intrinsics(600.0, 600.0, 4.0, 3.0, 8, 6)


def info(k=K, p=P, **changes) -> Intrinsics:
    return Intrinsics.from_camera_info(k, p, **({"width": 640, "height": 480} | changes))


def test_a_raw_image_is_described_by_k_and_d():
    camera = info(distortion_model="plumb_bob", d=BENT)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (600.0, 610.0, 320.0, 240.0)
    assert camera.distortion == BENT
    assert info(np.reshape(K, (3, 3)), np.reshape(P, (3, 4))) == info()


def test_a_rectified_image_is_described_by_p_alone():
    camera = info(distortion_model="plumb_bob", d=BENT, rectified=True)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (580.0, 590.0, 318.0, 238.0)
    assert camera.distortion == ()
    # Where a driver leaves P empty, K is all there is; the image is still without distortion.
    assert info(p=[0.0] * 12, distortion_model="plumb_bob", d=BENT, rectified=True).distortion == ()


@pytest.mark.parametrize("d", [(), (0.0,) * 5])
def test_no_distortion_is_none_whatever_its_name(d):
    assert info(distortion_model="inverse_brown", d=d) == info()


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"distortion_model": "kannala", "d": BENT}, "distortion_model", "'kannala' (available: equidistant"),
        ({"distortion_model": "plumb_bob", "d": (0.1, 0.2, 0.3)}, "d", "4 or 5 coefficients, got 3"),
        ({"distortion_model": "plumb_bob", "d": (np.nan,) * 5}, "k", "finite"),
        ({"width": 320, "height": 240}, "k", "(320, 240) px lies outside the image of 320 x 240"),
        ({"width": 0, "height": 0}, "width", "0 x 0"),
        ({"k": [1e-9, *K[1:]]}, "k", "no camera sees 180 deg: fx is 1e-09 px for 640 pixels"),
        ({"k": K[:8]}, "k", "expected 9 numbers, got 8"),
        ({"p": [*P[:3], -30.0, *P[4:]], "rectified": True}, "p", "second camera of a stereo pair"),
    ],
)
def test_what_cannot_be_right_is_named(change, field, said):
    with pytest.raises(CalibrationError) as caught:
        info(**change)
    assert (caught.value.source, caught.value.field) == ("camera_info", field)
    assert said in str(caught.value)


@given(arrays.arrays(np.uint16, (6, 8), elements=st.integers(100, 20000) | st.just(0)), st.sampled_from([1e-3, 5e-4]))
def test_16uc1_is_scaled_and_zero_is_invalid(raw, unit):
    depth = depth_in_metres(raw, "16UC1", unit)
    assert depth.dtype == np.float32
    assert np.array_equal(np.isnan(depth), raw == 0)
    np.testing.assert_allclose(depth[raw > 0], raw[raw > 0] * unit, rtol=1e-6)


def test_16uc1_is_in_millimetres_unless_said_otherwise():
    raw = np.full((6, 8), 1500, np.uint16)
    assert depth_in_metres(raw, "16UC1")[0, 0] == pytest.approx(1.5)
    assert depth_in_metres(raw.astype(">u2"), "16UC1")[0, 0] == pytest.approx(1.5)


@given(arrays.arrays(np.float32, (6, 8), elements=st.floats(0.125, 30.0, width=32)), st.data())
def test_32fc1_keeps_its_metres_and_loses_what_is_no_depth(depth, data):
    holes = data.draw(arrays.arrays(np.bool_, depth.shape))
    given_ = depth.copy()
    given_[holes] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0]))
    untouched = given_.copy()
    found = depth_in_metres(given_, "32FC1")
    assert np.array_equal(found, np.where(holes, np.nan, depth).astype(np.float32), equal_nan=True)
    assert np.array_equal(given_, untouched, equal_nan=True)


def test_a_blind_picture_has_no_depth_and_no_wrong_unit():
    assert np.isnan(depth_in_metres(np.zeros((6, 8), np.uint16), "16UC1")).all()
    assert np.isnan(depth_in_metres(np.full((6, 8), np.inf, np.float32), "32FC1")).all()


@pytest.mark.parametrize("metres", [0.06, 0.5, 30.0])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_unit_off_by_1000_is_found_at_every_distance(metres, factor):
    depth = np.full((64, 64), metres, np.float32)
    with pytest.raises(FrameError, match="wrong by 1000") as caught:
        depth_in_metres(depth, "32FC1", unit=factor)
    assert (caught.value.source, caught.value.field) == ("depth", "unit")
    assert f"{PLAUSIBLE_DEPTH[0]:g}" in str(caught.value)
    assert depth_in_metres(depth, "32FC1")[0, 0] == np.float32(metres)


@pytest.mark.parametrize(
    ("image", "encoding", "unit", "field", "said"),
    [
        (np.ones((6, 8), np.float64), "64FC1", None, "encoding", "'64FC1' (available: 16UC1, 32FC1)"),
        (np.ones((6, 8), np.float32), "16UC1", None, "encoding", "expected uint16 for 16UC1, got float32"),
        (np.ones((6, 8, 3), np.float32), "32FC1", None, "shape", "(6, 8, 3)"),
        (np.ones((0, 8), np.float32), "32FC1", None, "size", "without pixels"),
        ([[1.0]], "32FC1", None, "data", "list"),
        (np.ones((6, 8), np.float32), "32FC1", 0.0, "unit", "positive"),
        (np.ones((6, 8), np.float32), "32FC1", np.nan, "unit", "positive"),
    ],
)
def test_depth_that_is_none_is_refused(image, encoding, unit, field, said):
    with pytest.raises(FrameError) as caught:
        depth_in_metres(image, encoding, unit)
    assert (caught.value.source, caught.value.field) == ("depth", field)
    assert said in str(caught.value)


def frame(**changes) -> RgbdFrame:
    parts = {
        "stamp_ns": 5,
        "rgb": np.zeros((6, 8, 3), np.uint8),
        "depth": np.ones((6, 8), np.float32),
        "intrinsics": CAMERA,
    }
    return RgbdFrame(**(parts | changes))


def test_a_frame_whose_parts_fit():
    assert frame().shape == (6, 8)


@pytest.mark.parametrize(
    ("change", "error", "source", "field", "said"),
    [
        ({"rgb": np.zeros((6, 8), np.uint8)}, FrameError, "color", "shape", "(6, 8)"),
        ({"rgb": np.zeros((6, 8, 4), np.uint8)}, FrameError, "color", "encoding", "3 channels (rgb8), got 4"),
        ({"rgb": np.zeros((6, 8, 3))}, FrameError, "color", "encoding", "expected uint8 for rgb8, got float64"),
        ({"rgb": np.zeros((0, 8, 3), np.uint8)}, FrameError, "color", "size", "without pixels"),
        ({"depth": np.ones((3, 4), np.float32)}, FrameError, "depth", "size", "4 x 3 pixels, but colour has 8 x 6"),
        ({"depth": np.ones((6, 8))}, FrameError, "depth", "encoding", "float64"),
        (
            {"rgb": np.zeros((3, 4, 3), np.uint8)},
            CalibrationError,
            "camera_info",
            "width",
            "for 8 x 6 pixels, but the colour image has 4 x 3",
        ),
    ],
)
def test_a_frame_whose_parts_do_not_fit_names_which(change, error, source, field, said):
    with pytest.raises(error) as caught:
        frame(**change)
    assert (caught.value.source, caught.value.field) == (source, field)
    assert said in str(caught.value)
