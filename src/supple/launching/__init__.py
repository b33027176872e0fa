# SPDX-License-Identifier: Apache-2.0
"""Run launch XML without a ROS installation: resolve a documented subset to commands, then run them together.

``ros2 launch`` stays the way where a distribution is sourced; the files are the same. No package on PyPI serves without
one: ``launch`` there is another program, ``play-launch`` 0.16 links against a distribution's libraries and Python 3.10.
"""

from __future__ import annotations

from supple.launching.document import LaunchError
from supple.launching.environment import find_launch_file, ros_environment, share_folder
from supple.launching.process import NodeProcess
from supple.launching.resolve import parse_arguments, resolve
from supple.launching.run import run

__all__ = [
    "LaunchError",
    "NodeProcess",
    "find_launch_file",
    "parse_arguments",
    "resolve",
    "ros_environment",
    "run",
    "share_folder",
]
