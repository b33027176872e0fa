# SPDX-License-Identifier: Apache-2.0
"""The package as pip and colcon make it: metadata, shared files and entry points."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from xml.etree import ElementTree

import pytest

import supple
from supple.launching import share_folder

ROOT = Path(__file__).resolve().parents[1]
NODES = {path.stem for path in (ROOT / "src/supple/nodes").glob("*.py") if "def main(" in path.read_text()} - {
    "dds_check"
}
SHARED = [name for name in ("config", "launch", "rviz", "seeds", "urdf") if any((ROOT / name).rglob("*.*"))]


def scripts() -> dict[str, str]:
    return {
        entry.name: entry.value for entry in entry_points(group="console_scripts") if entry.value.startswith("supple.")
    }


def test_every_version_is_the_same():
    described = ElementTree.parse(ROOT / "package.xml").findtext("version")
    assert supple.__version__ == described == version("supple")


def test_every_node_is_an_executable_and_every_executable_loads_from_a_module_that_is_there():
    assert set(scripts()) >= NODES
    for name, value in scripts().items():
        module = value.split(":")[0]
        assert (ROOT / "src" / (module.replace(".", "/") + ".py")).is_file(), f"{name} leads to {value}"


def test_executables_lie_where_ros_looks_for_them():
    folder = share_folder("supple").parents[1] / "lib/supple"
    assert {path.name for path in folder.iterdir()} == set(scripts())


@pytest.mark.parametrize("name", SHARED)
def test_shared_folders_are_those_of_the_tree(name):
    folder = share_folder("supple") / name
    files = {path.relative_to(ROOT / name) for path in (ROOT / name).rglob("*") if path.is_file()}
    assert files
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == files


def test_colcon_builds_the_package(tmp_path):
    colcon = Path(sys.prefix) / "bin/colcon"
    bases = [f"--{kind}-base={tmp_path / kind}" for kind in ("build", "install")]
    subprocess.run(
        [
            colcon,
            f"--log-base={tmp_path / 'log'}",
            "build",
            "--base-paths",
            ROOT,
            *bases,
            "--packages-select",
            "supple",
        ],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    prefix = tmp_path / "install/supple"
    assert (prefix / "share/ament_index/resource_index/packages/supple").is_file()
    assert {path.name for path in (prefix / "lib/supple").iterdir()} == set(scripts())
    for name in SHARED:
        files = {path.relative_to(ROOT / name) for path in (ROOT / name).rglob("*") if path.is_file()}
        made = prefix / "share/supple" / name
        assert {path.relative_to(made) for path in made.rglob("*") if path.is_file()} == files


def test_setup_for_a_distribution_that_is_not_there_removes_nothing(tmp_path):
    """The tree's own environment is sourced, whose interpreter finds the rclpy of the wheels."""
    venv, path = tmp_path / "tree/.venv", tmp_path / "bin"
    base = Path(sys.base_prefix) / "bin/python3"
    subprocess.run([base, "-m", "venv", "--without-pip", venv], check=True)
    (next(venv.glob("lib/python*/site-packages")) / "rclpy.py").touch()
    subprocess.run([venv / "bin/python3", "-c", "import rclpy"], check=True)
    script = tmp_path / "tree/scripts/setup.sh"
    script.parent.mkdir()
    shutil.copy(ROOT / "scripts/setup.sh", script)
    # The interpreter of the machine, without the packages that it may have: no ROS.
    path.mkdir()
    (path / "python3").write_text(f'#!/bin/sh\nexec "{base}" -I -S "$@"\n')
    (path / "python3").chmod(0o755)
    before = {found.relative_to(venv) for found in venv.rglob("*")}
    ended = subprocess.run(
        ["bash", script],
        env={"PATH": f"{venv}/bin:{path}:/usr/bin:/bin", "VIRTUAL_ENV": str(venv), "ROS_DISTRO": "bogus"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert "ROS_DISTRO is 'bogus', but python3 cannot import rclpy" in ended.stderr
    assert before <= {found.relative_to(venv) for found in venv.rglob("*")}


def test_interface_packages_are_well_formed():
    for path in (ROOT / "interfaces").glob("*/package.xml"):
        described = ElementTree.parse(path).getroot()
        assert described.get("format") == "3"
        assert described.findtext("name") == path.parent.name
        built = (path.parent / "CMakeLists.txt").read_text()
        for kind in ("action", "msg", "srv"):
            for file in (path.parent / kind).glob("*"):
                assert f"{kind}/{file.name}\n" in built
