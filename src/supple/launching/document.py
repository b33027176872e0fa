# SPDX-License-Identifier: Apache-2.0
"""Launch XML as elements that know the file and line they came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from supple.errors import SuppleError

__all__ = ["Element", "LaunchError", "nearest", "read_document"]


class LaunchError(SuppleError, ValueError):
    """A launch file or argument that cannot be used; the message starts with file and line."""


def nearest(got: str, available: Iterable[str]) -> str:
    """Return ``"; did you mean …? (available: …)"`` for a name that is not among the known ones."""
    names = sorted(available)
    close = difflib.get_close_matches(got, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint} (available: {', '.join(names) or 'none'})"


@dataclass
class Element:
    """One XML element.

    Attributes:
        tag: Its tag.
        attributes: Its attributes as written, before substitution.
        path: The file it stands in.
        line: The line it starts on, counted from 1.
        children: The elements inside, in order.
    """

    tag: str
    attributes: dict[str, str]
    path: Path
    line: int
    children: list[Element] = field(default_factory=list)

    @property
    def place(self) -> str:
        """File and line, as compilers write them."""
        return f"{self.path}:{self.line}"

    def error(self, message: str) -> LaunchError:
        """Return an error about this element."""
        return LaunchError(f"{self.place}: <{self.tag}>: {message}")

    def expect(self, known: Iterable[str], required: Iterable[str] = ()) -> None:
        """Check the names of the attributes.

        Raises:
            LaunchError: An attribute is unknown, or a required one is missing.
        """
        known = set(known) | set(required)
        for name in self.attributes:
            if name not in known:
                raise self.error(f"unknown attribute {name!r}{nearest(name, known)}")
        for name in required:
            if name not in self.attributes:
                raise self.error(f"attribute {name!r} is missing; got {', '.join(self.attributes) or 'none'}")

    def expect_children(self, known: Iterable[str]) -> None:
        """Check the tags of the children.

        Raises:
            LaunchError: A child has a tag that cannot stand here.
        """
        for child in self.children:
            if child.tag not in known:
                raise LaunchError(
                    f"{child.place}: unknown tag <{child.tag}> inside <{self.tag}>{nearest(child.tag, known)}"
                )


def read_document(path: Path) -> Element:
    """Read a launch file.

    Raises:
        LaunchError: It cannot be read, is not well-formed XML, or its root is not ``<launch>``.
    """
    roots: list[Element] = []
    stack: list[Element] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, path, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if data.strip():
            raise LaunchError(
                f"{path}:{parser.CurrentLineNumber}: text {data.strip()!r} inside <{stack[-1].tag}>; "
                "launch files hold elements and attributes only"
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(path.read_bytes(), True)
    except OSError as error:
        raise LaunchError(f"{path}: cannot be read: {error.strerror}") from error
    except expat.ExpatError as error:
        raise LaunchError(f"{path}:{error.lineno}: not well-formed XML: {expat.errors.messages[error.code]}") from error
    root = roots[0]
    if root.tag != "launch":
        raise LaunchError(f"{root.place}: the root is <{root.tag}>; expected <launch>")
    return root
