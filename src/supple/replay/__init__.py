# SPDX-License-Identifier: Apache-2.0
"""Replay: play an episode into a body and judge how faithful it was."""

from __future__ import annotations

__all__: list[str] = []
