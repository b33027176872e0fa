# SPDX-License-Identifier: Apache-2.0
"""What happens to many sensors at once is one line, at once; what follows within a second is another."""

from __future__ import annotations

from supple.nodes.digest import Digest


def test_one_is_said_as_it_is_and_at_once():
    said: list[str] = []
    digest = Digest("silent", said.append)
    digest.tell(5.0)
    digest.add("pad", "pad: silent for 0.3 s")
    digest.tell(5.0)
    digest.tell(5.1)
    assert said == ["pad: silent for 0.3 s"]


def test_many_are_one_line_that_names_the_first_few_and_how_many():
    said: list[str] = []
    digest = Digest("silent", said.append)
    for i in range(30):
        digest.add(f"pad_{i}", f"pad_{i}: silent")
    digest.tell(0.0)
    assert said == ["silent: 30 at once: pad_0: silent; pad_1: silent; pad_2: silent; and 27 more"]


def test_lines_are_a_second_apart_and_nothing_is_left_unsaid():
    said: list[str] = []
    digest = Digest("lost", said.append)
    for k in range(100):
        digest.add("a", f"a: {k}")
        digest.tell(0.05 * k)
    assert said == ["a: 0", "a: 20", "a: 40", "a: 60", "a: 80"]
    digest.tell_all(5.0)
    assert said[-1] == "a: 99"
