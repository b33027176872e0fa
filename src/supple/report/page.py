# SPDX-License-Identifier: Apache-2.0
"""Pages that need no other file: their templates, their style, and the script that joins charts to a video."""

from __future__ import annotations

import base64
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

__all__ = ["render", "video_source"]

_EMBED_LIMIT = 8_000_000


def render(template: str, **values: Any) -> str:
    """Return a page.

    Args:
        template: Name of the template in this package.
        values: What it shows; every name that it uses.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("supple.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    files = resources.files("supple.report")
    style, script = (Markup(files.joinpath(name).read_text("utf-8")) for name in ("style.css", "player.js"))
    return environment.get_template(template).render(style=style, script=script, **values)


def video_source(video: Path | None) -> dict[str, str] | None:
    """Return a video's name, size and source: its data if it is small, else its name; None if there is none."""
    if video is None:
        return None
    data = video.read_bytes()
    size = f"{len(data) / 1e6:.1f} MB"
    inside = len(data) < _EMBED_LIMIT
    source = "data:video/mp4;base64," + base64.b64encode(data).decode() if inside else video.name
    return {"name": video.name, "source": source, "size": size}
