# SPDX-License-Identifier: Apache-2.0
"""The base of nodes that move something: lifecycle, automatic start, diagnostics, actuators damped at the end."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from supple.errors import SuppleError
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.scheduling import take_priority

__all__ = ["ActuatorNode", "ParameterError", "declare_parameter"]

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list of texts"}


class ParameterError(SuppleError, ValueError):
    """A parameter of a wrong type or out of its range."""


def declare_parameter(node: Node, name: str, default: Any, description: str = "", minimum: float = 0.0) -> Any:
    """Declare a parameter that is read once, at the start, and return its value.

    Args:
        node: Whose parameter it is.
        name: Its name.
        default: Its value when none is given, which also tells its type; an integer is taken for a float, and a list
            holds texts.
        description: What it means, with its unit.
        minimum: Smallest value of a number, in the parameter's unit.

    Raises:
        ParameterError: The value given has another type, or it is a number below the minimum or not a number.
    """
    descriptor = ParameterDescriptor(description=description, read_only=True)
    try:
        value = node.declare_parameter(name, default, descriptor).value
    except InvalidParameterTypeException:
        # Only a parameter of any type tells what was given.
        value = node.declare_parameter(name, default, ParameterDescriptor(dynamic_typing=True)).value
        node.undeclare_parameter(name)
        if isinstance(default, float) and type(value) is int:
            value = node.declare_parameter(name, float(value), descriptor, ignore_override=True).value
    number = type(default) in (int, float)
    fits = type(value) is type(default) and (type(value) is not list or all(isinstance(row, str) for row in value))
    # A NaN is not at least anything.
    if not fits or (number and not value >= minimum):
        expected = _KINDS[type(default)] + (f" of at least {minimum:g}" if number else "")
        raise ParameterError(f"parameter {name} of {node.get_name()}: got {value!r}, expected {expected}")
    return value


class ActuatorNode(LifecycleNode):
    """A lifecycle node that owns actuators while it is active.

    With the parameter ``autostart`` (default true) it configures and activates itself. Children fill in ``configure``,
    ``activate``, ``deactivate`` and ``cleanup``; whatever they raise from ``SuppleError`` fails the transition with its
    message.

    Args:
        name: Node name.
        hardware: What it drives, for diagnostics.
        realtime_priority: Default of the parameter of that name; absent for a node without a control loop.

    Attributes:
        exit_code: Set when the process is to end with it.
        realtime_priority: What its threads are given when it is activated.
    """

    def __init__(self, name: str, hardware: str = "g1", realtime_priority: int | None = None) -> None:
        super().__init__(name)
        self.exit_code: int | None = None
        self._autostart = self.parameter("autostart", True, "configure and activate at the start")
        self.diagnostics = Diagnostics(self, hardware)
        self.realtime_priority = 0
        if realtime_priority is not None:
            self.realtime_priority = self.parameter(
                "realtime_priority", realtime_priority, "real-time priority of the control loop; 0: normal scheduling"
            )
        self.active = False

    def parameter(self, name: str, default: Any, description: str) -> Any:
        """Declare a parameter that is read once, at the start, and return its value; see ``declare_parameter``."""
        return declare_parameter(self, name, default, description)

    # -- what children fill in ---------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Make publishers, subscriptions and controllers."""

    def activate(self) -> None:
        """Begin to command."""

    def deactivate(self) -> None:
        """Leave the actuators safe and stop commanding."""

    def cleanup(self) -> None:
        """Destroy what ``configure`` made."""

    # -- transitions -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Configure and activate, unless somebody else is to do it; the node ends if that fails."""
        if not self._autostart:
            return
        for transition in (self.trigger_configure, self.trigger_activate):
            if transition() is not TransitionCallbackReturn.SUCCESS:
                # The transition has said why.
                self.exit_code = 1
                return

    def _attempt(self, what: str, action: Any) -> TransitionCallbackReturn:
        try:
            action()
        except SuppleError as error:
            self.get_logger().error(f"cannot {what}: {error}")
            self.diagnostics.state(DiagnosticStatus.ERROR, str(error))
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure."""
        return self._attempt("configure", self.configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Activate."""
        result = super().on_activate(state)
        if result is TransitionCallbackReturn.SUCCESS:
            self.active = True
            result = self._attempt("activate", self.activate)
            self.active = result is TransitionCallbackReturn.SUCCESS
            if self.active:
                self.diagnostics.set("scheduling", take_priority(self.realtime_priority))
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make actuators safe, then deactivate."""
        self._make_safe_once()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy what was configured."""
        return self._attempt("clean up", self.cleanup)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make actuators safe, then end."""
        self._make_safe_once()
        return TransitionCallbackReturn.SUCCESS

    def _make_safe_once(self) -> None:
        if self.active:
            self.active = False
            self._attempt("deactivate", self.deactivate)

    def make_safe(self) -> None:
        """Leave the actuators safe, whatever the state."""
        self._make_safe_once()
        self._attempt("clean up", self.cleanup)
