# SPDX-License-Identifier: Apache-2.0
"""One compiled scene for all tests of tasks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from supple.tasks import Environment, task_named

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def environment():
    return Environment(task_named("box_lift"))
