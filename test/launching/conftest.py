# SPDX-License-Identifier: Apache-2.0
"""A ROS prefix with one package of small executables, made for each test."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest


@dataclass
class Prefix:
    """A ROS prefix on disk, and a folder for launch files."""

    path: Path
    launch: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"AMENT_PREFIX_PATH": str(self.path), "PATH": "/usr/bin:/bin"}

    def executable(self, name: str, body: str) -> Path:
        path = self.path / "lib/demo" / name
        path.write_text(f"#!{sys.executable} -S\n{dedent(body)}")
        path.chmod(0o755)
        return path

    def file(self, name: str, body: str) -> Path:
        path = self.launch / name
        path.write_text(f"<launch>\n{dedent(body)}\n</launch>\n")
        return path


@pytest.fixture
def prefix(tmp_path):
    path = tmp_path / "prefix"
    (path / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (path / "share/ament_index/resource_index/packages/demo").touch()
    (path / "share/demo/launch").mkdir(parents=True)
    (path / "lib/demo").mkdir(parents=True)
    made = Prefix(path, path / "share/demo/launch")
    made.executable("talker", "print('hello')")
    return made
