# SPDX-License-Identifier: Apache-2.0
"""``supple doctor``: what is there, what is missing; it starts even where MuJoCo does not."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from supple.cli.output import console, guarded, print_json
from supple.doctor import run_checks

__all__ = ["doctor_command"]


@guarded
def doctor_command(
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")] = False,
) -> None:
    """Say what is there, what is missing and what to do; exit code 0 only if all is well."""
    checks = run_checks()
    table = Table("", "check", "found", "what to do")
    for check in checks:
        mark = "[green]ok[/green]" if check.ok else "[bold red]no[/bold red]"
        table.add_row(mark, escape(check.name), escape(check.found), escape(check.remedy))
    console.print(table)
    ok = all(check.ok for check in checks)
    if json:
        fields = ("name", "ok", "found", "expected", "remedy")
        print_json({"ok": ok, "checks": [{key: getattr(check, key) for key in fields} for check in checks]})
    if not ok:
        raise typer.Exit(1)
