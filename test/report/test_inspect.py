# SPDX-License-Identifier: Apache-2.0
"""The page says what the dataset holds, needs nothing else, and is there for every dataset, however poor."""

from __future__ import annotations

import base64
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import simulated_attempts as simulated

from supple.episodes import Dataset, DatasetWriter
from supple.errors import DatasetError
from supple.report import write_report

VOID = {"meta", "img", "br", "link", "line", "rect", "circle", "path"}


class Page(HTMLParser):
    """Text, links and nesting of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(self.source)
        assert self._open == [], "unclosed"
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("style", "script", "title"):
            self.words.append(data)


@pytest.fixture(scope="module")
def full(tmp_path_factory, dataset):
    out = tmp_path_factory.mktemp("report")
    paths = write_report(dataset, out)
    return paths, Page(paths.html)


def test_page_tells_counts_with_intervals_origins_and_reasons(full):
    paths, page = full
    assert paths.notes == ()
    assert "attempted 12" in page.text
    assert "completed 3 carried out to the end 25 %, 95 % interval 9 to 53 %" in page.text.replace("\xa0", " ")
    assert "rejected 10" in page.text
    assert "retained 2 passed the success test 17 %, 95 % interval 5 to 45 %" in page.text.replace("\xa0", " ")
    assert "planning 9 75 % 47 to 91 % plan 9" in page.text
    assert "success test 1 8 %" in page.text
    assert "9 planning the left hand cannot reach <box> & co. from x = 1.20 m 3, 4, 5, 6, 7, 8 …" in page.text
    assert f"1 success test {simulated.REASON} 2" in page.text
    for fact in ("box_lift, D1", "35 numbers every 20 ms", "abababababab", "interpolation.steps 5"):
        assert fact in page.text


def test_page_shows_charts_pictures_and_video(full, dataset):
    paths, page = full
    assert page.tags.count("img") == 12
    assert paths.video is not None
    assert paths.video.parent == paths.html.parent
    assert paths.video.name in page.links
    embedded = next(link for link in page.links if link.startswith("data:video/mp4;base64,"))
    assert base64.b64decode(embedded.partition(",")[2]) == paths.video.read_bytes()
    assert "Attempt 0, retained" in page.text
    assert f"Attempt 2, rejected: {simulated.REASON}" in page.text
    # Every attempt is a mark in each of the charts of where things began.
    assert len(re.findall(r"<title>attempt 0: retained</title>", page.source)) == page.source.count(
        "title>attempt 11: "
    )
    assert page.source.count("title>attempt 11: ") >= 4
    assert "box mass" in page.text.lower()
    force = max(float(e.contacts["table/box"][:, 0].max()) for e in Dataset(dataset))
    assert "table and box" in page.text
    assert force > 0.0


def test_forces_stand_under_the_video_in_the_order_of_its_tiles(full, dataset):
    _, page = full
    lanes = re.findall(r'aria-label="Contact forces, ([^"]*)"', page.source)
    assert lanes == ["attempt 0 · retained", "attempt 1 · retained", "attempt 2 · rejected"]
    assert page.source.index("<video") < page.source.index(lanes[0] + '"')
    assert "table and box" in page.text.split("Force and contact over time")[1].split("attempt 0")[0]
    # The box stands on the table to the end of each episode, and the bar with it.
    ends = [float(end) for end in re.findall(r"table and box from [\d.]+ to ([\d.]+) s", page.source)]
    for name in ("demo_0", "demo_1"):
        duration = Dataset(dataset).episode(name).duration
        assert any(abs(end - duration) < 0.03 for end in ends)
    assert page.source.count('<line class="now"') == 3
    assert "currentTime" in page.source


def test_without_a_video_the_forces_are_still_there(tmp_path, dataset):
    page = Page(write_report(dataset, tmp_path, video=False).html)
    assert "Force and contact over time" in page.text
    assert "follows the video" not in page.text
    assert "script" not in page.tags


def test_page_needs_no_other_file_and_no_network(full):
    paths, page = full
    assert all(link.startswith("data:") or link == paths.video.name for link in page.links)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page.source.split("</style>")[0])
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", page.source)
    assert str(paths.html.parent) not in page.source
    assert list(paths.html.parent.glob(".*")) == []


def test_same_dataset_gives_the_same_page(tmp_path, dataset):
    pages = [write_report(dataset, tmp_path / name, video=False).html.read_bytes() for name in "ab"]
    assert pages[0] == pages[1]


def test_dataset_without_attempts(tmp_path):
    with DatasetWriter(tmp_path / "data", simulated.card("D0")) as writer:
        writer.finalise()
    paths = write_report(tmp_path / "data", tmp_path / "page.html")
    page = Page(paths.html)
    assert paths.html == tmp_path / "page.html"
    assert paths.video is None
    assert "attempted 0" in page.text
    assert "Nothing was attempted yet" in page.text
    assert "No attempt was rejected" in page.text
    assert "nan" not in page.text.lower().split()


def test_dataset_with_nothing_retained(tmp_path):
    with DatasetWriter(tmp_path / "data", simulated.card("D1")) as writer:
        for attempt in range(119):
            writer.add(simulated.unplanned(attempt), None)
        writer.finalise()
    paths = write_report(tmp_path / "data", tmp_path / "out")
    page = Page(paths.html)
    assert (paths.video, paths.notes) == (None, ())
    assert "retained 0 passed the success test 0 %, 95 % interval 0 to 3 %" in page.text.replace("\xa0", " ")
    assert "img" not in page.tags
    assert "planning 119 100 %" in page.text


def test_unfinished_dataset_is_reported_from_its_ledger(tmp_path, walks):
    with DatasetWriter(tmp_path / "data", simulated.card("D1")) as writer:
        writer.add(simulated.record(walks[0]), walks[0])
    paths = write_report(tmp_path / "data", tmp_path / "out")
    page = Page(paths.html)
    assert "attempted 1" in page.text
    assert "retained 1" in page.text
    assert any("not gathered yet" in note for note in paths.notes)
    assert "not gathered yet" in page.text
    assert str(tmp_path) not in page.source


def test_ledger_alone_is_enough(tmp_path, dataset):
    (tmp_path / "some_run").mkdir()
    shutil.copy(dataset / "ledger.jsonl", tmp_path / "some_run")
    paths = write_report(tmp_path / "some_run", tmp_path / "out")
    page = Page(paths.html)
    assert "some_run" in page.text
    assert "attempted 12" in page.text
    assert "There is no dataset.yaml" in page.text
    assert "svg" in page.tags


def test_ledger_without_initial_states_or_timings(tmp_path):
    bare = simulated.unplanned(0).model_copy(update={"initial": {}, "timings": {}, "wall_seconds": 0.0})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "ledger.jsonl").write_bytes(bare.line())
    page = Page(write_report(tmp_path / "run", tmp_path / "out").html)
    assert "attempted 1" in page.text
    assert "Where attempts began" not in page.text


def test_damaged_episodes_are_said_on_the_page(tmp_path, dataset):
    shutil.copytree(dataset, tmp_path / "data")
    demos = tmp_path / "data" / "demos.hdf5"
    demos.write_bytes(demos.read_bytes()[: demos.stat().st_size // 2])
    paths = write_report(tmp_path / "data", tmp_path / "out")
    page = Page(paths.html)
    assert "attempted 12" in page.text
    assert any(note.startswith("Episodes are not shown: demos.hdf5") for note in paths.notes)
    assert "Attempt 2, rejected" in page.text, "what can be read is still shown"


def test_episodes_of_another_scene_are_said_on_the_page(tmp_path, walks):
    other = replace(walks[0], initial=replace(walks[0].initial, model_hash="0123456789abcdef"))
    with DatasetWriter(tmp_path / "data", simulated.card("D1")) as writer:
        writer.add(simulated.record(other), other)
        writer.finalise()
    paths = write_report(tmp_path / "data", tmp_path / "out")
    assert paths.video is None
    assert any("recorded with model 0123456789abcdef" in note for note in paths.notes)
    assert "There is no video" in Page(paths.html).text
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["report.html"]


def test_what_is_no_dataset_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="no such folder"):
        write_report(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"neither ledger\.jsonl nor dataset\.yaml"):
        write_report(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "empty" / "ledger.jsonl").write_bytes(b'{"attempt": 0}\n')
    with pytest.raises(DatasetError, match="line 1"):
        write_report(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "empty" / "ledger.jsonl").write_bytes(simulated.unplanned(0).line())
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match="cannot be written"):
        write_report(tmp_path / "empty", tmp_path / "file" / "page.html")
    assert not (tmp_path / "out").exists()
