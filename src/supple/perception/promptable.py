# SPDX-License-Identifier: Apache-2.0
"""Masks from a promptable segmentation model (SAM, MobileSAM, SAM 2, as two ONNX files) and flow between its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from numpy.typing import NDArray

from supple.errors import AssetError, SettingError, UnknownNameError
from supple.perception.frames import RgbdFrame
from supple.perception.masks import Mask, MaskSource
from supple.perception.propagation import FlowPropagator

__all__ = ["Embedding", "OnnxSegmenter", "Prompt", "PromptableMasks"]

_SIDE = 1024
_MEAN, _STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
_PROMPT_INPUTS = ("point_coords", "point_labels", "mask_input", "has_mask_input")
_OUTSIDE, _INSIDE, _CORNER_1, _CORNER_2, _PADDING = 0, 1, 2, 3, -1
_EXPORT = (
    "Supple brings no weights: export an encoder and a decoder of SAM, MobileSAM or SAM 2 to ONNX (for example with "
    "`pip install samexporter`), and give the paths of both files"
)


@dataclass(frozen=True)
class Prompt:
    """Where an object is in one frame.

    Attributes:
        box: Its bounding box in [px]: left, top, right, bottom.
        inside: Pixels (column, row) on it.
        outside: Pixels (column, row) beside it, or on what must not be taken for it.

    Raises:
        SettingError: Neither a box nor a pixel on it, or a box without area.
    """

    box: tuple[float, float, float, float] | None = None
    inside: tuple[tuple[float, float], ...] = ()
    outside: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if self.box is None and not self.inside:
            raise SettingError("prompt: expected a box or a pixel on the object")
        numbers = np.array([*(self.box or ()), *(value for pixel in (*self.inside, *self.outside) for value in pixel)])
        if not np.isfinite(numbers).all():
            raise SettingError(f"prompt: expected finite pixels, got {numbers.tolist()}")
        if self.box is not None and not (self.box[0] < self.box[2] and self.box[1] < self.box[3]):
            raise SettingError(f"prompt: expected left < right and top < bottom, got {self.box}")

    @classmethod
    def around(cls, mask: Mask) -> Prompt:
        """Return the bounding box of a mask, with the pixel that lies deepest inside it.

        Raises:
            SettingError: The mask is empty.
        """
        if not mask.any():
            raise SettingError("prompt: an empty mask shows no place")
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        box = (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))
        # A rim of zeros, so that the picture's edge counts as an edge of the mask.
        depth = cv2.distanceTransform(np.pad(mask.astype(np.uint8), 1), cv2.DIST_L2, 3)[1:-1, 1:-1]
        row, column = np.unravel_index(int(np.argmax(depth)), depth.shape)
        return cls(box, ((float(column), float(row)),))

    def arrays(self, scale: tuple[float, float]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return points (1, n, 2) in the model's pixels and their labels (1, n).

        Args:
            scale: The model's pixels per pixel of the image, along columns and rows.
        """
        rows = [(*pixel, _INSIDE) for pixel in self.inside] + [(*pixel, _OUTSIDE) for pixel in self.outside]
        if self.box is None:
            # The exported decoders were trained with one more point when there is no box.
            rows.append((0.0, 0.0, _PADDING))
        else:
            rows += [(*self.box[:2], _CORNER_1), (*self.box[2:], _CORNER_2)]
        table = np.array(rows, dtype=np.float32)
        return (table[:, :2] * np.array(scale, np.float32))[None], table[:, 2][None]


@dataclass(frozen=True)
class Embedding:
    """An image as the decoder wants it.

    Attributes:
        features: The encoder's outputs, by the decoder's names.
        shape: Height and width of the image in [px].
        scale: The model's pixels per pixel of the image, along columns and rows.
        used: Height and width of the model's square that the image fills, in its pixels.
    """

    features: Mapping[str, NDArray[np.float32]]
    shape: tuple[int, int]
    scale: tuple[float, float]
    used: tuple[int, int]


class OnnxSegmenter:
    """A promptable segmentation model in two ONNX files, run by ONNX Runtime on the CPU.

    The files are those that the usual exporters write. An encoder takes either the normalised square image
    (1, 3, side, side) or the resized one (height, width, 3); a decoder takes its outputs together with
    ``point_coords``, ``point_labels``, ``mask_input`` and ``has_mask_input``. A decoder that also asks for
    ``orig_im_size`` is SAM's, whose image keeps its aspect and is padded; without it is SAM 2's, whose image is
    stretched.

    Args:
        encoder: Path of the image encoder.
        decoder: Path of the prompt and mask decoder.
        threads: Threads to run with.

    Raises:
        AssetError: A file is missing, no ONNX model, or has other inputs and outputs; says how to get the right ones.
    """

    def __init__(self, encoder: Path | str, decoder: Path | str, threads: int = 1) -> None:
        self._encoder, self._decoder = (_session(Path(path), threads) for path in (encoder, decoder))
        self._wanted = {entry.name for entry in self._decoder.get_inputs()}
        self._given = [entry.name for entry in self._encoder.get_outputs()]
        self._results = [entry.name for entry in self._decoder.get_outputs()]
        image = self._encoder.get_inputs()[0]
        self._input, self._rank = image.name, len(image.shape)
        missing = [name for name in _PROMPT_INPUTS if name not in self._wanted]
        if missing or "iou_predictions" not in self._results or not {"masks", "low_res_masks"} & set(self._results):
            raise AssetError(
                f"{decoder}: no mask decoder: it takes {', '.join(sorted(self._wanted))} and gives "
                f"{', '.join(self._results)}; {_EXPORT}"
            )
        if self._rank not in (3, 4) or len(self._encoder.get_inputs()) != 1:
            shape = ", ".join(str(size) for size in image.shape)
            raise AssetError(f"{encoder}: no image encoder: its input {image.name!r} has shape ({shape}); {_EXPORT}")
        self._keeps_aspect = "orig_im_size" in self._wanted
        self._features = self._pair(encoder, decoder)
        side = image.shape[-1]
        self._side = side if self._rank == 4 and isinstance(side, int) else _SIDE

    def _pair(self, encoder: Path | str, decoder: Path | str) -> dict[str, str]:
        """Return which of the decoder's inputs takes which of the encoder's outputs."""
        wanted = sorted(self._wanted - {*_PROMPT_INPUTS, "orig_im_size"})
        pairs = {name: name for name in wanted if name in self._given}
        rest = [name for name in wanted if name not in pairs], [name for name in self._given if name not in pairs]
        # The embedding itself goes by several names; with one left on both sides there is no doubt.
        if len(rest[0]) == 1 and len(rest[1]) == 1:
            pairs[rest[0][0]] = rest[1][0]
        elif rest[0]:
            raise AssetError(
                f"{decoder} takes {', '.join(rest[0])}, which {encoder} does not give (it gives "
                f"{', '.join(self._given)}): not of one model? {_EXPORT}"
            )
        return pairs

    def embed(self, rgb: NDArray[np.uint8]) -> Embedding:
        """Return what the decoder needs of an image; by far the longest part of the work, once per image.

        Args:
            rgb: Colours, uint8, shape (height, width, 3).
        """
        height, width = rgb.shape[:2]
        if self._keeps_aspect or self._rank == 3:
            factor = self._side / max(height, width)
            used = (int(height * factor + 0.5), int(width * factor + 0.5))
        else:
            used = (self._side, self._side)
        resized = cv2.resize(rgb, (used[1], used[0]), interpolation=cv2.INTER_LINEAR)
        image: NDArray[np.float32] = resized.astype(np.float32)
        if self._rank == 4:
            normal = (image - np.array(_MEAN, np.float32)) / np.array(_STD, np.float32)
            square = np.zeros((self._side, self._side, 3), np.float32)
            square[: used[0], : used[1]] = normal
            image = np.ascontiguousarray(square.transpose(2, 0, 1)[None])
        outputs = dict(zip(self._given, self._encoder.run(None, {self._input: image}), strict=True))
        features = {name: outputs[given] for name, given in self._features.items()}
        return Embedding(features, (height, width), (used[1] / width, used[0] / height), used)

    def segment(self, embedding: Embedding, prompt: Prompt) -> tuple[Mask, float]:
        """Return the best mask for a prompt, shape (height, width), and how good the model thinks it is, 0 to 1."""
        points, labels = prompt.arrays(embedding.scale)
        feed = {
            **embedding.features,
            "point_coords": points,
            "point_labels": labels,
            "mask_input": np.zeros((1, 1, self._side // 4, self._side // 4), np.float32),
            "has_mask_input": np.zeros(1, np.float32),
        }
        if self._keeps_aspect:
            feed["orig_im_size"] = np.array(embedding.shape, np.float32)
        outputs = dict(zip(self._results, self._decoder.run(None, feed), strict=True))
        scores = outputs["iou_predictions"].reshape(-1)
        best = int(np.argmax(scores))
        # Small logits are preferred: the size that some exports give the large ones is frozen in the file.
        small = "low_res_masks" in outputs
        logits = outputs["low_res_masks" if small else "masks"]
        logits = logits.reshape(-1, *logits.shape[-2:])[best]
        height, width = embedding.shape
        if small or logits.shape == (self._side, self._side):
            logits = cv2.resize(logits, (self._side, self._side), interpolation=cv2.INTER_LINEAR)
            logits = logits[: embedding.used[0], : embedding.used[1]]
        if logits.shape != embedding.shape:
            logits = cv2.resize(logits, (width, height), interpolation=cv2.INTER_LINEAR)
        mask: Mask = logits > 0.0
        return mask, float(scores[best])


class PromptableMasks:
    """Masks from a model that is told where to look: it runs now and then, optical flow carries its masks in between.

    An object is first looked for where its prompt says, or where another source finds it. Each later run is prompted
    with the box round what flow says. A mask that the model itself thinks little of, or that overlaps too little with
    what was expected, is not used: the object is then not seen, and is looked for again at the next run, where it was
    or where the other source finds it.

    Args:
        model: The model.
        objects: Names of the objects.
        prompts: Where objects are in the first frame.
        finder: Another source that says where objects are that have no prompt or are not seen any more.
        every: Run the model on every so many-th frame.
        least_score: Least quality that the model must claim for a mask, 0 to 1.
        least_overlap: Least overlap (intersection over union) of a mask with what was expected, 0 to 1.

    Attributes:
        runs: Times that the model has looked at an image.
        refused: Masks of the model that were not used.

    Raises:
        SettingError: A setting out of range, or a name that comes twice.
        UnknownNameError: A prompt for something that is not among the objects.
    """

    def __init__(
        self,
        model: OnnxSegmenter,
        objects: Sequence[str],
        prompts: Mapping[str, Prompt] | None = None,
        finder: MaskSource | None = None,
        every: int = 5,
        least_score: float = 0.6,
        least_overlap: float = 0.5,
    ) -> None:
        if every < 1:
            raise SettingError(f"every: expected a frame or more, got {every}")
        if not (0.0 <= least_score <= 1.0 and 0.0 <= least_overlap <= 1.0):
            raise SettingError(f"least_score: expected 0 to 1, got {least_score} and {least_overlap}")
        if len(set(objects)) != len(objects):
            raise SettingError(f"objects: expected names that differ, got {list(objects)}")
        self.model, self.objects = model, tuple(objects)
        self._finder = finder
        self._every, self._least_score, self._least_overlap = every, least_score, least_overlap
        self._prompts: dict[str, Prompt] = {}
        for name, prompt in (prompts or {}).items():
            self.prompt(name, prompt)
        self._expected: dict[str, Mask] = {}
        self._seen: dict[str, Mask] = {}
        self._last: RgbdFrame | None = None
        self._since = every
        self.runs = self.refused = 0

    def prompt(self, name: str, prompt: Prompt) -> None:
        """Say anew where an object is in the next frame.

        Raises:
            UnknownNameError: No such object.
        """
        if name not in self.objects:
            raise UnknownNameError("object", name, self.objects)
        self._prompts[name] = prompt

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the mask of each object that is seen.

        Frames must come in order; after a jump back of time, or another size, the objects are looked for where they
        were.
        """
        self._carry(frame)
        self._since += 1
        if self._prompts or self._since >= self._every:
            self._run(frame)
        self._last = frame
        return self._apart()

    def _carry(self, frame: RgbdFrame) -> None:
        """Move every mask to this frame."""
        last = self._last
        if last is None:
            return
        if frame.shape != last.shape:
            self._expected, self._seen = {}, {}
            return
        if frame.stamp_ns < last.stamp_ns or not self._seen:
            self._seen = {}
            return
        flow, carried = FlowPropagator(last), {}
        for name, mask in self._seen.items():
            moved = flow.carry(mask, frame)
            if moved is not None:
                carried[name] = self._expected[name] = moved.mask
        self._seen = carried

    def _run(self, frame: RgbdFrame) -> None:
        """Let the model look at this frame."""
        self._since = 0
        missing = [name for name in self.objects if name not in self._prompts and name not in self._seen]
        found = self._finder.masks(frame) if self._finder is not None and missing else {}
        self._expected |= {name: found[name] for name in missing if name in found}
        if not self._prompts and not self._expected:
            return
        embedding = self.model.embed(frame.rgb)
        self.runs += 1
        for name in self.objects:
            # A prompt that was just given counts for more than what was expected.
            prompt, expected = self._prompts.pop(name, None), self._expected.get(name)
            if prompt is not None:
                mask, score = self.model.segment(embedding, prompt)
                overlap = 1.0
            elif expected is not None:
                mask, score = self.model.segment(embedding, Prompt.around(expected))
                overlap = _overlap(mask, expected)
            else:
                continue
            if mask.any() and score >= self._least_score and overlap >= self._least_overlap:
                self._seen[name] = self._expected[name] = mask
            else:
                self.refused += 1
                self._seen.pop(name, None)

    def _apart(self) -> dict[str, Mask]:
        """Return the masks without pixels that two of them claim: the smaller object is in front of the larger."""
        taken: Mask | None = None
        apart = {}
        for name in sorted(self._seen, key=lambda name: int(np.count_nonzero(self._seen[name]))):
            mask = self._seen[name] if taken is None else self._seen[name] & ~taken
            taken = mask if taken is None else taken | mask
            if mask.any():
                apart[name] = mask
        return {name: apart[name] for name in self.objects if name in apart}


def _overlap(first: Mask, second: Mask) -> float:
    union = np.count_nonzero(first | second)
    return float(np.count_nonzero(first & second)) / union if union else 0.0


def _session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    if not path.is_file():
        raise AssetError(f"{path}: no such file; {_EXPORT}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Its own log would repeat on the screen what the error says.
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no root of their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise AssetError(f"{path}: no usable ONNX model ({reason}); {_EXPORT}") from error
