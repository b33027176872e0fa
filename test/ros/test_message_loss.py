# SPDX-License-Identifier: Apache-2.0
"""Lost messages are counted by their publishers' numbers, wherever they were lost, over real DDS as well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from supple.episodes import read_bag
from supple.episodes.bag_types import SENSOR as OFFERED
from supple.nodes.bag_recorder import BagRecorder
from supple.nodes.message_loss import MessageLoss
from supple.nodes.qos import SENSOR, subscription
from supple.nodes.recorded_topics import RecordedTopic

KEPT = 10


def info(number: int | None, publisher: bytes = b"a") -> dict:
    return {"publication_sequence_number": number, "publisher_gid": {"data": publisher}}


@given(st.sets(st.integers(1, 40), min_size=2), st.sets(st.integers(100, 140), min_size=2), st.randoms())
def test_what_is_missing_between_the_first_and_the_last_of_each_publisher_is_counted(first, second, random):
    loss = MessageLoss()
    waiting = [(b"a", sorted(first)), (b"b", sorted(second))]
    while any(rows for _, rows in waiting):
        publisher, rows = random.choice([row for row in waiting if row[1]])
        loss.take(info(rows.pop(0), publisher))
    assert loss.lost == sum(max(rows) - min(rows) + 1 - len(rows) for rows in (first, second))


def test_without_numbers_and_out_of_order_nothing_is_counted():
    loss = MessageLoss()
    assert [loss.take(info(number)) for number in (None, 5, 4, 5, None, 6)] == [0] * 6
    assert loss.take(info(9)) == 2
    assert loss.lost == 2


@pytest.fixture
def recorder(graph):
    profile = QoSProfile(depth=KEPT, reliability=ReliabilityPolicy.BEST_EFFORT)
    row = RecordedTopic("words", String, profile, OFFERED)
    found, heard = BagRecorder(graph.node, []), []
    graph.on_executor(lambda: found.add(row, heard.append))
    yield found, heard
    graph.on_executor(found.close)


def test_what_a_subscription_could_not_keep_is_counted_and_the_rest_is_in_the_bag(tmp_path, graph, recorder):
    recorder, heard = recorder
    words = graph.publisher(String, "words", SENSOR)
    graph.until(words.get_subscription_count, "the recorder's ear")
    recorder.begin(tmp_path / "log", growing=True)
    sent = 4 * KEPT

    def burst() -> None:
        # In the executor's own thread, so that nothing is taken in between: more comes than is kept.
        for i in range(sent):
            words.publish(String(data=f"word {i}"))

    words.publish(String(data="first"))
    graph.until(lambda: recorder.received == 1, "the first word")
    graph.on_executor(burst)
    words.publish(String(data="last"))
    graph.until(lambda: b"last" in heard[-1], "the last word")
    assert recorder.numbered
    report = recorder.end().close()
    (lost,) = report.lost.items()
    assert lost[0] == "words (on the way)"
    assert report.written["words"] + lost[1] == sent + 2
    logged = [message.data for _, message in read_bag(tmp_path / "log").messages["/words"]]
    assert logged[0] == "first"
    assert logged[-1] == "last"
    assert len(logged) == report.written["words"] == recorder.received


def test_any_subscription_may_count_what_it_lost(graph):
    words = graph.publisher(String, "said", SENSOR)
    heard, lost = [], []
    take, few = lambda message: heard.append(message.data), QoSProfile(depth=KEPT, reliability=SENSOR.reliability)
    graph.on_executor(lambda: subscription(graph.node, String, "said", take, few, lost.append))
    graph.until(words.get_subscription_count, "the ear")
    sent = 3 * KEPT
    words.publish(String(data="first"))
    graph.until(lambda: heard, "the first word")
    graph.on_executor(lambda: [words.publish(String(data=f"word {i}")) for i in range(sent)])
    words.publish(String(data="last"))
    graph.until(lambda: heard[-1] == "last", "the last word")
    assert sum(lost) > 0
    assert len(heard) + sum(lost) == sent + 2
