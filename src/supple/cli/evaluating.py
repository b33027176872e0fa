# SPDX-License-Identifier: Apache-2.0
"""``supple evaluate``: perception and touch measured against the simulator, apart from any task's success."""

from __future__ import annotations

import typer

from supple.cli.contact_evaluation import contact_command
from supple.cli.point_evaluation import points_command
from supple.cli.wrench_evaluation import wrench_command

__all__ = ["evaluate_app"]

evaluate_app = typer.Typer(
    help="Measure perception and touch against the simulator's truth, apart from any task's success.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@evaluate_app.callback()
def _evaluate() -> None:
    """Keep ``evaluate`` a group, however many commands it has."""


evaluate_app.command("points")(points_command)
evaluate_app.command("contact")(contact_command)
evaluate_app.command("wrench")(wrench_command)
