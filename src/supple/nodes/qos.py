# SPDX-License-Identifier: Apache-2.0
"""The quality of service of every topic, and publishers and subscriptions that say which peer does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from supple.nodes.message_loss import MessageLoss, with_info

__all__ = [
    "CLOCK",
    "COMMAND",
    "EVENT",
    "LATCHED",
    "LATCHED_INPUT",
    "SENSOR",
    "SENSOR_INPUT",
    "TRANSFORMS",
    "publisher",
    "subscription",
    "withdraw",
]


def _profile(depth: int, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> QoSProfile:
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability)


_RELIABLE, _BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
_VOLATILE, _TRANSIENT_LOCAL = DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL

SENSOR = _profile(5, _BEST_EFFORT, _VOLATILE)
"""Measurements: best effort, keep last 5."""

SENSOR_INPUT = _profile(100, _BEST_EFFORT, _VOLATILE)
"""Measurements as a control loop reads them: half a second of 200 Hz waits for a loop that is late; none is lost."""

COMMAND = _profile(50, _RELIABLE, _VOLATILE)
"""Commands: reliable, keep last 50; a second of 50 Hz, since several sources share the topic."""

EVENT = _profile(200, _RELIABLE, _VOLATILE)
"""What must be read in full: command traces, diagnostics."""

LATCHED = _profile(1, _RELIABLE, _TRANSIENT_LOCAL)
"""What late comers must get too: robot_description."""

LATCHED_INPUT = _profile(100, _RELIABLE, _TRANSIENT_LOCAL)
"""What several nodes latch on one topic (tf_static), as it is read."""

TRANSFORMS = _profile(100, _RELIABLE, _VOLATILE)
"""tf, as tf2 reads it."""

CLOCK = _profile(10, _RELIABLE, _VOLATILE)
"""clock: reliable, which fits both kinds of readers."""


def _policy(kind: int) -> str:
    try:
        return QoSPolicyKind(kind).name.lower()
    except ValueError:
        return f"policy {kind}"


def _complain(node: Node, topic: str, role: str) -> Callable[[Any], None]:
    def incompatible(event: Any) -> None:
        name = node.resolve_topic_name(topic)
        node.get_logger().warning(
            f"{name}: a {role} asks for another quality of service ({_policy(event.last_policy_kind)}); "
            f"no message reaches it ({event.total_count} so far)"
        )

    return incompatible


def publisher(node: Node, kind: type, topic: str, profile: QoSProfile) -> Publisher[Any]:
    """Create a publisher that reports subscriptions it can never match, by topic and policy.

    On a lifecycle node it publishes only while the node is active.
    """
    events = PublisherEventCallbacks(incompatible_qos=_complain(node, topic, "subscription"))
    if isinstance(node, LifecycleNode):
        return node.create_lifecycle_publisher(kind, topic, profile, event_callbacks=events)
    return node.create_publisher(kind, topic, profile, event_callbacks=events)


def withdraw(node: Node, entry: Publisher[Any]) -> None:
    """Destroy a publisher that ``publisher`` made."""
    if isinstance(entry, LifecyclePublisher) and isinstance(node, LifecycleNode):
        node.destroy_lifecycle_publisher(entry)
    else:
        node.destroy_publisher(entry)


def subscription(
    node: Node,
    kind: type,
    topic: str,
    callback: Callable[[Any], None],
    profile: QoSProfile,
    on_lost: Callable[[int], None] | None = None,
) -> Subscription[Any]:
    """Create a subscription that reports publishers it can never match, by topic and policy.

    Args:
        node: Whose it is.
        kind: Message class.
        topic: Topic name.
        callback: Called with each message.
        profile: What it asks for.
        on_lost: Called with the number of messages that are missing right before one that comes, wherever they were
            lost (`MessageLoss`).
    """
    events = SubscriptionEventCallbacks(incompatible_qos=_complain(node, topic, "publisher"))
    if on_lost is not None:
        callback = _counting(callback, on_lost)
    return node.create_subscription(kind, topic, callback, profile, event_callbacks=events)


def _counting(callback: Callable[[Any], None], on_lost: Callable[[int], None]) -> Callable[..., None]:
    loss = MessageLoss()

    def receive(message: Any, info: Mapping[str, Any]) -> None:
        if missing := loss.take(info):
            on_lost(missing)
        callback(message)

    return with_info(receive)
