# SPDX-License-Identifier: Apache-2.0
"""The floors of the house, and that the script which checks them sees what it should."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAD = '# SPDX-License-Identifier: Apache-2.0\n"""A sentence."""\n__all__ = ["a"]\n'


@pytest.fixture(scope="module")
def lint():
    spec = importlib.util.spec_from_file_location("lint", ROOT / "scripts/lint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_house_rules_hold_in_this_tree(lint):
    assert (ROOT / "src/supple/errors.py").is_file()
    assert lint.check_tree(ROOT) == []


def test_every_room_has_a_floor(lint):
    rooms = {p.name.removesuffix(".py") for p in (ROOT / "src/supple").iterdir() if not p.name.startswith("__")}
    assert rooms - {".DS_Store"} <= set(lint.FLOORS)


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("src/supple/robots/a.py", "from supple.sim.body import Body", "robots (floor 1) imports sim (floor 3)"),
        ("src/supple/robots/a.py", "import supple.cli.main", "robots (floor 1) imports cli (floor 8)"),
        ("src/supple/robots/a.py", "from supple import tasks", "robots (floor 1) imports tasks (floor 4)"),
        ("src/supple/sim/a.py", "from supple.control import walk", "sim (floor 3) imports control (floor 3)"),
        ("src/supple/geometry.py", "def f():\n    from supple.robots import g1", "geometry (floor 0) imports robots"),
        ("src/supple/sim/a.py", "from . import body", "relative import"),
        ("src/supple/sim/a.py", "import rclpy", "imports rclpy"),
        ("src/supple/sim/a.py", "def f():\n    from sensor_msgs.msg import Image", "imports sensor_msgs.msg"),
        ("test/sim/test_a.py", "from supple_interfaces.msg import JointCommand", "imports supple_interfaces.msg"),
        ("src/supple/sim/a.py", "assert 1 < 2", "assert"),
        ("src/supple/sim/helpers.py", "", "does not say what is in it"),
        ("src/supple/attic/a.py", "", "room 'attic' has no floor"),
        ("src/supple/sim/a.py", "x = 1\n" * 600, "603 lines"),
    ],
)
def test_breaking_a_rule_is_found(lint, name, line, said):
    findings = list(lint.check_module(name, HEAD + line))
    assert len(findings) == 1
    assert said in findings[0]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("src/supple/nodes/a.py", "import rclpy\nfrom std_msgs.msg import Float64\nfrom supple.replay import play"),
        ("src/supple/cli/a.py", "from supple.doctor import run_checks\nfrom supple.nodes import sim_bridge"),
        ("src/supple/sim/a.py", "from supple.sim.body import Body\nfrom supple import __version__"),
        ("test/ros/test_a.py", "import rclpy\nassert True"),
    ],
)
def test_keeping_the_rules_is_quiet(lint, name, line):
    assert list(lint.check_module(name, HEAD + line)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"""A sentence."""\n__all__ = []\n', "SPDX"),
        ("# SPDX-License-Identifier: Apache-2.0\n__all__ = []\n", "no module docstring"),
        ('# SPDX-License-Identifier: Apache-2.0\n"""No full stop"""\n__all__ = []\n', "not a sentence"),
        ('# SPDX-License-Identifier: Apache-2.0\n"""A sentence."""\na = 1\n', "no __all__"),
        (HEAD + "def f(:\n", "does not parse"),
    ],
)
def test_head_of_a_module_is_checked(lint, text, said):
    assert any(said in finding for finding in lint.check_module("src/supple/sim/a.py", text))
