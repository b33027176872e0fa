# SPDX-License-Identifier: Apache-2.0
"""The promptable source over real ONNX files with the inputs and outputs of SAM's and SAM 2's exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from drawn import CAMERA, Patch, draw
from tiny_segmenter import write_sam, write_sam2

from supple.errors import AssetError, SettingError, UnknownNameError
from supple.perception.geometric import GeometricMasks, ObjectModel
from supple.perception.masks import validate_masks
from supple.perception.promptable import OnnxSegmenter, Prompt, PromptableMasks

A, B = Patch(40, 60, 90, 80, color=(200, 60, 50)), Patch(190, 110, 80, 90, color=(40, 90, 200))
MIDDLE_A, MIDDLE_B = (85.0, 100.0), (230.0, 155.0)
# A texture of its own would be more than one colour for a model that goes by colour.
PLAIN_RGB = {"a": (200, 60, 50), "b": (40, 90, 200)}


def plain(patches, index=0):
    """Return a frame whose patches are of one colour each, and their masks."""
    frame, masks = draw(patches, index)
    rgb = frame.rgb.copy()
    for name, mask in masks.items():
        rgb[mask] = PLAIN_RGB.get(name, (70, 70, 75))
    return replace(frame, rgb=rgb), masks


def speckled(patches, index=0):
    """Return a frame whose patches have faint marks that flow can follow."""
    frame, masks = plain(patches, index)
    texture = draw(patches, index)[0].rgb.astype(int)
    marked = np.clip(frame.rgb + (texture - frame.rgb) // 6, 0, 255).astype(np.uint8)
    return replace(frame, rgb=marked), masks


def overlap(first, second):
    return np.sum(first & second) / np.sum(first | second)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folders = {name: tmp_path_factory.mktemp(name) for name in ("sam", "raw", "large_only", "sam2")}
    return {
        "sam": write_sam(folders["sam"]),
        "raw": write_sam(folders["raw"], raw=True),
        "large_only": write_sam(folders["large_only"], small_masks=False),
        "sam2": write_sam2(folders["sam2"]),
    }


@pytest.mark.parametrize("kind", ["sam", "raw", "large_only", "sam2"])
@pytest.mark.parametrize(("name", "middle"), [("a", MIDDLE_A), ("b", MIDDLE_B)])
def test_each_kind_of_export_segments_the_object_at_the_prompt(models, kind, name, middle):
    frame, masks = plain({"a": A, "b": B})
    model = OnnxSegmenter(*models[kind])
    embedding = model.embed(frame.rgb)
    for prompt in (Prompt(inside=(middle,)), Prompt.around(masks[name])):
        mask, score = model.segment(embedding, prompt)
        assert mask.shape == frame.shape
        # The tiny models see in cells of 16 pixels of 1024.
        assert overlap(mask, masks[name]) > 0.85
        assert score == pytest.approx(1.0 - masks[name].mean() * (0.75 if kind != "sam2" else 1.0), abs=0.03)


def test_tall_images_are_padded_on_the_right(models):
    frame, masks = plain({"a": A, "b": B})
    tall, truth = np.ascontiguousarray(frame.rgb.transpose(1, 0, 2)), masks["b"].T
    for kind in ("sam", "raw", "sam2"):
        model = OnnxSegmenter(*models[kind])
        mask, _ = model.segment(model.embed(tall), Prompt(inside=(MIDDLE_B[::-1],)))
        assert overlap(mask, truth) > 0.85


def test_prompts_reach_the_model_in_its_own_pixels():
    points, labels = Prompt((10, 20, 30, 40), ((15, 25),), ((5, 6),)).arrays((2.0, 3.0))
    assert points.tolist() == [[[30, 75], [10, 18], [20, 60], [60, 120]]]
    assert labels.tolist() == [[1, 0, 2, 3]]
    points, labels = Prompt(inside=((15, 25),)).arrays((2.0, 3.0))
    assert (points.tolist(), labels.tolist()) == ([[[30, 75], [0, 0]]], [[1, -1]])


def test_a_prompt_round_a_mask_lies_on_it():
    ring = np.zeros((40, 60), bool)
    ring[5:35, 10:50] = True
    ring[10:30, 15:40] = False
    prompt = Prompt.around(ring)
    assert prompt.box == (10.0, 5.0, 50.0, 35.0)
    ((column, row),) = prompt.inside
    assert ring[int(row), int(column)]
    assert 40 <= column < 50


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Prompt(), "a box or a pixel"),
        (lambda: Prompt(outside=((1, 2),)), "a box or a pixel"),
        (lambda: Prompt((10, 10, 5, 20)), "left < right"),
        (lambda: Prompt(inside=((float("nan"), 1),)), "finite"),
        (lambda: Prompt.around(np.zeros((4, 4), bool)), "empty"),
        (lambda: PromptableMasks(None, [], every=0), "every"),
        (lambda: PromptableMasks(None, [], least_score=1.5), "least_score"),
        (lambda: PromptableMasks(None, ["a", "a"]), "names that differ"),
    ],
)
def test_prompts_and_settings_that_make_no_sense_are_refused(make, said):
    with pytest.raises(SettingError, match=said):
        make()


def test_a_missing_file_says_what_to_get(models, tmp_path):
    with pytest.raises(AssetError, match=r"none\.onnx: no such file; .*pip install samexporter"):
        OnnxSegmenter(tmp_path / "none.onnx", models["sam"][1])
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    with pytest.raises(AssetError, match=r"broken\.onnx: no usable ONNX model"):
        OnnxSegmenter(models["sam"][0], broken)


def test_files_of_another_kind_are_refused_by_what_they_take(models):
    with pytest.raises(AssetError, match=r"encoder\.onnx: no mask decoder: it takes image and gives image_embeddings"):
        OnnxSegmenter(models["sam"][0], models["sam"][0])
    with pytest.raises(AssetError, match=r"decoder2\.onnx takes high_res_feats_0, .*gives image_embeddings"):
        OnnxSegmenter(models["sam"][0], models["sam2"][1])
    with pytest.raises(AssetError, match="no image encoder"):
        OnnxSegmenter(models["sam"][1], models["sam"][1])


def test_an_embedding_of_another_name_is_still_the_embedding(models, tmp_path):
    model = onnx.load(str(models["sam"][0]))
    for node in model.graph.node:
        node.output[:] = ["features" if name == "image_embeddings" else name for name in node.output]
    model.graph.output[0].name = "features"
    renamed = tmp_path / "renamed.onnx"
    onnx.save(model, str(renamed))
    frame, masks = plain({"a": A, "b": B})
    segmenter = OnnxSegmenter(renamed, models["sam"][1])
    assert overlap(segmenter.segment(segmenter.embed(frame.rgb), Prompt(inside=(MIDDLE_A,)))[0], masks["a"]) > 0.85


def moving(index):
    return {"a": replace(A, column=40 + 4 * index, row=60 + 2 * index), "b": replace(B, column=190 - 3 * index)}


def test_objects_are_followed_between_runs_of_the_model(models):
    source = PromptableMasks(
        OnnxSegmenter(*models["sam"]),
        ["a", "b"],
        {"a": Prompt(inside=(MIDDLE_A,)), "b": Prompt(inside=(MIDDLE_B,))},
        every=4,
    )
    for index in range(10):
        frame, truth = speckled(moving(index), index)
        masks = validate_masks(source.masks(frame), frame)
        assert set(masks) == {"a", "b"}
        assert min(overlap(masks[name], truth[name]) for name in masks) > 0.8
        assert source.runs == 1 + index // 4
    assert source.refused == 0


def test_what_hides_an_object_is_not_in_its_mask_and_the_object_comes_back(models):
    source = PromptableMasks(OnnxSegmenter(*models["sam"]), ["a"], {"a": Prompt(inside=(MIDDLE_A,))}, every=3)
    for index in range(12):
        bar = Patch(0, 50, 20 + 8 * min(index, 11 - index), 110, depth=0.5, color=(70, 70, 75))
        frame, truth = speckled({"a": A, "bar": bar}, index)
        masks = source.masks(frame)
        if "a" in masks:
            assert np.sum(masks["a"] & truth["bar"]) < 0.12 * masks["a"].sum()
    assert overlap(masks["a"], truth["a"]) > 0.8


def test_an_object_that_has_left_is_not_seen_until_it_is_prompted_again(models):
    source = PromptableMasks(OnnxSegmenter(*models["sam"]), ["a"], {"a": Prompt(inside=(MIDDLE_A,))}, every=2)
    elsewhere = replace(A, column=220, row=20)
    seen = []
    for index in range(8):
        frame, _ = speckled({"a": A if index < 2 else elsewhere}, index)
        seen.append("a" in source.masks(frame))
    assert seen == [True, True, *[False] * 6]
    assert source.refused > 0
    source.prompt("a", Prompt(inside=((265.0, 60.0),)))
    frame, truth = speckled({"a": elsewhere}, 8)
    assert overlap(source.masks(frame)["a"], truth["a"]) > 0.85
    with pytest.raises(UnknownNameError, match="'c'"):
        source.prompt("c", Prompt(inside=((1.0, 1.0),)))


def test_another_source_says_where_to_look_at_first_and_when_an_object_is_lost(models):
    looks = {name: ObjectModel((PLAIN_RGB[name],), (0.45, 0.45, 0.05)) for name in ("a", "b")}
    finder = GeometricMasks(looks)
    source = PromptableMasks(OnnxSegmenter(*models["sam"]), ["a", "b"], finder=finder, every=2)
    elsewhere = replace(A, column=220, row=20)
    for index in range(10):
        frame, truth = speckled({"a": A if index < 4 else elsewhere}, index)
        masks = source.masks(frame)
        assert list(masks) == ["a"]
        assert overlap(masks["a"], truth["a"]) > 0.8
    assert source.runs == 5
    # Where nothing is found, no picture is encoded for nothing.
    idle = PromptableMasks(OnnxSegmenter(*models["sam"]), ["b"], finder=finder)
    assert idle.masks(frame) == {}
    assert idle.runs == 0


def test_a_mask_that_the_model_thinks_little_of_is_not_used(models):
    huge = Patch(20, 20, 280, 200)
    frame, _ = plain({"a": huge})
    # Object and background are about as large, so neither candidate is good.
    source = PromptableMasks(OnnxSegmenter(*models["sam2"]), ["a"], {"a": Prompt(inside=(MIDDLE_A,))}, least_score=0.9)
    assert source.masks(frame) == {}
    assert source.refused == 1


def test_two_masks_do_not_claim_one_pixel(models):
    frame, masks = plain({"a": A, "b": B})
    same = Prompt(inside=(MIDDLE_A,))
    source = PromptableMasks(OnnxSegmenter(*models["sam"]), ["a", "b"], {"a": same, "b": same})
    assert len(validate_masks(source.masks(frame), frame)) == 1
    assert CAMERA.width == masks["a"].shape[1]
