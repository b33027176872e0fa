# SPDX-License-Identifier: Apache-2.0
"""Messages that were published and never came, counted by the numbers that the middleware gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["MessageLoss", "with_info"]

_PARTS = ("message", "info")
_BOTH = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in _PARTS])


def with_info(callback: Callable[[Any, Mapping[str, Any]], None]) -> Callable[..., None]:
    """Return a callback for a subscription that gets each message with what the middleware says of it.

    rclpy sees from a callback's signature that it wants both. Its executor of events then gives them as one argument, a
    tuple, where the others give two.
    """

    def receive(*arrived: Any) -> None:
        callback(*(arrived if len(arrived) == len(_PARTS) else arrived[0]))

    receive.__signature__ = _BOTH  # type: ignore[attr-defined]
    return receive


class MessageLoss:
    """Losses on one subscription.

    Each publisher's messages are numbered without a gap, so that a missing number is a lost message, wherever it was
    lost: on the way, or because the subscription could not keep what nobody took in time. The middleware's own event
    for lost messages knows nothing of the latter, and asking for it can stop a process for good: in rmw_fastrtps it
    takes two locks in the opposite order of the thread that receives (ros2/rmw_fastrtps pull request 890).

    Attributes:
        lost: Messages lost so far.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._newest: dict[bytes, int] = {}

    def take(self, info: Mapping[str, Any]) -> int:
        """Take in what the middleware says of a message and return how many are missing right before it.

        Args:
            info: Publisher and number of the message, as rclpy gives them; without a number nothing is counted.
        """
        number = info["publication_sequence_number"]
        if number is None:
            return 0
        publisher = info["publisher_gid"]["data"]
        before = self._newest.get(publisher)
        if before is not None and number <= before:
            return 0
        self._newest[publisher] = number
        missing = 0 if before is None else number - before - 1
        self.lost += missing
        return missing
