# SPDX-License-Identifier: Apache-2.0
"""Files that appear on disk whole or not at all: written beside their place, flushed to the disk, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["TEMPORARY_SUFFIX", "free_path", "replacing", "sync_folder", "write_atomically"]

TEMPORARY_SUFFIX = ".tmp"


def sync_folder(folder: Path) -> None:
    """Flush a folder's own entries, so that a rename or removal in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder that takes the place of ``path`` if the block ends without an error.

    The temporary file is flushed to the disk before it is renamed, and removed if anything fails.

    Args:
        path: The file to make or to replace.
    """
    temporary = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
    try:
        yield temporary
        handle = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Make or replace a file with the given content.

    Raises:
        OSError: It cannot be written; nothing is left behind and an older file stays as it was.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def free_path(path: Path) -> Path:
    """Return the path, or the first of ``<stem>_2``, ``<stem>_3`` and so on that does not exist yet."""
    place, count = path, 1
    while place.exists():
        count += 1
        place = path.with_name(f"{path.stem}_{count}{path.suffix}")
    return place
