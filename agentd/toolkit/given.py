"""Tools whose input schema was written by somebody else: checked as JSON Schema, not by pydantic.

`jsonschema` is imported with the first such tool. A schema from outside must not reach the network
(a remote `$ref`), and must not run its own regular expressions here: the server checks those.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pydantic import BaseModel

from agentd.domain.jsons import is_array, is_object

Schema = Mapping[str, Any]
_PATTERNS = frozenset({"pattern", "patternProperties", "format", "propertyNames"})
# Each with each is compared, or the whole is gone through again and again, uncounted.
_SLOW = frozenset({"uniqueItems", "unevaluatedItems", "unevaluatedProperties", "$schema"})
_STEPS_MOST = 20_000
_PER_STEP = 64  # values that one step looks at
_PROBLEMS_MOST = 5


class Given(BaseModel):
    """The input as it came."""

    arguments: dict[str, Any]


@dataclass(frozen=True)
class GivenSchema:
    """A schema from outside, and what checks values against it; made once, for many calls."""

    schema: Schema

    def problems(self, value: Any) -> list[str]:
        """What is wrong with `value`, at most a handful."""
        found: list[str] = []
        self._steps.left = _STEPS_MOST
        try:
            for error in self._validator.iter_errors(value):
                where = error.json_path.removeprefix("$").removeprefix(".")
                found.append(f"{where}: {error.message}"[:500] if where else error.message[:500])
                if len(found) == _PROBLEMS_MOST:
                    break
        except Exception:  # noqa: BLE001 - a schema that leads nowhere, or never to an end
            return found  # the server knows what it meant
        return found

    @cached_property
    def _steps(self) -> "_Steps":
        return _Steps()

    @cached_property
    def _validator(self) -> Any:
        import referencing  # noqa: PLC0415 - see above

        # An empty registry resolves what stands in the schema itself and fetches nothing.
        nothing = cast("Any", referencing).Registry()
        kind = self._steps.counted(_kind(self.schema))
        return kind(_without_patterns(self.schema), registry=nothing)


class _Steps:
    """Ends a check after so many steps: a short schema can keep one busy for ever."""

    def __init__(self) -> None:
        self.left = 0

    def counted(self, kind: Any) -> Any:
        from jsonschema import validators  # noqa: PLC0415 - see above

        rules = {name: self._step(rule) for name, rule in kind.VALIDATORS.items()}
        return cast("Any", validators).extend(kind, rules)

    def _step(self, rule: Any) -> Any:
        def step(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            self.left -= 1 + (_size(value) + _size(instance)) // _PER_STEP
            if self.left < 0:
                raise _TooLong
            return rule(validator, value, instance, schema)

        return step


def _size(value: Any) -> int:
    return len(value) if is_array(value) or is_object(value) else 0


class _TooLong(Exception):
    """The check is given up."""


def check_schema(schema: Schema) -> str | None:
    """Why `schema` is no valid JSON Schema as the models take it (2020-12), or None."""
    kind = _kind({})
    worst: Any = next(kind(kind.META_SCHEMA).iter_errors(schema), None)
    return None if worst is None else f"{worst.json_path}: {worst.message}"[:300]


def _kind(schema: Schema) -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - see above
    from jsonschema.validators import validator_for  # noqa: PLC0415 - see above

    return validator_for(schema, default=Draft202012Validator)


def _without_patterns(node: Any, in_properties: bool = False) -> Any:
    if is_array(node):
        return [_without_patterns(each) for each in node]
    if not is_object(node):
        return node
    return {
        key: value
        if key in ("const", "enum", "default")
        else _without_patterns(value, in_properties=key == "properties" and not in_properties)
        for key, value in node.items()
        if in_properties or key not in _PATTERNS | _SLOW
    }
