# SPDX-License-Identifier: Apache-2.0
"""What several tests of episodes need: example episodes to import."""

from __future__ import annotations

import sys
from pathlib import Path

# The tests and the processes they start and kill import the examples by name.
sys.path.append(str(Path(__file__).parent))
