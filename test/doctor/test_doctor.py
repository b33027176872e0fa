# SPDX-License-Identifier: Apache-2.0
"""The doctor finds what is there and says what to do about what is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from supple.doctor import machine, packages, ros, run_checks
from supple.doctor.check import run_python
from supple.launching import ros_environment

ROOT = Path(__file__).resolve().parents[2]
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(scope="module")
def checks():
    return {check.name: check for check in run_checks()}


def test_this_installation_is_healthy(checks):
    # Disk and cores are the machine's; the rest is what the set-up promises.
    sick = [check for check in checks.values() if not check.ok and check.name not in ("Disk", "Cores", "Shared memory")]
    assert sick == []


def test_every_check_says_what_it_looked_at(checks):
    assert {"Python", "Python packages", "MuJoCo", "Rendering", "DDS round trip", "Interfaces", "Seeds"} <= set(checks)
    for check in checks.values():
        assert check.found
        assert check.expected
        assert "\n" not in check.remedy
        assert bool(check.remedy) != check.ok


def test_pins_of_the_metadata_are_those_of_the_requirements():
    lines = (ROOT / "requirements/runtime.txt").read_text().splitlines()
    pins = {line for line in lines if line and not line.startswith("#")}
    assert pins
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert packages.requires("supple")
    assert pins <= set(packages.requires("supple"))


@pytest.mark.parametrize(("version", "ok"), [("3.17.0", True), ("3.17.9", True), ("4.0.0", False), ("3.1.7", False)])
def test_only_the_mujoco_that_tasks_were_tested_with_is_accepted(monkeypatch, version, ok):
    monkeypatch.setattr(packages, "version", lambda name: version)
    check = packages._mujoco()
    assert check.ok is ok
    assert check.found == version
    assert ("make setup" in check.remedy) is not ok
    assert "sparse-Cholesky" in check.expected


def test_wrong_and_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(packages, "requires", lambda name: ["numpy==0.0.1", "no-such-package==1.0", "setuptools"])
    pins, imports = packages._pins()
    assert not pins.ok
    assert re.search(r"numpy [\d.]+ instead of 0.0.1; no-such-package is missing", pins.found)
    assert not imports.ok
    assert "no_such_package: ModuleNotFoundError" in imports.found


def test_environment_settings_that_clash_are_named():
    check = ros._settings({"ROS_DOMAIN_ID": "233"})
    assert not check.ok
    assert check.found == "ROS_DOMAIN_ID=233"
    assert "0 … 232" in check.remedy
    assert ros._settings({"ROS_DOMAIN_ID": "232"}).ok
    assert not ros._settings({"ROS_DOMAIN_ID": "-1"}).ok


@pytest.mark.skipif(not ros._wheels(), reason="a ROS distribution is used instead of the wheels")
@pytest.mark.parametrize(
    ("name", "value"),
    [("ROS_DISTRO", "kilted"), ("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"), ("PYTHONPATH", "/opt/ros/kilted/lib/python3")],
)
def test_a_distribution_beside_the_wheels_is_a_clash(name, value):
    check = ros._settings({name: value})
    assert not check.ok
    assert name in check.found
    assert f"unset {name}" in check.remedy


def test_round_trip_fails_where_nobody_answers():
    environment = ros_environment({**os.environ, "ROS_DOMAIN_ID": "77"})
    ok, line = run_python("-m", "supple.nodes.dds_check", "ping", "nobody", environment=environment)
    assert not ok
    assert "no answer on nobody/answer" in line


def test_echo_ends_when_its_parent_is_gone():
    echo = subprocess.Popen(
        [sys.executable, "-m", "supple.nodes.dds_check", "echo", "alone"],
        env=ros_environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = echo.communicate(timeout=60)
    assert echo.returncode == 0
    # The middleware says here when it cannot read the profile for one machine.
    assert errors == ""


def test_unknown_render_backend_is_reported(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "crayon")
    check = machine._rendering()
    assert not check.ok
    assert "crayon" in check.found
    assert "libegl1" in check.remedy


def test_full_disk_and_small_shared_memory_are_reported(monkeypatch):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(10**9, 9 * 10**8, 10**8))
    assert machine._disk().found == "0.1 GB free here"
    assert not machine._disk().ok
    assert "--shm-size" in machine._shared_memory().remedy


def test_a_check_that_hangs_or_crashes_is_a_finding():
    ok, line = run_python("-c", "import time; time.sleep(60)", environment=os.environ, timeout=0.5)
    assert (ok, line) == (False, "did not end within 0.5 s")
    ok, line = run_python("-c", "import os; os.abort()", environment=os.environ)
    assert not ok
    assert line
