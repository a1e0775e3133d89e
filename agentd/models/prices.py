"""What a call costs, from the one price file and the configuration. Unknown is never free."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import structlog

from agentd.domain.usage import Price

_log = structlog.get_logger()
_UNNAMED = "anthropic:"  # the table, like the journal, names its models without it


def price_of(model: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model by its name, or by the longest known start of it; None: unknown.

    model: with or without its provider; an override may leave "openai:" out, too. The built-in
    prices are not taken for models of a gateway that resells them at its own.
    """
    name = model.removeprefix(_UNNAMED)
    own = overrides or {}
    found = _longest(name, {**_built_in(), **own})
    return found or _longest(name.removeprefix("openai:"), own)


@dataclass(slots=True)
class PriceList:
    """Prices for a daemon: says once of each model that it has none."""

    overrides: Mapping[str, Price]
    _reported: set[str] = field(default_factory=set[str])

    def __call__(self, model: str) -> Price | None:
        price = price_of(model, self.overrides)
        if price is None and model not in self._reported:
            self._reported.add(model)
            _log.warning(
                "no price is known: the cost of this model is not counted",
                model=model,
                hint=f'set models.prices."{model}"',
            )
        return price


def prices_as_of() -> date:
    """The day on which the built-in prices were looked up."""
    day: date = _table()["as_of"]
    return day


def _longest(name: str, known: Mapping[str, Price]) -> Price | None:
    starts = [start for start in known if name.startswith(start)]
    return known[max(starts, key=len)] if starts else None


@cache
def _built_in() -> dict[str, Price]:
    return {name: Price(**price) for name, price in _table()["models"].items()}


@cache
def _table() -> dict[str, Any]:
    text = files("agentd.models").joinpath("prices.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
