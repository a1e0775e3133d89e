"""What a call costs, from the one price file and the configuration."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from agentd.domain.usage import Price


def price_of(model: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model by its name, or by the longest known start of it; None: unknown."""
    known = {**_built_in(), **(overrides or {})}
    names = [name for name in known if model.startswith(name)]
    return known[max(names, key=len)] if names else None


@cache
def _built_in() -> dict[str, Price]:
    text = files("agentd.models").joinpath("prices.toml").read_text(encoding="utf-8")
    return {name: Price(**price) for name, price in tomllib.loads(text)["models"].items()}
