# SPDX-License-Identifier: Apache-2.0
"""What is written is what is read, and a file that holds no pose is refused by field."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import ExtrinsicsError
from supple.geometry import pose_error
from supple.perception.extrinsics import CameraExtrinsics, Residual

RESIDUAL = Residual(rms_px=0.21, max_px=0.8, translation_std=4e-4, rotation_std=2e-3, views=14, points=330)


def extrinsics(pose: pin.SE3 | None = None) -> CameraExtrinsics:
    return CameraExtrinsics.of(
        pose or pin.SE3(pin.exp3(np.array([0.3, -1.0, 0.2])), np.array([0.06, 0.02, 0.43])),
        camera="camera_color_optical_frame",
        parent="torso_link",
        date="2026-03-01T10:00:00+00:00",
        method="board on right_wrist_yaw_link",
        residual=RESIDUAL,
        intrinsics={"fx": 615.5, "fy": 615.5, "cx": 320.1, "cy": 240.2},
        source="session_3",
        versions={"supple": "0.1.0"},
    )


@settings(deadline=None)
@given(turn=st.tuples(*[st.floats(-3.0, 3.0)] * 3), place=st.tuples(*[st.floats(-5.0, 5.0)] * 3))
def test_file_keeps_the_pose(tmp_path_factory, turn, place):
    pose = pin.SE3(pin.exp3(np.array(turn)), np.array(place))
    path = tmp_path_factory.mktemp("extrinsics") / "camera.yaml"
    path.write_text(extrinsics(pose).yaml(), encoding="utf-8")
    found = CameraExtrinsics.read(path)
    distance, angle = pose_error(found.T_parent_camera, pose)
    assert distance < 1e-6
    assert angle < 1e-6
    assert found.residual == RESIDUAL
    assert (found.camera, found.parent, found.source) == ("camera_color_optical_frame", "torso_link", "session_3")


def test_date_without_quotes_is_a_date(tmp_path):
    plain = yaml.safe_load(extrinsics().yaml())
    path = tmp_path / "camera.yaml"
    path.write_text(yaml.safe_dump(plain).replace("'2026-03-01T10:00:00+00:00'", "2026-03-01"))
    assert CameraExtrinsics.read(path).date == "2026-03-01"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"quaternion": [0.0, 0.0, 0.0, 0.0]}, "quaternion: .*norm 0"),
        ({"quaternion": [0.0, 0.0, 0.0, 1.05]}, "quaternion: .*norm 1.05"),
        ({"quaternion": [0.0, 0.0, float("nan"), 1.0]}, "quaternion"),
        ({"translation": [0.0, 0.0]}, "translation"),
        ({"translation": None}, "translation"),
        ({"parnt": "torso_link"}, "parnt: unknown field; did you mean 'parent'"),
        ({"residual": {"rms_px": 0.1}}, "residual.max_px: missing"),
    ],
)
def test_malformed_fields_are_named(tmp_path, change, said):
    plain = yaml.safe_load(extrinsics().yaml()) | change
    path = tmp_path / "camera.yaml"
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(ExtrinsicsError, match=said) as caught:
        CameraExtrinsics.read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("text", "said"), [("a: [", "no valid YAML"), ("- 1", "got list"), ("", "got NoneType")])
def test_what_is_no_file_of_extrinsics_is_refused(tmp_path, text, said):
    path = tmp_path / "camera.yaml"
    path.write_text(text)
    with pytest.raises(ExtrinsicsError, match=said):
        CameraExtrinsics.read(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ExtrinsicsError, match=r"nowhere\.yaml: cannot be read"):
        CameraExtrinsics.read(tmp_path / "nowhere.yaml")
