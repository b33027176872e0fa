# SPDX-License-Identifier: Apache-2.0
"""What the tests of planning share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
