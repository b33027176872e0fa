# SPDX-License-Identifier: Apache-2.0
"""Which mask source a node uses, as its parameters say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from rclpy.node import Node

from supple.errors import SettingError, UnknownNameError
from supple.nodes.lifecycle import declare_parameter
from supple.perception.geometric import GeometricMasks
from supple.perception.looks import Looks
from supple.perception.masks import MaskSource
from supple.perception.promptable import OnnxSegmenter, Prompt, PromptableMasks

__all__ = ["DETECTIONS", "LABELS", "MASK_SOURCES", "ChosenSource", "label_names", "mask_source"]

LABELS = "labels"
"""The source that is a topic: a label image, from the simulator or from any other node."""

DETECTIONS = "detections"
"""The source that is a topic: boxes round objects, from any other node."""

MASK_SOURCES = ("geometric", LABELS, DETECTIONS, "promptable")
"""Where masks can come from."""


class ChosenSource(NamedTuple):
    """A mask source.

    Attributes:
        source: Where masks come from; None for a topic.
        geometric: What in it goes by colour and geometry, and wants to know where up is; None without that.
    """

    source: MaskSource | None
    geometric: GeometricMasks | None


def mask_source(node: Node, kind: str, objects: Sequence[str]) -> ChosenSource:
    """Return the source that a node's parameters ask for.

    Args:
        node: Whose parameters are declared.
        kind: One of ``MASK_SOURCES``.
        objects: Names of the objects that must be found.

    Raises:
        SuppleError: Another source, a file that is missing or malformed, or an object that it does not know.
    """
    looks = declare_parameter(
        node, "looks", "", "geometric: file that says what the objects look like; promptable: it then finds them first"
    )
    encoder = declare_parameter(node, "encoder", "", "promptable: ONNX file of the model's image encoder")
    decoder = declare_parameter(node, "decoder", "", "promptable: ONNX file of the model's mask decoder")
    prompts = declare_parameter(
        node,
        "prompts",
        [""],
        "promptable: where objects are in the first picture in px, each 'name left top right bottom column row'; "
        "box or pixel may be left out",
    )
    every = declare_parameter(node, "every", 5, "promptable: the model runs on every so many-th picture", minimum=1)
    if kind not in MASK_SOURCES:
        raise UnknownNameError("mask_source", kind, MASK_SOURCES)
    if kind in (LABELS, DETECTIONS):
        return ChosenSource(None, None)
    if kind == "geometric":
        if not looks:
            raise SettingError("parameter looks: the mask source geometric needs a file that says how objects look")
        geometric = _geometric(looks, objects)
        return ChosenSource(geometric, geometric)
    boxes = dict(_prompt(text) for text in prompts if text)
    finder = _geometric(looks, objects) if looks and set(objects) - set(boxes) else None
    if finder is None:
        _check(objects, boxes, "parameter prompts")
    return ChosenSource(PromptableMasks(OnnxSegmenter(encoder, decoder), objects, boxes, finder, every), finder)


def _geometric(path: str, objects: Sequence[str]) -> GeometricMasks:
    looks = Looks.read(path)
    _check(objects, looks.objects, Path(path).name)
    return looks.source()


def label_names(node: Node) -> dict[int, str]:
    """Return the object that each pixel value of a label image stands for, as parameters say; empty: a topic says it.

    Raises:
        SettingError: A text that is not a whole number and a name.
    """
    texts = declare_parameter(node, "label_names", [""], "labels: 'number name' of each; empty: the topic mask/labels")
    found = {}
    for text in filter(None, texts):
        number, _, name = text.partition(" ")
        if not number.isdecimal() or not name.strip():
            raise SettingError(f"parameter label_names: expected 'number name', got {text!r}")
        found[int(number)] = name.strip()
    return found


def _check(objects: Sequence[str], known: Collection[str], where: str) -> None:
    for name in objects:
        if name not in known:
            raise UnknownNameError(f"object of {where}", name, known)


def _prompt(text: str) -> tuple[str, Prompt]:
    """Return the object and the prompt that a text holds: a box, a pixel, or a box and a pixel."""
    name, *rest = text.split()
    try:
        numbers = tuple(float(word) for word in rest)
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 4, 6):
        raise SettingError(f"parameter prompts: expected 'name left top right bottom column row' in px, got {text!r}")
    box = None if len(numbers) == 2 else (numbers[0], numbers[1], numbers[2], numbers[3])
    inside = () if len(numbers) == 4 else ((numbers[-2], numbers[-1]),)
    return name, Prompt(box, inside)
