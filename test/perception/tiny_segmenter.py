# SPDX-License-Identifier: Apache-2.0
"""Very small ONNX models with the inputs and outputs of SAM's and SAM 2's exports.

They segment by colour: a pixel belongs to the mask if its part of the embedding is like that at the foreground point.
Of two candidates, the mask and all the rest, the smaller one gets the better score.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["write_sam", "write_sam2"]

_SIDE = 1024
_FLOAT, _INT = TensorProto.FLOAT, TensorProto.INT64
_LIKE = 0.15


class _Graph:
    def __init__(self) -> None:
        self.nodes, self.constants = [], []

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def add(self, kind: str, *inputs: str, out: str | None = None, **attributes: object) -> str:
        out = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def save(self, path: Path, inputs: dict[str, list], outputs: dict[str, list]) -> Path:
        values = [
            [helper.make_tensor_value_info(name, _FLOAT, shape) for name, shape in side.items()]
            for side in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "tiny", *values, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, str(path))
        return path

    def pooled(self, image: str, size: int, channels: int, out: str) -> str:
        small = self.add("AveragePool", image, kernel_shape=[size, size], strides=[size, size])
        pads = self.constant([0, 0, 0, 0, 0, channels - 3, 0, 0], np.int64)
        return self.add("Pad", small, pads, out=out)


def write_sam(folder: Path, raw: bool = False, small_masks: bool = True) -> tuple[Path, Path]:
    """Write SAM's encoder and decoder.

    Args:
        folder: Where to.
        raw: The encoder takes the resized image (height, width, 3) and pads it itself.
        small_masks: The decoder gives low_res_masks as well.
    """
    encoder = _Graph()
    image = "image"
    if raw:
        normal = encoder.add(
            "Div",
            encoder.add("Sub", image, encoder.constant([123.675, 116.28, 103.53])),
            encoder.constant([58.395, 57.12, 57.375]),
        )
        planes = encoder.add("Transpose", normal, perm=[2, 0, 1])
        batch = encoder.add("Unsqueeze", planes, encoder.constant([0], np.int64))
        size = encoder.add("Slice", encoder.add("Shape", batch), *(encoder.constant([i], np.int64) for i in (2, 4)))
        missing = encoder.add("Sub", encoder.constant([_SIDE, _SIDE], np.int64), size)
        pads = encoder.add("Concat", encoder.constant([0] * 6, np.int64), missing, axis=0)
        image = encoder.add("Pad", batch, pads)
    encoder.pooled(image, 16, 256, "image_embeddings")
    shape = ["height", "width", 3] if raw else [1, 3, _SIDE, _SIDE]
    first = encoder.save(folder / "encoder.onnx", {"image": shape}, {"image_embeddings": [1, 256, 64, 64]})
    decoder = _Graph()
    logits = _by_color(decoder, "image_embeddings", "image_embeddings")
    low = decoder.add("Resize", logits, "", "", decoder.constant([1, 2, 256, 256], np.int64), mode="linear",
                      out="low_res_masks" if small_masks else "low")  # fmt: skip
    large = decoder.add("Resize", low, "", "", decoder.constant([1, 2, _SIDE, _SIDE], np.int64), mode="linear")
    # Both sides of the picture as the longest one would fill the square.
    size = decoder.add("Cast", "orig_im_size", to=_INT)
    longest = decoder.add("ReduceMax", "orig_im_size", keepdims=1)
    used = decoder.add("Div", decoder.add("Mul", "orig_im_size", decoder.constant([float(_SIDE)])), longest)
    end = decoder.add("Cast", used, to=_INT)
    cut = decoder.add("Slice", large, decoder.constant([0, 0], np.int64), end, decoder.constant([2, 3], np.int64))
    whole = decoder.add("Concat", decoder.constant([1, 2], np.int64), size, axis=0)
    decoder.add("Resize", cut, "", "", whole, mode="linear", out="masks")
    outputs = {"masks": [1, 2, "h", "w"], "iou_predictions": [1, 2]}
    if small_masks:
        outputs["low_res_masks"] = [1, 2, 256, 256]
    inputs = {"image_embeddings": [1, 256, 64, 64], **_prompt_inputs(), "orig_im_size": [2]}
    return first, decoder.save(folder / "decoder.onnx", inputs, outputs)


def write_sam2(folder: Path) -> tuple[Path, Path]:
    """Write SAM 2's encoder, which stretches the image and gives finer features too, and decoder."""
    encoder = _Graph()
    encoder.pooled("image", 4, 32, "high_res_feats_0")
    encoder.pooled("image", 8, 64, "high_res_feats_1")
    encoder.pooled("image", 16, 256, "image_embed")
    features = {
        "high_res_feats_0": [1, 32, 256, 256],
        "high_res_feats_1": [1, 64, 128, 128],
        "image_embed": [1, 256, 64, 64],
    }
    first = encoder.save(folder / "encoder2.onnx", {"image": [1, 3, _SIDE, _SIDE]}, features)
    decoder = _Graph()
    logits = _by_color(decoder, "high_res_feats_0", "image_embed")
    decoder.add("Identity", logits, out="masks")
    outputs = {"masks": [1, 2, 256, 256], "iou_predictions": [1, 2]}
    return first, decoder.save(folder / "decoder2.onnx", {**features, **_prompt_inputs()}, outputs)


def _prompt_inputs() -> dict[str, list]:
    return {
        "point_coords": [1, "points", 2],
        "point_labels": [1, "points"],
        "mask_input": [1, 1, 256, 256],
        "has_mask_input": [1],
    }


def _by_color(graph: _Graph, map_name: str, point_map: str) -> str:
    """Add the logits of both candidates, shape (1, 2, h, w), and their scores."""
    coordinates = graph.add("Sub", graph.add("Mul", "point_coords", graph.constant(2.0 / _SIDE)), graph.constant(1.0))
    places = graph.add("Unsqueeze", coordinates, graph.constant([1], np.int64))
    sampled = graph.add("GridSample", point_map, places, mode="nearest", padding_mode="border")
    inside = graph.add("Cast", graph.add("Equal", "point_labels", graph.constant(1.0)), to=_FLOAT)
    weight = graph.add("Unsqueeze", inside, graph.constant([1, 2], np.int64))
    total = graph.add("ReduceSum", graph.add("Mul", sampled, weight), graph.constant([3], np.int64))
    count = graph.add("ReduceSum", weight, graph.constant([3], np.int64))
    wanted = graph.add("Slice", graph.add("Div", total, count), graph.constant([0], np.int64),
                       graph.constant([3], np.int64), graph.constant([1], np.int64))  # fmt: skip
    colors = graph.add("Slice", map_name, graph.constant([0], np.int64), graph.constant([3], np.int64),
                       graph.constant([1], np.int64))  # fmt: skip
    wanted = graph.add("Reshape", wanted, graph.constant([1, 3, 1, 1], np.int64))
    away = graph.add("Sub", colors, wanted)
    square = graph.add("ReduceSum", graph.add("Mul", away, away), graph.constant([1], np.int64))
    like = graph.add("Sub", graph.constant(_LIKE), square)
    both = graph.add("Concat", like, graph.add("Neg", like), axis=1)
    # The small candidate is the better one.
    share = graph.add("ReduceMean", graph.add("Cast", graph.add("Greater", both, graph.constant(0.0)), to=_FLOAT),
                      axes=[2, 3], keepdims=0)  # fmt: skip
    graph.add("Sub", graph.constant(1.0), share, out="iou_predictions")
    return both
