# SPDX-License-Identifier: Apache-2.0
"""Where a camera sits on a robot: a small YAML file that says how, when and how well that was measured."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

import pinocchio as pin
import yaml
from pydantic import BaseModel, ConfigDict, field_validator

from supple.errors import ExtrinsicsError, StateError
from supple.geometry import pose_from_quaternion, quaternion_of
from supple.yaml_file import read_model

__all__ = ["CameraExtrinsics", "Residual"]


class Residual(BaseModel):
    """What a calibration leaves unexplained, and how well its measurements determine it.

    Attributes:
        rms_px: Root mean square distance in the picture in [px].
        max_px: Largest distance in the picture in [px].
        rms_depth: Root mean square error along the optical axis in [m]; None where no depth was measured.
        translation_std: Standard deviation of the camera's position in [m], along its worst direction.
        rotation_std: Standard deviation of the camera's orientation in [rad], about its worst axis.
        views: Number of pictures.
        points: Number of points in all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rms_px: float
    max_px: float
    rms_depth: float | None = None
    translation_std: float
    rotation_std: float
    views: int
    points: int


class CameraExtrinsics(BaseModel):
    """Pose of a camera's optical frame on the link that carries it.

    Attributes:
        camera: Optical frame of the camera (x right, y down, z forward; REP-103), as in the header of its pictures.
        parent: Frame of the robot that the camera is fixed to.
        translation: Position of the camera in the parent's frame in [m].
        quaternion: Orientation of the camera in the parent's frame, (x, y, z, w).
        date: When it was measured, ISO 8601 with time zone.
        method: How, e.g. ``"board on robot"``.
        residual: How well it fits.
        intrinsics: fx, fy, cx, cy in [px] that it was measured with.
        source: Name of the measurements, e.g. of a bag.
        versions: Versions of what solved it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    camera: str
    parent: str
    translation: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    date: str
    method: str
    residual: Residual
    intrinsics: dict[str, float] = {}
    source: str = ""
    versions: dict[str, str] = {}

    @field_validator("date", mode="before")
    @classmethod
    def _iso(cls, value: Any) -> Any:
        # YAML reads an unquoted ISO date as a date.
        return value.isoformat() if hasattr(value, "isoformat") else value

    @field_validator("quaternion")
    @classmethod
    def _rotation(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        norm = math.sqrt(sum(part * part for part in value))
        if not abs(norm - 1.0) < 1e-3:
            raise ValueError(f"a quaternion has norm 1, got norm {norm:.3g}")
        return value

    @property
    def T_parent_camera(self) -> pin.SE3:
        """Pose of the optical frame in the parent's frame."""
        return pose_from_quaternion(self.translation, self.quaternion, f"extrinsics of {self.camera}")

    @classmethod
    def of(cls, T_parent_camera: pin.SE3, **fields: Any) -> Self:
        """Return extrinsics with this pose; ``fields`` are the other attributes."""
        x, y, z = T_parent_camera.translation.tolist()
        qx, qy, qz, qw = quaternion_of(T_parent_camera).tolist()
        return cls(translation=(x, y, z), quaternion=(qx, qy, qz, qw), **fields)

    def yaml(self) -> str:
        """Return the content of the file."""
        plain = {
            "camera": self.camera,
            "parent": self.parent,
            "translation": [round(x, 7) for x in self.translation],
            "quaternion": [round(x, 9) for x in self.quaternion],
            "date": self.date,
            "method": self.method,
            "residual": {name: _short(value) for name, value in self.residual.model_dump().items()},
            "intrinsics": {name: _short(value) for name, value in self.intrinsics.items()},
            "source": self.source,
            "versions": dict(self.versions),
        }
        head = (
            "# Where the camera's optical frame sits on its parent: metres, quaternion (x, y, z, w).\n"
            "# Residuals: pixels, metres, radians. Written by 'supple calibrate camera'.\n"
        )
        return head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)

    @classmethod
    def read(cls, path: Path | str) -> CameraExtrinsics:
        """Read a file.

        Raises:
            ExtrinsicsError: Missing, no YAML, or a field is missing, unknown or malformed; names it.
        """
        found = read_model(path, cls, ExtrinsicsError)
        try:
            # A rotation matrix made of it is what everybody uses; what makes none is refused here.
            _ = found.T_parent_camera
        except StateError as error:
            raise ExtrinsicsError(f"{path}: {error}") from error
        return found


def _short(value: float | int | None) -> float | int | None:
    return float(f"{value:.6g}") if isinstance(value, float) else value
