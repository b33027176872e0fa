#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the rules of the house that ruff and mypy do not know; print one line per finding.

scripts/lint.py [ROOT]        exit status 1 when anything was found
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["FLOORS", "check_module", "check_tree", "main"]

# A room imports only from floors below its own.
FLOORS = {
    "errors": -1,  # below everything
    "geometry": 0,
    "yaml_file": 0,
    "robots": 1,
    "contact": 2,
    "episodes": 2,
    "kinematics": 2,
    "perception": 2,
    "registration": 2,
    "control": 3,
    "planning": 3,
    "sim": 3,
    "hardware": 4,
    "tasks": 4,
    "teleop": 5,
    "generation": 5,
    "evaluation": 5,
    "learning": 5,
    "replay": 5,
    "launching": 6,
    "report": 6,
    "doctor": 7,
    "nodes": 7,
    "cli": 8,
}
SPDX = "# SPDX-License-Identifier: Apache-2.0"
MAX_LINES = 600
HOMELESS = {"common", "helpers", "misc", "util", "utils"}
ROS_MODULES = {"launch", "launch_ros", "rclpy", "tf2_ros"}
ROS_SUFFIXES = ("_interfaces", "_msgs", "_srvs")
SKIPPED = {".git", ".venv", "build", "install", "log", "out"}


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and full name of every import, wherever in the module it stands; relative ones start with a dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            # `from supple import robots` names the room only in what is imported.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "supple" else [module]
            yield from ((node.lineno, name) for name in names)


def is_ros(module: str) -> bool:
    """Tell whether a module is rclpy, ROS's launch or a package of ROS messages."""
    top = module.split(".")[0]
    return top in ROS_MODULES or top.endswith(ROS_SUFFIXES)


def check_module(name: str, text: str) -> Iterator[str]:
    """Yield the findings in one Python file.

    Args:
        name: Its path from the root, with forward slashes.
        text: Its content.
    """
    lines = text.splitlines()
    if SPDX not in lines[:2]:
        yield f"{name}:1: no line '{SPDX}'"
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{name}:{error.lineno}: does not parse: {error.msg}"
        return
    in_nodes = name.startswith(("src/supple/nodes/", "test/ros/"))
    if not in_nodes:
        for line, module in imports(tree):
            if is_ros(module):
                yield f"{name}:{line}: imports {module}; only src/supple/nodes and test/ros may import ROS"
    if name.startswith("src/"):
        yield from _check_source(name, tree, len(lines))


def _check_source(name: str, tree: ast.Module, length: int) -> Iterator[str]:
    path = Path(name)
    if length > MAX_LINES:
        yield f"{name}: {length} lines; expected at most {MAX_LINES}"
    if path.stem in HOMELESS:
        yield f"{name}: {path.stem!r} does not say what is in it"
    if not ast.get_docstring(tree):
        yield f"{name}:1: no module docstring"
    elif not (first := (ast.get_docstring(tree) or "").split("\n\n")[0].rstrip()).endswith("."):
        yield f"{name}:1: the docstring's first paragraph is not a sentence: {first!r}"
    # That it is sorted is for ruff to say (RUF022).
    if len(tree.body) > 1 and not any(_assigns_all(node) for node in tree.body):
        yield f"{name}:1: no __all__"
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield f"{name}:{node.lineno}: assert; raise an error that says got and expected"

    room = path.relative_to("src/supple").parts[0].removesuffix(".py")
    if room in ("__init__", "__main__"):
        return
    if room not in FLOORS:
        yield f"{name}: room {room!r} has no floor (known: {', '.join(sorted(FLOORS))})"
        return
    for line, module in imports(tree):
        if module.startswith("."):
            yield f"{name}:{line}: relative import; write it from supple on"
        parts = module.split(".")
        if parts[0] != "supple" or len(parts) < 2 or parts[1] in (room, "__version__"):
            continue
        if FLOORS.get(parts[1], -2) >= FLOORS[room]:
            yield f"{name}:{line}: {room} (floor {FLOORS[room]}) imports {parts[1]} (floor {FLOORS[parts[1]]})"


def _assigns_all(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def check_tree(root: Path) -> list[str]:
    """Return the findings in every Python file of a tree."""
    findings: list[str] = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if not SKIPPED.intersection(name.parts):
            findings += check_module(name.as_posix(), path.read_text(encoding="utf-8"))
    return findings


def main() -> int:
    """Check the tree given on the command line, or the one this script stands in."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    findings = check_tree(root)
    print("\n".join(findings) if findings else "house rules: nothing found")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
