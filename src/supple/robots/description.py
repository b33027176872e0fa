# SPDX-License-Identifier: Apache-2.0
"""The URDF as viewers and TF need it: meshes by absolute file URI, named frames and optical frames as links."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import AssetError, UnknownNameError
from supple.robots.robot import Camera, Robot

__all__ = ["BASE_FRAME", "OPTICAL_STREAMS", "T_BODY_OPTICAL", "optical_frame", "robot_description"]

BASE_FRAME = "base_link"
"""Root of a robot's tree of frames (REP-105, REP-120)."""

OPTICAL_STREAMS = ("color", "depth")
"""Streams of a camera that have an optical frame."""

# From a body frame (x forward, z up) to its optical frame (z forward, x right), REP-103.
_OPTICAL_RPY = (-0.5 * math.pi, 0.0, -0.5 * math.pi)

T_BODY_OPTICAL = pin.SE3(pin.rpy.rpyToMatrix(*_OPTICAL_RPY), np.zeros(3))
"""Pose of a camera's optical frame in its body frame."""


def optical_frame(camera: str, stream: str = "color") -> str:
    """Return the frame of a camera's pictures: z forward, x right, y down (REP-103).

    Depth that is aligned to colour is given in the colour stream's frame.
    """
    return f"{camera}_{stream}_optical_frame"


def robot_description(robot: Robot) -> str:
    """Return a robot's URDF for the topic ``robot_description``.

    It differs from the installed file in two ways. Every mesh is an absolute ``file://`` URI, so that a viewer needs no
    ROS package; such a text is good on this machine only. The robot's named frames are links, fixed to theirs, and so
    are the optical frames of its cameras; the frame ``base_link`` becomes the root, above the link it stands for.

    Raises:
        AssetError: The URDF cannot be parsed, or a mesh does not exist; names the file.
        UnknownNameError: A frame is fixed to a link that the URDF does not have.
    """
    try:
        tree = ET.fromstring(robot.urdf.read_text(encoding="utf-8"))
    except (OSError, ET.ParseError) as error:
        raise AssetError(f"{robot.urdf}: no readable URDF: {error}") from error
    for mesh in tree.iter("mesh"):
        mesh.set("filename", _mesh_path(robot.urdf, mesh.get("filename", "")).as_uri())
    links = {link.get("name", "") for link in tree.iter("link")}
    root = _root(tree, robot.urdf)
    for frame in robot.frames.values():
        if frame.name in links:
            continue
        if frame.link not in links:
            raise UnknownNameError("link", frame.link, links)
        if frame.name == BASE_FRAME and frame.link == root:
            _fix(tree, frame.name, frame.link, frame.T_link_frame.inverse(), new=frame.name)
        else:
            _fix(tree, frame.link, frame.name, frame.T_link_frame, new=frame.name)
    for camera in robot.cameras.values():
        for name in _missing_optical_frames(camera, links):
            _fix(tree, camera.frame, name, T_BODY_OPTICAL, new=name)
    ET.indent(tree)
    return ET.tostring(tree, encoding="unicode", xml_declaration=True)


def _missing_optical_frames(camera: Camera, links: set[str]) -> Iterable[str]:
    return (name for stream in OPTICAL_STREAMS if (name := optical_frame(camera.name, stream)) not in links)


def _root(tree: ET.Element, urdf: Path) -> str:
    children = {child.get("link") for child in tree.iterfind("joint/child")}
    roots = [name for link in tree.iterfind("link") if (name := link.get("name", "")) not in children]
    if len(roots) != 1:
        raise AssetError(f"{urdf}: expected one root link, got {', '.join(sorted(roots)) or 'none'}")
    return roots[0]


def _fix(tree: ET.Element, parent: str, child: str, pose: pin.SE3, *, new: str) -> None:
    """Add a link and the fixed joint that holds it (or, for a new root, what is below it)."""
    ET.SubElement(tree, "link", name=new)
    joint = ET.SubElement(tree, "joint", name=f"{new}_fixed_joint", type="fixed")
    ET.SubElement(joint, "origin", xyz=_text(pose.translation), rpy=_text(pin.rpy.matrixToRpy(pose.rotation)))
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)


def _text(row: NDArray[np.float64]) -> str:
    # The shortest text that reads back as the same number; the sum turns -0.0 into 0.0.
    return " ".join(repr(float(value) + 0.0) for value in row)


def _mesh_path(urdf: Path, filename: str) -> Path:
    """Return the absolute path of a mesh that a URDF names by ``package://``, ``file://`` or relative to itself."""
    parts = urlsplit(filename)
    if parts.scheme == "package":
        # A package's share folder lies somewhere above its own URDF; its name is part of the path.
        wanted = Path(parts.netloc, unquote(parts.path).lstrip("/"))
        places = [folder / wanted for folder in urdf.resolve().parents if (folder / parts.netloc).is_dir()]
    elif parts.scheme == "file":
        places = [Path(unquote(parts.path))]
    else:
        places = [urdf.resolve().parent / filename] if filename and not parts.scheme else []
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(map(str, places)) or "nowhere: expected package://, file:// or a relative path"
    raise AssetError(
        f"{urdf.name}: mesh {filename!r} does not exist (looked at: {looked}); install the robot's wheel again"
    )
