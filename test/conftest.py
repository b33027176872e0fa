# SPDX-License-Identifier: Apache-2.0
"""What holds for every test, and a really small disk to fill."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

_TINY_MB = 4

# A shell without job control starts background programs with SIGINT ignored, and all they start inherits that: a test
# that sends Ctrl-C would then wait for nothing. With a handler here, new processes begin with the default again.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time, and Hypothesis's own limit of 200 ms for each example would be one.
settings.register_profile("supple", deadline=None)
settings.load_profile("supple")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a file system of 4 MB; only root can mount one."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_TINY_MB}m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
