# SPDX-License-Identifier: Apache-2.0
"""A node's parameters choose its mask source; what does not fit is refused in one line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from supple.errors import AssetError, SettingError, SuppleError, UnknownNameError
from supple.nodes.mask_parameters import label_names, mask_source
from supple.perception.geometric import GeometricMasks

sys.path.append(str(Path(__file__).resolve().parents[1] / "perception"))

from drawn import Patch, draw
from tiny_segmenter import write_sam

LOOKS = Path(__file__).resolve().parents[2] / "config/perception/box_lift.yaml"


@pytest.fixture
def source(node_with):
    """Return a function that makes the source that a command line asks for."""

    def make(kind: str, objects: tuple[str, ...] = ("box",), **parameters: object):
        return mask_source(node_with(**parameters), kind, objects)

    return make


def test_geometric_reads_how_objects_look(source):
    chosen = source("geometric", looks=LOOKS)
    assert isinstance(chosen.source, GeometricMasks)
    assert chosen.geometric is chosen.source


def test_labels_and_boxes_come_from_topics(source):
    assert source("labels") == source("detections") == (None, None)


def test_a_model_is_told_where_to_look_by_boxes_or_by_looks(source, tmp_path):
    encoder, decoder = write_sam(tmp_path)
    files = {"encoder": encoder, "decoder": decoder}
    colors = {"red": (200, 60, 50), "blue": (40, 90, 200)}
    drawn, truth = draw({"red": Patch(40, 60, 90, 80), "blue": Patch(190, 110, 80, 90)})
    rgb = drawn.rgb.copy()
    for name, mask in truth.items():
        # One colour each: the tiny model goes by it.
        rgb[mask] = colors[name]
    frame = replace(drawn, rgb=rgb)
    prompted = source("promptable", ("red", "blue"), prompts="[red 40 60 130 140 85 100, blue 230 155]", **files)
    assert prompted.geometric is None
    looks = tmp_path / "looks.yaml"
    rows = [f"  {name}: {{size: [0.45, 0.45, 0.05], colors: [{list(color)}]}}\n" for name, color in colors.items()]
    looks.write_text("objects:\n" + "".join(rows), encoding="utf-8")
    found = source("promptable", ("red", "blue"), prompts="[red 40 60 130 140 85 100]", looks=looks, **files)
    assert isinstance(found.geometric, GeometricMasks)
    for chosen in (prompted, found):
        masks = chosen.source.masks(frame)
        assert chosen.source.runs == 1
        for name in colors:
            assert np.sum(masks[name] & truth[name]) / np.sum(masks[name] | truth[name]) > 0.8, name


@pytest.mark.parametrize(
    ("kind", "objects", "parameters", "error", "message"),
    [
        ("geometry", ("box",), {}, UnknownNameError, "did you mean 'geometric'"),
        ("geometric", ("box",), {}, SettingError, "parameter looks"),
        ("geometric", ("bux",), {"looks": LOOKS}, UnknownNameError, "did you mean 'box'"),
        ("geometric", ("box",), {"looks": "nowhere.yaml"}, SettingError, r"nowhere\.yaml"),
        ("promptable", ("box",), {}, UnknownNameError, "object of parameter prompts 'box'"),
        ("promptable", ("box",), {"prompts": "[box 1 2 3]"}, SettingError, "'name left top right bottom column row'"),
        ("promptable", ("box",), {"prompts": "[box 10 10 5 20]"}, SuppleError, "left < right"),
        (
            "promptable",
            ("box",),
            {"prompts": "[box 1 2 30 40]", "encoder": "none.onnx", "decoder": "none.onnx"},
            AssetError,
            r"none\.onnx",
        ),
    ],
)
def test_what_does_not_fit_is_named(source, kind, objects, parameters, error, message):
    with pytest.raises(error, match=message):
        source(kind, objects, **parameters)


def test_labels_can_be_named_by_parameters(node_with):
    assert label_names(node_with()) == {}
    assert label_names(node_with(label_names="['1 cup', '40 blue bowl']")) == {1: "cup", 40: "blue bowl"}


@pytest.mark.parametrize("text", ["cup", "1", "-1 cup", "1.5 cup"])
def test_labels_that_name_nothing_are_refused(node_with, text):
    with pytest.raises(SettingError, match="'number name'"):
        label_names(node_with(label_names=f"['{text}']"))
