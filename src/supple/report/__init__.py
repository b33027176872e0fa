# SPDX-License-Identifier: Apache-2.0
"""Reports for people: an HTML page about a dataset, videos of its episodes, tables for the terminal."""

from __future__ import annotations

from supple.report.inspect import ReportPaths, write_report
from supple.report.statistics import Bin, quantile_bins, wilson_interval
from supple.report.tables import counts_table, origins_table, reasons_table
from supple.report.video import Clip, EpisodeRenderer, write_episode_video, write_grid_video

__all__ = [
    "Bin",
    "Clip",
    "EpisodeRenderer",
    "ReportPaths",
    "counts_table",
    "origins_table",
    "quantile_bins",
    "reasons_table",
    "wilson_interval",
    "write_episode_video",
    "write_grid_video",
    "write_report",
]
