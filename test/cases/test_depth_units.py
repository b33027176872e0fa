# SPDX-License-Identifier: Apache-2.0
"""Case 11: 16UC1 whose unit is 0.1 mm is read with the unit that is given; nothing is guessed."""

from __future__ import annotations

import numpy as np
import pytest

from supple.errors import FrameError
from supple.perception.frames import depth_in_metres

RAW = np.full((64, 64), 7500, np.uint16)


@pytest.mark.parametrize(("unit", "metres"), [(1e-4, 0.75), (0.000125, 0.9375), (None, 7.5)])
def test_the_unit_that_is_given_is_used(unit, metres):
    depth = depth_in_metres(RAW, "16UC1", unit)
    assert depth == pytest.approx(np.full((64, 64), metres), rel=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_a_unit_that_no_scene_fits_is_refused_with_its_value(unit):
    with pytest.raises(FrameError, match=f"16UC1 in units of {unit:g} m"):
        depth_in_metres(RAW, "16UC1", unit)
