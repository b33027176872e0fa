# SPDX-License-Identifier: Apache-2.0
"""From a launch file and its arguments to the processes to start.

The subset, with the meaning it has for ``ros2 launch``: ``arg`` with ``choice``, ``let``, ``group``, ``include`` with
``arg``, ``push-ros-namespace``, and ``node`` (pkg, exec, name, namespace, args, output, respawn="false",
on_exit="shutdown", sigterm_timeout, sigkill_timeout) with ``param`` (name and value, or from) and ``remap``; ``if``
and ``unless`` on each. Anything else is an error.

Two habits of ``ros2 launch`` are not followed: an argument that no file declares is refused, and variables do not
leak out of an included file.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from supple.launching.document import Element, LaunchError, nearest, read_document
from supple.launching.environment import find_executable
from supple.launching.process import NodeProcess
from supple.launching.substitution import Scope, substitute

__all__ = ["parse_arguments", "resolve"]

_CONDITIONS = ("if", "unless")
_TIMEOUTS = ("sigterm_timeout", "sigkill_timeout")
_ACTIONS = ("arg", "group", "include", "let", "node", "push-ros-namespace", "push_ros_namespace")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NAMESPACE = re.compile(r"/?([A-Za-z_]\w*(/[A-Za-z_]\w*)*)?")


@dataclass
class _Context:
    """What is known at one place: a group or file gets a copy, so that nothing leaks out of it."""

    path: Path
    variables: dict[str, str]
    namespace: str
    environment: Mapping[str, str]
    declared: set[str]

    def inner(self) -> _Context:
        return _Context(self.path, dict(self.variables), self.namespace, self.environment, self.declared)


def parse_arguments(words: Iterable[str]) -> dict[str, str]:
    """Return launch arguments written as ``name:=value``.

    Raises:
        LaunchError: A word has another form, or a name is given twice.
    """
    arguments: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not _NAME.fullmatch(name):
            raise LaunchError(f"launch argument {word!r} is not of the form name:=value")
        if name in arguments:
            raise LaunchError(f"launch argument {name!r} is given twice: {arguments[name]!r} and {value!r}")
        arguments[name] = value
    return arguments


def resolve(
    path: str | Path, arguments: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> list[NodeProcess]:
    """Return the processes that a launch file describes, in its order.

    Args:
        path: Launch file.
        arguments: Values of its arguments by name.
        environment: Environment variables for ``$(env …)`` and for finding packages; this process's when not given.

    Raises:
        LaunchError: The file, one it includes, or an argument cannot be used; says where, got and known.
    """
    path = Path(path).absolute()
    environment = os.environ if environment is None else environment
    context = _Context(path, dict(arguments or {}), "", environment, set())
    processes = _file(path, context, ())
    for name in arguments or {}:
        if name not in context.declared:
            raise LaunchError(f"{path}: no launch argument {name!r}{nearest(name, context.declared)}")
    seen: dict[str, NodeProcess] = {}
    for process in processes:
        if process.name.startswith("/") and process.name in seen:
            first = seen[process.name].source
            raise LaunchError(f"{process.source}: node {process.name!r} is started a second time; first at {first}")
        seen[process.name] = process
    return processes


def _file(path: Path, context: _Context, parents: tuple[Path, ...]) -> list[NodeProcess]:
    if path in parents:
        raise LaunchError(f"{parents[-1]}: includes itself by way of {' -> '.join(map(str, [*parents, path]))}")
    root = read_document(path)
    root.expect(("version",))
    return _actions(root, context, (*parents, path))


def _text(element: Element, name: str, context: _Context, default: str = "") -> str:
    """Return an attribute after substitution."""
    if name not in element.attributes:
        return default
    try:
        return substitute(element.attributes[name], Scope(context.variables, context.environment, context.path.parent))
    except LaunchError as error:
        raise element.error(f"attribute {name!r}: {error}") from error


def _truth(element: Element, name: str, value: str) -> bool:
    if value.strip().lower() in {"true", "1"}:
        return True
    if value.strip().lower() in {"false", "0"}:
        return False
    raise element.error(f"attribute {name!r} is {value!r}; expected true, false, 1 or 0")


def _wanted(element: Element, context: _Context) -> bool:
    if all(name in element.attributes for name in _CONDITIONS):
        raise element.error("has both 'if' and 'unless'; expected at most one")
    for name in _CONDITIONS:
        if name in element.attributes:
            return _truth(element, name, _text(element, name, context)) == (name == "if")
    return True


def _actions(parent: Element, context: _Context, files: tuple[Path, ...]) -> list[NodeProcess]:
    """Carry out the children of a file or group in order."""
    parent.expect_children(_ACTIONS)
    processes: list[NodeProcess] = []
    for element in parent.children:
        if element.tag == "node":
            processes += _node(element, context)
        elif element.tag == "include":
            processes += _include(element, context, files)
        elif element.tag == "group":
            element.expect(_CONDITIONS)
            if _wanted(element, context):
                processes += _actions(element, context.inner(), files)
        elif element.tag == "arg":
            _declare(element, context)
        elif element.tag == "let":
            element.expect(_CONDITIONS, ("name", "value"))
            element.expect_children(())
            if _wanted(element, context):
                context.variables[_text(element, "name", context)] = _text(element, "value", context)
        else:
            element.expect(_CONDITIONS, ("namespace",))
            element.expect_children(())
            if _wanted(element, context):
                context.namespace = _join(element, context.namespace, _text(element, "namespace", context))
    return processes


def _declare(element: Element, context: _Context) -> None:
    element.expect(("default", "description", *_CONDITIONS), ("name",))
    element.expect_children(("choice",))
    if not _wanted(element, context):
        return
    name = _text(element, "name", context)
    context.declared.add(name)
    if name not in context.variables:
        if "default" not in element.attributes:
            raise element.error(f"launch argument {name!r} has no default; give one as {name}:=VALUE")
        context.variables[name] = _text(element, "default", context)
    choices = []
    for choice in element.children:
        choice.expect((), ("value",))
        choices.append(_text(choice, "value", context))
    if choices and (value := context.variables[name]) not in choices:
        raise element.error(f"launch argument {name!r} is {value!r}{nearest(value, choices)}")


def _include(element: Element, context: _Context, files: tuple[Path, ...]) -> list[NodeProcess]:
    element.expect(_CONDITIONS, ("file",))
    element.expect_children(("arg", "let"))
    if not _wanted(element, context):
        return []
    path = Path(_text(element, "file", context))
    if not path.is_absolute():
        path = context.path.parent / path
    path = path.resolve() if path.exists() else path
    if not path.is_file():
        known = [entry.name for entry in path.parent.glob("*.launch.xml")] if path.parent.is_dir() else []
        raise element.error(f"no launch file {str(path)!r}{nearest(path.name, known)}")
    given: dict[str, str] = {}
    for argument in element.children:
        argument.expect((), ("name", "value"))
        given[_text(argument, "name", context)] = _text(argument, "value", context)
    inner = context.inner()
    inner.path, inner.declared = path, set()
    inner.variables.update(given)
    processes = _file(path, inner, files)
    for name in given:
        if name not in inner.declared:
            raise element.error(f"{path.name} has no launch argument {name!r}{nearest(name, inner.declared)}")
    # As for ros2 launch: what an included file declares can be given from the top.
    context.declared |= inner.declared
    return processes


def _join(element: Element, namespace: str, name: str) -> str:
    if not _NAMESPACE.fullmatch(name):
        raise element.error(f"namespace {name!r} is not a ROS name: letters, digits and underscores, parted by '/'")
    if name.startswith("/"):
        return name.rstrip("/")
    return f"{namespace}/{name}" if name else namespace


def _node(element: Element, context: _Context) -> list[NodeProcess]:
    allowed = ("name", "namespace", "args", "output", "respawn", "on_exit", *_TIMEOUTS, *_CONDITIONS)
    element.expect(allowed, ("pkg", "exec"))
    element.expect_children(("param", "remap"))
    if not _wanted(element, context):
        return []
    package, executable = _text(element, "pkg", context), _text(element, "exec", context)
    try:
        path = find_executable(package, executable, context.environment)
    except LaunchError as error:
        raise element.error(str(error)) from error
    if _truth(element, "respawn", _text(element, "respawn", context, "false")):
        raise element.error("respawn is not supported here; expected false")
    # Whatever is asked for, all output goes to the terminal: there is no log folder here.
    if (output := _text(element, "output", context, "screen")) not in (known := ("both", "log", "own_log", "screen")):
        raise element.error(f"unknown output {output!r}{nearest(output, known)}")
    if (on_exit := _text(element, "on_exit", context)) not in ("", "shutdown"):
        raise element.error(f"attribute 'on_exit' is {on_exit!r}; expected 'shutdown'")
    name = _text(element, "name", context)
    if name and not _NAME.fullmatch(name):
        raise element.error(f"node name {name!r} is not a ROS name: letters, digits and underscores")
    namespace = _join(element, context.namespace, _text(element, "namespace", context))

    command = [str(path), *shlex.split(_text(element, "args", context)), "--ros-args"]
    if name:
        command += ["-r", f"__node:={name}"]
    if namespace:
        command += ["-r", f"__ns:={namespace}"]
    for child in element.children:
        if not _wanted(child, context):
            continue
        command += _remap(child, context) if child.tag == "remap" else _parameter(child, context)
    if command[-1] == "--ros-args":
        command.pop()
    full_name = f"{namespace}/{name}" if name else executable
    timeouts = {key: _seconds(element, key, context) for key in _TIMEOUTS}
    return [NodeProcess(full_name, tuple(command), element.place, on_exit == "shutdown", **timeouts)]


def _seconds(element: Element, name: str, context: _Context) -> float | None:
    text = _text(element, name, context)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise element.error(f"attribute {name!r} is {text!r}; expected a time in seconds")
    return value


def _remap(element: Element, context: _Context) -> list[str]:
    element.expect(_CONDITIONS, ("from", "to"))
    return ["-r", f"{_text(element, 'from', context)}:={_text(element, 'to', context)}"]


def _parameter(element: Element, context: _Context) -> list[str]:
    element.expect_children(())
    if "from" in element.attributes:
        element.expect(_CONDITIONS, ("from",))
        path = Path(_text(element, "from", context))
        if not path.is_file():
            known = [entry.name for entry in path.parent.glob("*.yaml")] if path.parent.is_dir() else []
            raise element.error(f"no parameter file {str(path)!r}{nearest(path.name, known)}")
        return ["--params-file", str(path)]
    element.expect(_CONDITIONS, ("name", "value"))
    name, text = _text(element, "name", context), _text(element, "value", context)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise element.error(f"parameter {name!r}: {text!r} is not a YAML value") from error
    return ["-p", f"{name}:={_yaml(element, name, text, value)}"]


def _yaml(element: Element, name: str, text: str, value: object) -> str:
    """Return a parameter value in YAML that ROS reads as the type that launch files give it."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        if not value or len(kinds) != 1 or not kinds <= {bool, int, float, str}:
            raise element.error(
                f"parameter {name!r}: {text!r} is not a list of one type: all bool, int, float or string"
            )
        return "[" + ", ".join(_yaml(element, name, text, item) for item in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    # Everything else that YAML knows (dates, maps, null) is the text itself for ROS.
    return json.dumps(value if isinstance(value, str) else text, ensure_ascii=False)
