# SPDX-License-Identifier: Apache-2.0
"""What the objects of a scene look like, as a YAML file for the mask source that goes by colour and size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from supple.errors import SettingError
from supple.perception.geometric import GeometricMasks, ObjectModel
from supple.yaml_file import read_model

__all__ = ["Look", "Looks"]

Channel = Annotated[int, Field(ge=0, le=255)]
Color = tuple[Channel, Channel, Channel]
Length = Annotated[float, Field(gt=0.0, lt=10.0)]

_STRICT = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Look(BaseModel):
    """What one object looks like.

    Attributes:
        colors: Its colours as the camera sees them, (red, green, blue) of 0 to 255; hue and saturation count.
        size: Its full extents in [m], in any order.
        tolerance: How far a pixel's chromaticity may be from a colour's.
        support: Whether it is the flat thing that the others stand on.
    """

    model_config = _STRICT

    colors: tuple[Color, ...] = ()
    size: tuple[Length, Length, Length] | None = None
    tolerance: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.04
    support: bool = False


class Looks(BaseModel):
    """What a scene looks like.

    Attributes:
        objects: Looks by name of the object.
        ignored: Colours that belong to no object without a colour of its own, such as the robot's hands.
        near: Least depth in [m] that is looked at.
        far: Greatest depth in [m] that is looked at.
    """

    model_config = _STRICT

    objects: Annotated[dict[str, Look], Field(min_length=1)]
    ignored: tuple[Color, ...] = ()
    near: Length = 0.05
    far: Length = 3.0

    @classmethod
    def read(cls, path: Path | str) -> Looks:
        """Read a file.

        Raises:
            SettingError: Missing, no YAML, a field is missing, unknown or out of range, or an object of which neither
                colour nor size is known; names file and field.
        """
        looks = read_model(path, cls, SettingError)
        try:
            looks.source()
        except SettingError as error:
            raise SettingError(f"{path}: {error}") from error
        return looks

    def source(self) -> GeometricMasks:
        """Return the mask source that finds these objects.

        Raises:
            SettingError: An object of which neither colour nor size is known, or an empty range of depth.
        """
        try:
            models = {name: ObjectModel(**look.model_dump()) for name, look in self.objects.items()}
            return GeometricMasks(models, self.ignored, self.near, self.far)
        except SettingError as error:
            raise SettingError(f"looks: {error}") from error
