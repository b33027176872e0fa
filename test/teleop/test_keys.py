# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.teleop.keys import KeyParser

SEQUENCES = {
    b"w": "w", b"W": "W", b"1": "1", b"?": "?", b" ": "space", b"\r": "enter", b"\n": "enter", b"\t": "tab",
    b"\x7f": "backspace", b"\x08": "backspace", b"\x04": "ctrl_d",
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left",
    b"\x1bOA": "up", b"\x1bOD": "left", b"\x1bOP": "f1",
    b"\x1b[5~": "page_up", b"\x1b[6~": "page_down", b"\x1b[H": "home", b"\x1b[4~": "end", b"\x1b[3~": "delete",
    b"\x1b[1;2A": "shift_up", b"\x1b[1;2D": "shift_left", b"\x1b[1;5C": "right",
}  # fmt: skip


@pytest.mark.parametrize(("data", "key"), SEQUENCES.items())
def test_each_key_has_its_name(data, key):
    assert KeyParser().feed(data) == [key]


@given(st.lists(st.sampled_from(sorted(SEQUENCES)), max_size=12), st.lists(st.integers(1, 4), max_size=60))
def test_cutting_the_bytes_anywhere_changes_nothing(typed, cuts):
    data, parser, keys = b"".join(typed), KeyParser(), []
    for size in cuts:
        keys += parser.feed(data[:size])
        data = data[size:]
    assert keys + parser.feed(data) == [SEQUENCES[item] for item in typed]


@given(st.binary(max_size=64))
def test_noise_neither_raises_nor_stays(noise):
    parser = KeyParser()
    parser.feed(noise)
    parser.flush()
    assert parser.feed(b"w") == ["w"]


def test_a_lone_escape_byte_is_the_escape_key_once_nothing_follows():
    parser = KeyParser()
    assert parser.feed(b"\x1b") == []
    assert parser.flush() == ["escape"]
    assert parser.feed(b"\x1b\x1b[A") == ["escape", "up"]


@pytest.mark.parametrize("data", [b"\x1bw", b"\x1b[99~", b"\x1b[1;9Z"[:-1] + b"q", "é".encode(), b"\x00"])
def test_what_no_key_is_bound_to_gives_nothing(data):
    assert KeyParser().feed(data) == []
