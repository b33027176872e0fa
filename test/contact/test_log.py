# SPDX-License-Identifier: Apache-2.0
"""The account of a log: it says that nothing was lost exactly when that is so."""

from __future__ import annotations

import pytest

from supple.contact.health import SensorHealth
from supple.contact.log import LogReport, account_of
from supple.errors import SensorError


def health(*sequences: int) -> SensorHealth:
    found = SensorHealth("pad", 100.0)
    for sequence in sequences:
        found.take(sequence * 10_000_000, 0.01 * sequence, sequence)
    return found


def report(**fields: object) -> LogReport:
    base = {"duration": 600.0, "written": {"tactile/pad": 60000, "joint_states": 120000}, "dropped": {}}
    base |= {"sensors": {"pad": account_of(health(0, 1, 2))}, "events": {"made": 2}, "reactions": 0}
    return LogReport(**(base | {"stall": 0.1, "patience": 5.0} | fields))


def test_a_log_without_losses_says_so():
    assert report().complete
    assert str(report()) == "180000 messages on 2 topics in 600.0 s: nothing lost"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"dropped": {"camera/color/image_raw (disk too slow)": 7}},
            "LOST 7 of camera/color/image_raw (disk too slow)",
        ),
        ({"sensors": {"pad": account_of(health(0, 1, 4))}}, "LOST 2 of pad by sequence"),
        ({"stall": 6.0}, "LOST perhaps more: the logger stood still for 6.0 s"),
        ({"unread": True, "patience": None}, "LOST what had come last and was not yet taken in"),
        ({"failure": "disk full"}, "incomplete; ended early: disk full"),
    ],
)
def test_whatever_is_missing_is_named(fields, said):
    found = report(**fields)
    assert not found.complete
    assert said in str(found)


def test_a_long_stall_is_no_loss_where_every_loss_is_known():
    assert report(stall=60.0, patience=None).complete


def test_pauses_and_silences_are_noted_but_are_no_loss_of_the_log():
    sensor = health(0, 1, 2)
    sensor.check(10.0)
    sensor.take(1_000_000_000, 10.1, 3)
    found = report(sensors={"pad": account_of(sensor)})
    assert found.complete
    assert str(found).endswith("nothing lost; pauses: pad 1; silences: pad 1")


def test_it_comes_back_from_its_text():
    found = report(sensors={"pad": account_of(health(0, 1, 4))})
    assert LogReport.from_json(found.to_json()) == found
    assert found.sensors["pad"].gaps == ((40_000_000, 2, 0.03),)
    with pytest.raises(SensorError, match="duration"):
        LogReport.from_json('{"written": {}}')


def test_the_line_for_a_person_names_the_worst_and_counts_the_rest():
    found = report(dropped={f"topic_{i} (disk too slow)": i for i in range(1, 21)})
    said = str(found)
    assert "LOST 20 of topic_20 (disk too slow); 19 of topic_19 (disk too slow)" in said
    assert said.endswith("16 more")
    assert found.lost == 210
