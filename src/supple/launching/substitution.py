# SPDX-License-Identifier: Apache-2.0
"""Substitutions of launch XML: ``$(var …)``, ``$(env …)``, ``$(find-pkg-share …)``, ``$(dirname)``, nested at will."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from supple.launching.document import LaunchError, nearest
from supple.launching.environment import share_folder

__all__ = ["Scope", "substitute"]


@dataclass(frozen=True)
class Scope:
    """What substitutions can see at one place of a launch file.

    Attributes:
        variables: Values of ``<arg>`` and ``<let>``.
        environment: Environment variables.
        folder: Folder of the launch file.
    """

    variables: Mapping[str, str]
    environment: Mapping[str, str]
    folder: Path


def _variable(scope: Scope, words: list[str]) -> str:
    name = words[0]
    if name in scope.variables:
        return scope.variables[name]
    raise LaunchError(f"unknown variable {name!r}{nearest(name, scope.variables)}")


def _environment(scope: Scope, words: list[str]) -> str:
    if words[0] in scope.environment:
        return scope.environment[words[0]]
    if len(words) == 2:
        return words[1]
    raise LaunchError(f"environment variable {words[0]!r} is not set and $(env {words[0]}) gives no default")


def _find_share(scope: Scope, words: list[str]) -> str:
    return str(share_folder(words[0], scope.environment))


def _folder(scope: Scope, _words: list[str]) -> str:
    return str(scope.folder)


_KNOWN: dict[str, tuple[Callable[[Scope, list[str]], str], range]] = {
    "dirname": (_folder, range(1)),
    "env": (_environment, range(1, 3)),
    "find-pkg-share": (_find_share, range(1, 2)),
    "var": (_variable, range(1, 2)),
}


def substitute(text: str, scope: Scope) -> str:
    r"""Return a text with its substitutions replaced; ``\$`` stands for a dollar sign.

    Raises:
        LaunchError: An unknown substitution or name, a wrong number of words, or a bracket that is not closed.
    """
    value, end = _read(text, 0, scope, inside=False)
    if end != len(text):
        raise LaunchError(f"cannot read {text!r} beyond character {end}")
    return value[0]


def _read(text: str, position: int, scope: Scope, *, inside: bool) -> tuple[list[str], int]:
    """Read to the end of the text or, inside a substitution, to its closing bracket; return words and position.

    Outside there is one word, the whole text. Inside, blanks part the words and quotes hold them together.
    """
    words: list[str] = []
    word: str | None = None if inside else ""
    quote = ""
    while position < len(text):
        character = text[position]
        if text.startswith("\\$", position):
            word, position = (word or "") + "$", position + 2
        elif text.startswith("$(", position):
            value, position = _read(text, position + 2, scope, inside=True)
            word = (word or "") + _evaluate(value, text, scope)
        elif not inside:
            word, position = (word or "") + character, position + 1
        elif quote and character == quote:
            quote, position = "", position + 1
        elif not quote and character in "'\"":
            word, quote, position = word or "", character, position + 1
        elif not quote and character == ")":
            return words if word is None else [*words, word], position + 1
        elif not quote and character.isspace():
            if word is not None:
                words.append(word)
            word, position = None, position + 1
        else:
            word, position = (word or "") + character, position + 1
    if inside:
        raise LaunchError(f"{'quote' if quote else 'bracket'} is not closed in {text!r}")
    return [word or ""], position


def _evaluate(words: list[str], text: str, scope: Scope) -> str:
    name, *rest = words or [""]
    if name not in _KNOWN:
        raise LaunchError(f"unknown substitution $({name} …) in {text!r}{nearest(name, _KNOWN)}")
    function, counts = _KNOWN[name]
    if len(rest) not in counts:
        expected = " or ".join(map(str, counts))
        raise LaunchError(f"$({name} …) in {text!r} takes {expected} words; got {len(rest)}")
    return function(scope, rest)
