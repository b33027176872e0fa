# SPDX-License-Identifier: Apache-2.0
"""YAML files as plain data or as models, with errors that name the file and the field."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from supple.errors import SuppleError

__all__ = ["first_problem", "read_model", "read_yaml"]

Model = TypeVar("Model", bound=BaseModel)


class _OnceLoader(yaml.SafeLoader):
    """Reads YAML as PyYAML does, but refuses a key that stands twice instead of keeping the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path | str, refusal: type[SuppleError]) -> Any:
    """Return what a YAML file holds, as plain data.

    Args:
        path: The file.
        refusal: What is raised if it cannot be read.

    Raises:
        SuppleError: The ``refusal``: there is no such file, or it is no YAML; names the file.
    """
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), _OnceLoader)
    except OSError as error:
        raise refusal(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # Its own text has line breaks and a drawing of the place.
        raise refusal(f"{path}: no valid YAML: {' '.join(str(error).split())}") from error


def read_model(path: Path | str, model: type[Model], refusal: type[SuppleError]) -> Model:
    """Return what a YAML file holds, as a model.

    Args:
        path: The file.
        model: What it is to hold.
        refusal: What is raised if it does not.

    Raises:
        SuppleError: The ``refusal``: missing, no YAML, no mapping, or a field is missing, unknown or malformed; names
            file and field.
    """
    plain = read_yaml(path, refusal)
    if not isinstance(plain, dict):
        raise refusal(f"{path}: expected a mapping of fields, got {type(plain).__name__}")
    try:
        return model.model_validate(plain)
    except ValidationError as error:
        raise refusal(f"{path}: {first_problem(error, model)}") from error


def first_problem(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first finding of a validation as one line: the field, what is wrong with it and what was got.

    An unknown field goes first: a misspelt name is better told than the missing one that it was meant for.

    Args:
        error: What the validation raised.
        model: What was validated; its fields are named where one is unknown.
    """
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    place = first["loc"]
    text = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        text = "missing"
    elif first["type"] == "extra_forbidden":
        known = list(_model_at(model, place[:-1]).model_fields)
        close = difflib.get_close_matches(str(place[-1]), known, n=1)
        text = f"unknown field{f'; did you mean {close[0]!r}?' if close else ''} (known: {', '.join(known)})"
    elif first["type"] != "value_error" and isinstance(first["input"], bool | int | float | str | None):
        text += f", got {first['input']!r}"
    return ": ".join([*filter(None, [".".join(map(str, place))]), text])


def _model_at(model: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model that a place within a model holds; keys of mappings and indices of lists lead no deeper."""
    for part in place:
        field = model.model_fields.get(str(part))
        inner = next(_models_in(field.annotation), None) if field else None
        model = inner or model
    return model


def _models_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
