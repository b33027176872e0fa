# SPDX-License-Identifier: Apache-2.0
"""The description for viewers: every mesh is there, every frame is a link, and the robot is still the same robot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import AssetError, UnknownNameError
from supple.robots import Frame, Robot, robot_named
from supple.robots.description import optical_frame, robot_description

URDF = """<robot name="arm">
  <link name="foot"><visual><geometry><mesh filename="{mesh}" scale="2 2 2"/></geometry></visual></link>
  <link name="tip"/>
  <joint name="a_joint" type="revolute">
    <parent link="foot"/><child link="tip"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
</robot>"""


def arm(folder: Path, mesh: str, *frames: Frame) -> Robot:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arm.urdf").write_text(URDF.format(mesh=mesh))
    named = {frame.name: frame for frame in frames}
    return replace(robot_named("g1"), urdf=folder / "arm.urdf", frames=named, cameras={})


def test_every_mesh_of_the_g1_is_an_existing_file() -> None:
    meshes = [mesh.get("filename") for mesh in ET.fromstring(robot_description(robot_named("g1"))).iter("mesh")]
    assert len(meshes) > 80
    for name in meshes:
        parts = urlsplit(name)
        assert (parts.scheme, parts.netloc) == ("file", "")
        assert Path(unquote(parts.path)).is_file()


def test_the_robot_stays_the_same_below_base_link() -> None:
    robot = robot_named("g1")
    original = pin.buildModelFromUrdf(str(robot.urdf), pin.JointModelFreeFlyer())
    ours = pin.buildModelFromXML(robot_description(robot), pin.JointModelFreeFlyer())
    assert list(ours.names) == list(original.names)
    assert pin.computeTotalMass(ours) == pytest.approx(pin.computeTotalMass(original))
    assert next(frame.name for frame in ours.frames if frame.type == pin.FrameType.BODY) == "base_link"
    q = pin.randomConfiguration(original, np.full(original.nq, -0.5), np.full(original.nq, 0.5))
    datas = ours.createData(), original.createData()
    pin.framesForwardKinematics(ours, datas[0], q)
    pin.framesForwardKinematics(original, datas[1], q)
    for frame in robot.frames.values():
        expected = datas[1].oMf[original.getFrameId(frame.link)] * frame.T_link_frame
        found = datas[0].oMf[ours.getFrameId(frame.name)]
        np.testing.assert_allclose(found.homogeneous, expected.homogeneous, atol=1e-12, err_msg=frame.name)


def test_optical_frames_look_along_z() -> None:
    model = pin.buildModelFromXML(robot_description(robot_named("g1")))
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    camera = data.oMf[model.getFrameId("camera_link")]
    for stream in ("color", "depth"):
        optical = data.oMf[model.getFrameId(optical_frame("camera", stream))]
        turn = camera.rotation.T @ optical.rotation
        np.testing.assert_allclose(turn, [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], atol=1e-12)
        np.testing.assert_allclose(optical.translation, camera.translation, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["package://arm_description/mesh%20es/a.stl", "file://{folder}/mesh%20es/a.stl", "../mesh es/a.stl"]
)
def test_a_mesh_is_found_by_package_file_or_relative_path(tmp_path: Path, name: str) -> None:
    package = tmp_path / "share/arm_description"
    (package / "mesh es").mkdir(parents=True)
    (package / "mesh es/a.stl").touch()
    robot = arm(package / "urdf", name.format(folder=package))
    mesh = ET.fromstring(robot_description(robot)).find(".//mesh")
    assert Path(unquote(urlsplit(mesh.get("filename")).path)).samefile(package / "mesh es/a.stl")
    assert mesh.get("scale") == "2 2 2"


@pytest.mark.parametrize(
    "name", ["package://arm_description/a.stl", "package://other/a.stl", "http://x/a.stl", "a.stl", ""]
)
def test_a_missing_mesh_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(AssetError, match=r"arm\.urdf") as caught:
        robot_description(arm(tmp_path / "arm_description/urdf", name))
    assert repr(name) in str(caught.value)


def test_base_link_that_is_not_on_the_root_hangs_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.stl").touch()
    pose = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))
    robot = arm(
        tmp_path, "a.stl", Frame("base_link", "foot", pose), Frame("tool", "tip", pose), Frame("tip", "tip", pose)
    )
    joints = {j.get("name"): j for j in ET.fromstring(robot_description(robot)).iterfind("joint")}
    assert set(joints) == {"a_joint", "base_link_fixed_joint", "tool_fixed_joint"}
    root = joints["base_link_fixed_joint"]
    assert (root.find("parent").get("link"), root.find("child").get("link")) == ("base_link", "foot")
    assert root.find("origin").get("xyz") == "0.0 0.0 -0.1"
    robot = arm(tmp_path, "a.stl", Frame("base_link", "tip", pose))
    joint = ET.fromstring(robot_description(robot)).findall("joint")[-1]
    assert (joint.find("parent").get("link"), joint.find("child").get("link")) == ("tip", "base_link")


def test_what_is_no_robot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.stl").touch()
    with pytest.raises(UnknownNameError, match=r"'hand'.*foot"):
        robot_description(arm(tmp_path, "a.stl", Frame("tool", "hand", pin.SE3.Identity())))
    robot = arm(tmp_path, "a.stl")
    for text, said in (
        ("<robot>", "no readable URDF"),
        ("<robot><link name='a'/><link name='b'/></robot>", "one root"),
    ):
        robot.urdf.write_text(text)
        with pytest.raises(AssetError, match=said):
            robot_description(robot)
