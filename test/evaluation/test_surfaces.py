# SPDX-License-Identifier: Apache-2.0
"""The true surface is that of the shapes: distances by geometry, samples on it and nowhere else."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from supple.errors import SettingError, UnknownNameError
from supple.evaluation.surfaces import TrueSurface

SCENE = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  .2 0 0  0 .2 0  .2 .2 0  0 0 .2  0 .2 .2"/>
  </asset>
  <worldbody>
    <body name="box" pos="1 0 .5" euler="0 0 30">
      <geom type="box" size=".1 .2 .3"/>
      <geom type="box" size=".11 .21 .01" pos="0 0 .3"/>
      <geom type="sphere" size="1" group="3"/>
      <geom type="sphere" size="1" rgba="1 1 1 0"/>
    </body>
    <body name="ball">
      <geom type="sphere" size=".2"/>
      <body name="tail"><geom type="capsule" size=".05 .1" pos="0 0 .6"/></body>
    </body>
    <body name="can" pos="0 1 0"><geom type="cylinder" size=".1 .2"/></body>
    <body name="wedge" pos="2 1 0" euler="0 0 45"><geom type="mesh" mesh="wedge"/></body>
    <body name="egg"><geom type="ellipsoid" size=".1 .2 .3"/></body>
    <body name="shadow"><geom type="sphere" size=".1" group="3"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def scene():
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("body", ["box", "ball", "can", "wedge"])
def test_samples_lie_on_the_surface_and_normals_lead_away_from_it(scene, body):
    surface = TrueSurface(*scene, body)
    samples = surface.sample(4000)
    assert len(samples.points) > 3000
    # Round shapes are sampled on a fine polyhedron.
    assert surface.distance(samples.points).max() < 1e-3
    assert np.linalg.norm(samples.normals, axis=1) == pytest.approx(1.0)
    away = surface.distance(samples.points + 0.02 * samples.normals)
    # Only in the corner below the lid does the way out lead past another face.
    assert (np.abs(away - 0.02) < 2e-3).mean() > 0.9
    assert away.max() < 0.022


def test_area_is_that_of_what_is_drawn_and_not_hidden(scene):
    samples = TrueSurface(*scene, "box").sample(40_000)
    # The shell ends where the lid begins; of the lid's bottom a rim is left.
    shell = 4 * 0.1 * 0.2 + 4 * (0.1 + 0.2) * 0.59
    lid = 4 * 0.11 * 0.21 + 4 * (0.11 + 0.21) * 0.02 + 4 * (0.11 * 0.21 - 0.1 * 0.2)
    expected = shell + lid
    assert samples.area * len(samples.points) == pytest.approx(expected, rel=0.02)
    assert not ((np.abs(samples.points[:, 2] - 0.8) < 1e-6) & (samples.normals[:, 2] > 0.9)).any()


def test_distance_is_the_nearest_of_all_parts(scene):
    surface = TrueSurface(*scene, "ball")
    points = np.array([[0.3, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.85], [0.1, 0.0, 0.6]])
    assert surface.distance(points) == pytest.approx([0.1, 0.2, 0.1, 0.05])


def test_samples_follow_the_body(scene):
    model, _ = scene
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    surface = TrueSurface(model, data, "can")
    before = surface.sample(500).points
    data.geom_xpos[model.body("can").geomadr[0]] += [0.0, 0.0, 1.0]
    assert surface.sample(500).points == pytest.approx(before + np.array([0.0, 0.0, 1.0]))


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ("egg", SettingError, "body 'egg': the surface of a mjGEOM_ELLIPSOID is not known"),
        ("shadow", SettingError, "nothing of it is drawn"),
        ("bal", UnknownNameError, "did you mean 'ball'"),
    ],
)
def test_what_has_no_known_surface_is_refused(scene, body, error, said):
    with pytest.raises(error, match=said):
        TrueSurface(*scene, body)
