# SPDX-License-Identifier: Apache-2.0
"""A demonstration by the scripted operator, recorded once, and a terminal whose other end the tests hold."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from supple.episodes import Seed
from supple.tasks import Task, task_named
from supple.teleop.recording import record_in_simulation
from supple.teleop.scripted import ScriptedOperator


@pytest.fixture(scope="session")
def task() -> Task:
    return task_named("box_lift")


@pytest.fixture(scope="session")
def demonstration(task: Task) -> Seed:
    return record_in_simulation(task, ScriptedOperator(task.robot, task.name))


@dataclass
class Typist:
    """The hands at a terminal: its descriptor for the program, and what a person types and sees."""

    terminal: int
    hands: int

    def type(self, text: str | bytes) -> None:
        os.write(self.hands, text.encode() if isinstance(text, str) else text)

    def seen(self) -> str:
        data = b""
        while select.select([self.hands], [], [], 0.0)[0]:
            data += os.read(self.hands, 65536)
        return data.decode()


@pytest.fixture
def typist() -> Iterator[Typist]:
    hands, terminal = os.openpty()
    try:
        yield Typist(terminal, hands)
    finally:
        os.close(terminal)
        os.close(hands)
