# SPDX-License-Identifier: Apache-2.0
"""Package Supple for colcon (ament_python) and for pip."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "supple"
ROOT = Path(__file__).parent
NODES = (
    "contact_logger",
    "episode_player",
    "locomotion_executor",
    "manipulation_executor",
    "point_extractor",
    "robot_state",
    "sim_bridge",
    "task_executor",
    "teleop_recorder",
    "wrench_observer",
)


def pins(name: str) -> list[str]:
    """Return the pinned packages of a requirements file."""
    lines = (ROOT / f"requirements/{name}.txt").read_text().splitlines()
    return [line for line in lines if line and line[0] != "#"]


# The pins are Supple's requirements too, so that `supple doctor` can compare what is installed with them.
PINS = pins("runtime")
SHARED = ("config", "launch", "rviz", "seeds", "urdf")


def shared_files() -> list[tuple[str, list[str]]]:
    """Return what goes to share/supple, folder by folder."""
    files = [
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ]
    for top in SHARED:
        folders: dict[str, list[str]] = {}
        for path in sorted((ROOT / top).rglob("*")):
            if path.is_file():
                name = path.relative_to(ROOT)
                folders.setdefault(f"share/{PACKAGE}/{name.parent.as_posix()}", []).append(name.as_posix())
        files += folders.items()
    return files


setup(
    name=PACKAGE,
    version="0.1.0",
    description="Turns one demonstration of a humanoid into thousands of physically checked episodes.",
    author="Supple maintainers",
    author_email="maintainers@supple-robotics.org",
    maintainer="Supple maintainers",
    maintainer_email="maintainers@supple-robotics.org",
    license="Apache-2.0",
    python_requires=">=3.11",
    package_dir={"": "src"},
    packages=find_packages("src"),
    package_data={"supple.report": ["*.css", "*.html", "*.js"]},
    # An editable installation links these (scripts/setup.sh); copies would grow stale with the first edit.
    data_files=[] if "editable_wheel" in sys.argv else shared_files(),
    install_requires=["setuptools", *PINS],
    extras_require={"ray": pins("ray")},
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "supple = supple.cli.main:app",
            *(f"{node} = supple.nodes.{node}:main" for node in NODES),
        ],
    },
)
