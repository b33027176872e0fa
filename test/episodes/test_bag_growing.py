# SPDX-License-Identifier: Apache-2.0
"""Logs: readable while they are written, after their process was killed, and on a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from supple.episodes import BagWriter, mend_log, read_bag
from supple.episodes.bag_types import LATCHED
from supple.errors import DatasetError

MILLISECOND = 1_000_000


def noise(seed: int) -> np.ndarray:
    """A picture that no compression makes smaller: 0.9 MB."""
    return np.random.default_rng(seed).integers(0, 255, (480, 640, 3), dtype=np.uint8)


def independent(folder: Path) -> dict[str, int]:
    """Count what the reader of the MCAP project decodes, by topic."""
    counts: dict[str, int] = {}
    (file,) = folder.glob("*.mcap")
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        for _, channel, _, message in reader.iter_decoded_messages():
            assert message is not None
            counts[channel.topic] = counts.get(channel.topic, 0) + 1
    return counts


def test_a_log_is_readable_while_it_is_written(tmp_path):
    with BagWriter(tmp_path / "log", growing=True) as log:
        assert independent(tmp_path / "log") == {}
        for i in range(1, 40):
            log.string("said", f"word {i}", i * MILLISECOND)
            if i % 10 == 0:
                log.image(i * MILLISECOND, noise(i))
            if i % 7 == 0:
                log.flush()
                assert independent(tmp_path / "log")["/said"] == i
                assert read_bag(tmp_path / "log").counts["/said"] == i
    assert independent(tmp_path / "log") == {"/said": 39, "/camera/color/image_raw": 3}
    whole = read_bag(tmp_path / "log")
    assert whole.counts == {"/said": 39, "/camera/color/image_raw": 3}
    assert [message.data for _, message in whole.messages["/said"]] == [f"word {i}" for i in range(1, 40)]


def test_a_flush_without_news_changes_nothing(tmp_path):
    with BagWriter(tmp_path / "log", growing=True) as log:
        log.string("said", "word", MILLISECOND)
        log.flush()
        (file,) = (tmp_path / "log").glob("*.mcap")
        before = file.read_bytes()
        log.flush()
        assert file.read_bytes() == before


def test_what_is_latched_late_is_kept_where_it_came(tmp_path):
    with BagWriter(tmp_path / "log", growing=True) as log:
        log.string("robot_description", "<robot/>", latched=True)
        log.string("said", "word", 5 * MILLISECOND)
        log.string("sensors", "pads", 6 * MILLISECOND, latched=True)
    contents = read_bag(tmp_path / "log")
    assert contents.qos["/sensors"] == LATCHED
    assert [stamp for stamp, _ in contents.messages["/robot_description"]] == [5 * MILLISECOND - 1]
    assert [stamp for stamp, _ in contents.messages["/sensors"]] == [6 * MILLISECOND]


WRITER = """
import sys
import numpy as np
from supple.episodes import BagWriter
log = BagWriter(sys.argv[1], growing=True)
picture = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)
i = 0
while True:
    i += 1
    log.string("said", f"word {i}", i * 1_000_000)
    log.image(i * 1_000_000, picture)
    log.flush()
    print(i, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 30])
def test_a_log_survives_kill_9(tmp_path, after):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", WRITER, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        flushed = 0
        while flushed < after:
            flushed = int(process.stdout.readline())
        with pytest.raises(DatasetError, match="another process"):
            mend_log(tmp_path / "log")
        process.kill()
    mend_log(tmp_path / "log")
    found = independent(tmp_path / "log")
    assert found["/said"] >= after
    words = [message.data for _, message in read_bag(tmp_path / "log", ["/said"]).messages["/said"]]
    assert words == [f"word {i}" for i in range(1, found["/said"] + 1)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> tuple[bytes, list[int]]:
    """The file of a log of five chunks whose process was killed, and where each chunk ends with its index."""
    folder = tmp_path_factory.mktemp("killed") / "log"
    log = BagWriter(folder, growing=True)
    (file,) = folder.glob("*.mcap")
    # What follows the last chunk: the records "end of data" and "footer" and the closing magic.
    ends, trailer = [], (9 + 4) + (9 + 20) + 8
    for i in range(1, 6):
        log.string("said", f"word {i} " + "x" * 500, i * MILLISECOND)
        log.flush()
        ends.append(file.stat().st_size - trailer)
    data = file.read_bytes()
    log.close()
    return data, ends


@pytest.mark.parametrize("share", np.linspace(0.05, 0.99, 25).tolist())
def test_a_write_that_was_cut_off_costs_one_chunk_at_most(tmp_path, killed, share):
    data, ends = killed
    size = int(share * len(data))
    (tmp_path / "log").mkdir()
    (tmp_path / "log/log.mcap").write_bytes(data[:size])
    taken = mend_log(tmp_path / "log")
    assert 0 <= taken <= size
    count = independent(tmp_path / "log").get("/said", 0)
    # The words before the cut are all there but the one that it went through, of which the index may be missing.
    whole = sum(end <= size for end in ends)
    assert count in (whole, whole + 1)
    if count:
        assert read_bag(tmp_path / "log").counts == {"/said": count}
    assert mend_log(tmp_path / "log") == 0


def test_what_is_no_log_is_not_mended(tmp_path):
    with pytest.raises(DatasetError, match="No such file"):
        mend_log(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no bag"):
        mend_log(tmp_path / "empty")
    (tmp_path / "empty/a.mcap").write_bytes(b"something else")
    with pytest.raises(DatasetError, match="no log of this recorder"):
        mend_log(tmp_path / "empty")
    assert (tmp_path / "empty/a.mcap").read_bytes() == b"something else"


def test_a_full_disk_keeps_what_was_written(tiny_disk):
    log = BagWriter(tiny_disk / "log", growing=True)

    def write_pictures() -> None:
        for i in range(1, 21):
            log.string("said", f"word {i}", i * MILLISECOND)
            log.image(i * MILLISECOND, noise(i))
            log.flush()

    with pytest.raises(DatasetError, match="disk full: the log ends here"):
        write_pictures()
    found = independent(tiny_disk / "log")
    assert found["/said"] == found["/camera/color/image_raw"] >= 3
