# SPDX-License-Identifier: Apache-2.0
"""The folder of a bag while it is written: at its place once it is whole, or there and readable all the time."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

from rosbags.interfaces import Connection
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer, WriterError, storage_mcap

from supple.episodes.atomic import TEMPORARY_SUFFIX, sync_folder
from supple.errors import DatasetError

__all__ = ["BagFolder", "GrowingBag", "WholeBag", "mend_log"]

# End of the data, a footer that says "no index", and the closing magic: what makes a file of chunks a readable one.
_MAGIC = b"\x89MCAP0\r\n"
_TRAILER = b"\x0f" + struct.pack("<QI", 4, 0) + b"\x02" + struct.pack("<QQQI", 20, 0, 0, 0) + _MAGIC
_DATA_END = 0x0F
# A record of a message: opcode, length of the rest, channel, count (unused), time logged, time published.
_MESSAGE = struct.Struct("<BQHIQQ")
_MESSAGE_OPCODE, _MESSAGE_FIELDS = 0x05, _MESSAGE.size - 9
# A chunk holds about two pictures; what is flushed before is smaller.
_CHUNK = 4 * 2**20


class BagFolder(Protocol):
    """Where a bag comes into being.

    Attributes:
        writer: What writes it.
        cut_off: Where an unfinished bag of this name was moved that a killed process had left; None if there was none.
    """

    writer: Writer
    cut_off: Path | None

    def flush(self) -> None:
        """Hand what was written to the operating system, if the bag is to be readable before it is finished."""

    def finish(self) -> None:
        """Write the index, flush everything to the disk and let go."""

    def abort(self) -> None:
        """Let go without finishing."""


def _open(kind: type[Writer], path: Path) -> Writer:
    writer = kind(path, version=9, storage_plugin=StoragePlugin.MCAP)
    # Only chunk compression: rosbag2 itself refuses to read MCAP files compressed message by message.
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    writer.open()
    return writer


def _locked(folder: Path, name: Path) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise DatasetError(f"{name}: another process is writing this bag") from error
    return handle


def _sync(folder: Path) -> None:
    for file in folder.iterdir():
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    sync_folder(folder)


class WholeBag:
    """A bag that appears at its path when it is finished, or not at all.

    Args:
        path: Where it will be.

    Attributes:
        writer: What writes it.
        cut_off: Where an unfinished bag of this name was moved that a killed process had left; None if there was none.

    Raises:
        DatasetError: Another process is writing it.
        OSError: The disk is full or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # The writer names the file inside after the folder, so the bag is composed under its own name one level down.
        self._work = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
        self.cut_off: Path | None = None
        self._lock = -1
        try:
            self._claim()
            self.writer = _open(Writer, self._work / path.name)
        except OSError:
            if self._lock >= 0:
                shutil.rmtree(self._work, ignore_errors=True)
                os.close(self._lock)
            raise

    def _claim(self) -> None:
        # The lock ends with the process, so a folder without one was left behind by a kill. What it holds may be a
        # recording that nobody can repeat (MCAP files can be repaired), so it is set aside and not removed.
        if self._work.exists():
            os.close(_locked(self._work, self._path))
            place = self._path.with_name(f"{self._path.name}.cut_off")
            count = 1
            while place.exists():
                count += 1
                place = self._path.with_name(f"{self._path.name}.cut_off_{count}")
            self._work.rename(place)
            self.cut_off = place
        self._work.mkdir(parents=True)
        self._lock = _locked(self._work, self._path)

    def flush(self) -> None:
        """Do nothing: nobody reads it before it is whole."""

    def finish(self) -> None:
        """Write the index, flush everything to the disk and put it at its path."""
        self.writer.close()
        inner = self._work / self._path.name
        _sync(inner)
        inner.rename(self._path)
        self._work.rmdir()
        sync_folder(self._path.parent)
        os.close(self._lock)

    def abort(self) -> None:
        """Remove what was written."""
        self.writer.abort()
        shutil.rmtree(self._work, ignore_errors=True)
        os.close(self._lock)


class _Staged(io.BytesIO):
    """Bytes that will stand at some place of a file, and count from there."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self._start = start

    def tell(self) -> int:
        """Return the place in the file."""
        return self._start + super().tell()


class _GrowingMcap(storage_mcap.McapWriter):
    """An MCAP file that ends like a finished one without an index after every chunk."""

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        # Depth takes a quarter of the time of the standard level and a fifth more room; a log must keep up with
        # whatever comes.
        self.compressor = partial(storage_mcap.zstd.compress, level=-1)
        self._file: Any = self.bio
        self._put(b"")

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Write a message: the same bytes as the parent's, put together in one go, in larger chunks."""
        self.message_start_time = min(timestamp, self.message_start_time)
        self.message_end_time = max(timestamp, self.message_end_time)
        number, chunk = connection.id, self.chunk
        self.channel_stats[number] += 1
        chunk.message_start_time = min(timestamp, chunk.message_start_time)
        chunk.message_end_time = max(timestamp, chunk.message_end_time)
        chunk.msgs[number].append((timestamp, chunk.bio.tell()))
        length = _MESSAGE_FIELDS + len(data)
        chunk.bio.write(_MESSAGE.pack(_MESSAGE_OPCODE, length, number, 0, timestamp, timestamp))
        chunk.bio.write(data)
        if chunk.bio.tell() > _CHUNK:
            self.close_chunk()

    def close_chunk(self) -> None:
        """Write the pending chunk and the end of the file, over which the next chunk is written.

        Both go in one call to the system: a process that is killed has written all of it or, in rare cases, the
        beginning (see `mend_log`).
        """
        staged = _Staged(self._file.tell())
        self.bio = cast(Any, staged)
        try:
            super().close_chunk()
        finally:
            self.bio = self._file
        self._put(staged.getvalue())

    def _put(self, data: bytes) -> None:
        end = self._file.tell() + len(data)
        self._file.write(data + _TRAILER)
        self._file.flush()
        self._file.seek(end)


class _GrowingWriter(Writer):
    STORAGE_PLUGINS: Any = MappingProxyType({StoragePlugin.MCAP: _GrowingMcap})

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Write a message of a connection that this writer made; the parent looks through all of them each time."""
        if self.storage is None:
            raise WriterError("bag is not open")
        self.storage.write(connection, timestamp, data)
        self.counts[connection.id] += 1
        self.min_timestamp = min(timestamp, self.min_timestamp)
        self.max_timestamp = max(timestamp, self.max_timestamp)


class GrowingBag:
    """A bag that is at its path at once and keeps what was written, however its process ends.

    Args:
        path: Where it is; its folder is made.

    Attributes:
        writer: What writes it.
        cut_off: None: nothing is moved.

    Raises:
        DatasetError: Another process is writing it.
        OSError: The disk is full or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cut_off: Path | None = None
        self.writer = _open(_GrowingWriter, path)
        self._lock = _locked(path, path)

    def flush(self) -> None:
        """Write what is waiting for its chunk to be full."""
        storage = self.writer.storage
        if isinstance(storage, _GrowingMcap) and storage.chunk.msgs:
            storage.close_chunk()

    def finish(self) -> None:
        """Write the index and flush everything to the disk."""
        self.writer.close()
        _sync(self._path)
        os.close(self._lock)

    def abort(self) -> None:
        """Let go; what was flushed stays and is readable."""
        with suppress(OSError):
            # Closing tries once more to write what a full disk has just refused.
            self.writer.abort()
        for path in self._path.glob("*.mcap"):
            _mend(path)
        os.close(self._lock)


def mend_log(folder: Path) -> int:
    """Make a growing bag readable again whose process was killed in the middle of a write.

    Args:
        folder: Folder of the bag.

    Returns:
        Number of bytes taken off its end, all of one unfinished chunk; 0 if nothing had to be.

    Raises:
        DatasetError: It is still being written, it is no bag, or it cannot be written; nothing is changed.
    """
    try:
        os.close(_locked(folder, folder))
        paths = sorted(folder.glob("*.mcap"))
        if not paths:
            raise DatasetError(f"{folder}: no bag: it holds no *.mcap file")
        return sum(_mend(path) for path in paths)
    except OSError as error:
        raise DatasetError(f"{folder}: {error.strerror}: the log was not mended") from error


def _mend(path: Path) -> int:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        # Another recorder's file may be one that is being written: only those of a growing bag are known by the lock.
        begin = file.read(64)
        if not begin.startswith(_MAGIC) or b"rosbags-" not in begin:
            raise DatasetError(f"{path}: no log of this recorder")
        file.seek(max(size - len(_MAGIC), 0))
        if size > len(_MAGIC) and file.read() == _MAGIC:
            return 0
        good = len(_MAGIC)
        while True:
            file.seek(good)
            head = file.read(9)
            end = good + 9 + struct.unpack("<Q", head[1:])[0] if len(head) == 9 else size + 1
            if end > size or head[0] == _DATA_END:
                break
            good = end
        file.seek(good)
        file.truncate()
        file.write(_TRAILER)
        return size - good
