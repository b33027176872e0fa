# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal about what became of a dataset's attempts."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from supple.episodes import Ledger
from supple.report.reasons import grouped_reasons
from supple.report.statistics import wilson_interval

__all__ = ["counts_table", "origins_table", "reasons_table"]


def counts_table(ledger: Ledger) -> Table:
    """Return attempted, completed, rejected and retained, each with its share and 95 % Wilson interval."""
    table = Table(title="Attempts", title_justify="left")
    table.add_column("outcome")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    table.add_column("95 % interval", justify="right")
    counts = ledger.counts()
    for name, count in counts.items():
        table.add_row(name, str(count), *_share(count, counts["attempted"], whole=name == "attempted"))
    return table


def origins_table(ledger: Ledger) -> Table:
    """Return the number of rejections by origin, those without any left out."""
    table = Table(title="Where rejections come from", title_justify="left")
    table.add_column("origin")
    table.add_column("count", justify="right")
    table.add_column("of all attempts", justify="right")
    for name, count in sorted(ledger.by_origin().items(), key=lambda item: -item[1]):
        if count:
            table.add_row(name.replace("_", " "), str(count), _share(count, len(ledger))[0])
    return table


def reasons_table(ledger: Ledger, limit: int = 10) -> Table:
    """Return the most frequent reasons of rejection; those that differ in numbers alone are counted together.

    Args:
        ledger: The attempts.
        limit: Number of reasons shown; the rest is summed up in one row.
    """
    table = Table(title="Reasons", title_justify="left")
    table.add_column("count", justify="right")
    table.add_column("origin")
    table.add_column("reason", overflow="fold")
    groups = grouped_reasons(ledger.records)
    for group in groups[:limit]:
        table.add_row(str(len(group.attempts)), group.origin.replace("_", " "), escape(group.example))
    if rest := groups[limit:]:
        count = sum(len(group.attempts) for group in rest)
        table.add_row(str(count), "", f"{len(rest)} other reasons", style="dim")
    return table


def _share(count: int, total: int, *, whole: bool = False) -> tuple[str, str]:
    if whole or total == 0:
        return "", ""
    low, high = wilson_interval(count, total)
    return f"{100 * count / total:.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %"
