# SPDX-License-Identifier: Apache-2.0
"""What all commands share: consoles, the JSON object at the end, and one clear line for each error."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console

from supple.errors import SuppleError, disk_is_full

__all__ = ["console", "guarded", "print_json"]

F = TypeVar("F", bound=Callable[..., Any])

# Progress and messages go to the error stream, so that what a program reads from standard output is the result alone.
console = Console(stderr=True, highlight=False)


def print_json(value: BaseModel | Mapping[str, Any]) -> None:
    """Print one JSON object on one line of standard output."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    typer.echo(json.dumps(plain))


def _fail(message: str, code: int = 1) -> typer.Exit:
    console.print("[bold red]error:[/bold red] ", end="")
    console.print(" ".join(message.split()), markup=False, soft_wrap=True)
    return typer.Exit(code)


def guarded(command: F) -> F:
    """Turn Supple's errors, full disks and Ctrl-C into one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except SuppleError as error:
            notes = " ".join(getattr(error, "__notes__", []))
            raise _fail(f"{error} {notes}") from error
        except OSError as error:
            reason = "disk full" if disk_is_full(error) else error.strerror or str(error)
            raise _fail(f"{error.filename}: {reason}" if error.filename else reason) from error
        except KeyboardInterrupt as error:
            raise _fail("interrupted", 130) from error

    return run  # type: ignore[return-value]
