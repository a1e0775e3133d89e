"""What a figure is, its target, and how it is printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `at_least`, `at_most`: the target, where there is one.

    `reference`: what it is compared with, in words.
    """

    name: str
    value: float
    unit: str
    reference: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def reached(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most


def merged(runs: Sequence[Sequence[Figure]]) -> list[tuple[Figure, float, float]]:
    """The median of each figure over all runs, with its minimum and maximum."""
    rows: list[tuple[Figure, float, float]] = []
    for same in zip(*runs, strict=True):
        values = [figure.value for figure in same]
        first = same[0]
        middle = Figure(
            first.name,
            median(values),
            first.unit,
            first.reference,
            first.at_least,
            first.at_most,
        )
        rows.append((middle, min(values), max(values)))
    return rows


def table(rows: Sequence[tuple[Figure, float, float]]) -> str:
    """A Markdown table."""
    lines = ["| figure | median | min – max | target | |", "|---|---:|---:|---:|---|"]
    for figure, low, high in rows:
        mark = {True: "reached", False: "**missed**", None: ""}[figure.reached]
        lines.append(
            f"| {figure.name} | {_number(figure.value)} {figure.unit} | {_number(low)} – "
            f"{_number(high)} | {_target(figure)} | {mark} |"
        )
    return "\n".join(lines)


def percentile(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return max(values, default=float("nan"))
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _target(figure: Figure) -> str:
    if figure.at_least is not None:
        return f"≥ {figure.at_least:g}"
    return "" if figure.at_most is None else f"≤ {figure.at_most:g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
