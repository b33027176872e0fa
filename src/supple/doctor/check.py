# SPDX-License-Identifier: Apache-2.0
"""One finding of the doctor, and how checks run what might crash or hang."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Check", "run_python"]


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        name: What was looked at.
        ok: Whether it is as it should be.
        found: What is there.
        expected: What should be there.
        remedy: What to do if it is not, in one line; empty when all is well.
    """

    name: str
    ok: bool
    found: str
    expected: str
    remedy: str = ""


def run_python(*arguments: str, environment: Mapping[str, str], timeout: float = 60.0) -> tuple[bool, str]:
    """Run this Python in a process of its own.

    Args:
        arguments: Its arguments.
        environment: Its whole environment.
        timeout: Limit in [s].

    Returns:
        Whether it ended with 0, and its last line: of standard output if so, else of standard error.
    """
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"did not end within {timeout:g} s"
    ok = done.returncode == 0
    lines = (done.stdout if ok else done.stderr).strip().splitlines()
    return ok, lines[-1] if lines else ("" if ok else f"ended with exit code {done.returncode}")
