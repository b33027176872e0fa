# SPDX-License-Identifier: Apache-2.0
"""YAML files as plain data, with errors that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from supple.errors import SuppleError

__all__ = ["read_yaml"]


def read_yaml(path: Path | str, refusal: type[SuppleError]) -> Any:
    """Return what a YAML file holds, as plain data.

    Args:
        path: The file.
        refusal: What is raised if it cannot be read.

    Raises:
        SuppleError: The ``refusal``: there is no such file, or it is no YAML; names the file.
    """
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise refusal(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # Its own text has line breaks and a drawing of the place.
        raise refusal(f"{path}: no valid YAML: {' '.join(str(error).split())}") from error
