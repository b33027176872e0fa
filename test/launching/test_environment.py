# SPDX-License-Identifier: Apache-2.0
"""The environment that nodes start in."""

from __future__ import annotations

import os
import sys
from xml.etree import ElementTree

import pytest

from supple.launching import LaunchError, ros_environment, share_folder


@pytest.fixture
def environment(prefix):
    (prefix.path / "share/ament_index/resource_index/packages/supple").touch()
    return {"AMENT_PREFIX_PATH": str(prefix.path)}


def test_one_machine_settings_are_added(prefix, environment):
    result = ros_environment(environment)
    assert str(prefix.path) in result["AMENT_PREFIX_PATH"].split(os.pathsep)
    assert str(prefix.path / "lib") in result["LD_LIBRARY_PATH"].split(os.pathsep)
    assert result["RMW_IMPLEMENTATION"] == "rmw_fastrtps_cpp"
    assert result["FASTDDS_DEFAULT_PROFILES_FILE"].endswith("share/supple/config/fastdds_localhost.xml")
    assert "AMENT_PREFIX_PATH" in environment
    assert len(environment) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FASTDDS_DEFAULT_PROFILES_FILE", "/mine.xml"),
        ("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"),
        ("PYTHONUNBUFFERED", "0"),
    ],
)
def test_what_is_set_already_stays(environment, name, value):
    assert ros_environment({**environment, name: value})[name] == value


def test_profile_is_given_to_the_fast_dds_that_is_there(environment):
    kilted, jazzy = (ros_environment({**environment, "ROS_DISTRO": name}) for name in ("kilted", "jazzy"))
    assert "FASTRTPS_DEFAULT_PROFILES_FILE" not in kilted
    assert "FASTDDS_DEFAULT_PROFILES_FILE" not in jazzy
    assert jazzy["FASTRTPS_DEFAULT_PROFILES_FILE"] == kilted["FASTDDS_DEFAULT_PROFILES_FILE"]


def test_other_middleware_gets_no_profile(environment):
    assert "FASTDDS_DEFAULT_PROFILES_FILE" not in ros_environment(
        {**environment, "RMW_IMPLEMENTATION": "rmw_zenoh_cpp"}
    )


def test_a_sourced_prefix_wins_over_the_virtual_environment(prefix, environment):
    other = str(prefix.path.parent / "other")
    result = ros_environment({"AMENT_PREFIX_PATH": f"{other}:{sys.prefix}:{prefix.path}"})
    assert result["AMENT_PREFIX_PATH"].split(os.pathsep) == [other, sys.prefix, str(prefix.path)]


def test_missing_package_names_the_prefixes(prefix):
    with pytest.raises(LaunchError, match="'nowhere' is not installed"):
        share_folder("nowhere", {"AMENT_PREFIX_PATH": str(prefix.path)})


def test_installed_profile_keeps_messages_on_this_machine():
    path = share_folder("supple") / "config/fastdds_localhost.xml"
    space = "{http://www.eprosima.com}"
    root = ElementTree.parse(path).getroot()
    assert [node.text for node in root.iter(f"{space}address")] == ["127.0.0.1"]
    # One 640 x 480 picture with three bytes a pixel fits into a message.
    assert all(int(node.text) > 640 * 480 * 3 for node in root.iter(f"{space}maxMessageSize"))
