# SPDX-License-Identifier: Apache-2.0
"""Case 9: CameraInfo with only one of K and P filled in is used; with neither the camera is uncalibrated."""

from __future__ import annotations

import pytest

from supple.errors import CalibrationError
from supple.perception.frames import Intrinsics

FX, FY, CX, CY = 615.0, 616.0, 322.0, 241.0
K = [FX, 0.0, CX, 0.0, FY, CY, 0.0, 0.0, 1.0]
P = [FX, 0.0, CX, 0.0, 0.0, FY, CY, 0.0, 0.0, 0.0, 1.0, 0.0]
NO_K = {
    "zero": [0.0] * 9,
    "only the last one": [0.0] * 8 + [1.0],
    "no fx": [0.0, *K[1:]],
    "no fy": [*K[:4], 0.0, *K[5:]],
    "nan": [float("nan"), *K[1:]],
    "negative": [-FX, *K[1:]],
}
NO_P = {"zero": [0.0] * 12, "no fx": [0.0, *P[1:]], "no fy": [*P[:5], 0.0, *P[6:]], "inf": [float("inf"), *P[1:]]}


def read(k, p, rectified):
    return Intrinsics.from_camera_info(k, p, 640, 480, "plumb_bob", [0.1, 0.0, 0.0, 0.0, 0.0], rectified)


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("k", NO_K.values(), ids=NO_K)
def test_p_is_used_where_k_is_not_filled_in(k, rectified):
    camera = read(k, P, rectified)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (FX, FY, CX, CY)
    # P describes the image without its distortion.
    assert camera.distortion == ()


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("p", NO_P.values(), ids=NO_P)
def test_k_is_used_where_p_is_not_filled_in(p, rectified):
    camera = read(K, p, rectified)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (FX, FY, CX, CY)


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("k", NO_K.values(), ids=NO_K)
@pytest.mark.parametrize("p", NO_P.values(), ids=NO_P)
def test_with_neither_the_camera_is_uncalibrated(k, p, rectified):
    with pytest.raises(CalibrationError, match=r"^camera_info.k: uncalibrated"):
        read(k, p, rectified)
