# SPDX-License-Identifier: Apache-2.0
"""Messages that go into a bag as they came over the wire."""

from __future__ import annotations

import pytest

from supple.episodes import BagWriter, read_bag
from supple.episodes.bag_types import LATCHED, RELIABLE, message_types
from supple.errors import DatasetError, UnknownNameError

STRING = "std_msgs/msg/String"


def wire(text: str) -> bytes:
    types = message_types()
    return bytes(types.serialize_cdr(types.types[STRING](text), STRING))


def test_what_was_serialised_is_read_back_and_latched_messages_come_first(tmp_path):
    with BagWriter(tmp_path / "bag") as bag:
        bag.write_serialized("robot_description", STRING, 0, wire("<robot/>"), LATCHED)
        for i in range(1, 4):
            bag.write_serialized("said", STRING, i * 1000, wire(f"word {i}"), RELIABLE)
    contents = read_bag(tmp_path / "bag")
    assert [(stamp, message.data) for stamp, message in contents.messages["/said"]] == [
        (1000, "word 1"),
        (2000, "word 2"),
        (3000, "word 3"),
    ]
    (stamp, message), *more = contents.messages["/robot_description"]
    assert (stamp, message.data, more) == (999, "<robot/>", [])


def test_the_rules_of_a_bag_hold_for_serialised_messages_too(tmp_path):
    with BagWriter(tmp_path / "bag") as bag:
        bag.write_serialized("said", STRING, 0, wire("too early"))
        bag.write_serialized("said", STRING, 2000, wire("word"))
        with pytest.raises(DatasetError, match="stamps go back"):
            bag.write_serialized("said", STRING, 1000, wire("late"))
        with pytest.raises(DatasetError, match="must be written before"):
            bag.write_serialized("robot_description", STRING, 0, wire("<robot/>"), LATCHED)
        with pytest.raises(UnknownNameError, match="message type"):
            bag.write_serialized("said", "std_msgs/msg/Strong", 3000, b"")
    assert bag.dropped == {"said": 1}
    assert read_bag(tmp_path / "bag").counts == {"/said": 1}
