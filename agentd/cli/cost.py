"""`agentd cost`: what model calls have cost, and what is left of the limits."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import click

from agentd.cli.context import (
    Context,
    Opened,
    home_option,
    json_option,
    limit_option,
    pass_context,
)
from agentd.cli.output import one_line, print_json, print_table, short
from agentd.domain.budget import Amount, Limit, Scope, Used, dollars, midnight
from agentd.domain.clock import SystemClock
from agentd.domain.moment import parse_past
from agentd.store.budgets import BudgetStore
from agentd.store.model_calls import Costs

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = Costs("total", 0, 0, 0, 0, 0, 0, 0, 0, 0)
_COLUMNS = ("calls", "failed", "input", "cache write", "cache read", "output", "cost", "unpriced")


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit. `name`: of the task, session or schedule that has used most of its own."""

    limit: str
    name: str | None
    allowed: int
    spent: int
    under_way: int

    @property
    def left(self) -> int:
        return max(0, self.allowed - self.spent - self.under_way)


@click.command()
@click.option(
    "--by",
    type=click.Choice(["task", "session", "schedule", "model", "day"]),
    default="model",
    show_default=True,
)
@click.option("--since", metavar="TIME", help="From then on: 2026-12-24, or a duration (12h, 7d).")
@limit_option
@json_option
@home_option
@pass_context
def cost(context: Context, *, by: str, since: str | None, limit: int, as_json: bool) -> None:
    """What model calls have cost at list price, and what is left of the limits.

    A failed call that broke off counts at its worst case while a limit applies. Unpriced calls are
    counted in tokens; set models.prices for their models.
    """
    try:
        start = parse_past(since, SystemClock().now()) if since else _BEGINNING
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from error

    async def work(opened: Opened) -> None:
        zone = opened.config.budget.timezone
        found = await opened.model_calls.costs(by, since=start, zone=zone, limit=limit)
        whole = await opened.model_calls.costs("all", since=start, zone=zone, limit=1)
        total = replace(whole[0], name="total") if whole else _NOTHING
        limits = await _limits(opened)
        titles = await opened.model_calls.titles([each.name for each in found])
        if as_json:
            lines = [asdict(each) | {"left": each.left} for each in limits]
            print_json({"by": by, "costs": found, "total": total, "limits": lines})
            return
        _print_costs(by, found, total, titles)
        _print_limits(limits)

    context.run(work)


async def _limits(opened: Opened) -> list[LimitLine]:
    amounts = opened.config.budget.amounts()
    ledger, lines = BudgetStore(opened.store, opened.clock), list[LimitLine]()
    for scope, amount in amounts.items():
        limit = await _most_used(opened, scope, amount)
        (used,) = await ledger.used([limit]) if limit else [Used(0, 0, 0, 0)]
        lines += _lines(scope, amount, limit and limit.id, used)
    return lines


async def _most_used(opened: Opened, scope: Scope, amount: Amount) -> Limit | None:
    """The limit itself; of one for each task, session or schedule that of the dearest."""
    zone = opened.config.budget.zone()
    if scope in (Scope.DAY, Scope.ALL):
        return Limit(scope, amount, since=midnight(opened.clock.now(), zone, scope))
    found = await opened.model_calls.costs(str(scope), since=_BEGINNING, zone=zone.key, limit=2)
    named = [each.name for each in found if each.name]
    return Limit(scope, amount, named[0]) if named else None


def _lines(scope: Scope, amount: Amount, name: str | None, used: Used) -> list[LimitLine]:
    lines: list[LimitLine] = []
    if amount.cost_microusd is not None:
        spent, under_way = used.spent_microusd, used.reserved_microusd
        lines.append(LimitLine(scope.key(), name, amount.cost_microusd, spent, under_way))
    if amount.tokens is not None:
        spent, under_way = used.spent_tokens, used.reserved_tokens
        lines.append(LimitLine(scope.key(in_tokens=True), name, amount.tokens, spent, under_way))
    return lines


def _print_costs(by: str, found: Sequence[Costs], total: Costs, titles: dict[str, str]) -> None:
    titled = by in ("task", "session")
    rows: list[list[object]] = []
    for each in [*found, total] if found else []:
        name = each.name or "(none)"
        row = [short(name), *_cells(each)]
        rows.append([*row, one_line(titles.get(each.name, ""))] if titled else row)
    columns = (by, *_COLUMNS, "title") if titled else (by, *_COLUMNS)
    print_table(columns, rows, empty="No model calls.")
    if total.estimated_microusd:
        click.echo(f"{dollars(total.estimated_microusd)} of it is for calls that broke off.")


def _cells(each: Costs) -> list[object]:
    tokens = (
        each.input_tokens,
        each.cache_write_tokens,
        each.cache_read_tokens,
        each.output_tokens,
    )
    return [
        each.calls,
        each.failed or "",
        *(f"{count:,}" for count in tokens),
        dollars(each.cost_microusd),
        each.unpriced or "",
    ]


def _print_limits(lines: Sequence[LimitLine]) -> None:
    if not lines:
        return
    click.echo()
    print_table(
        ("limit", "allowed", "spent", "under way", "left", "most used by"),
        [
            (
                each.limit,
                *(
                    dollars(count) if each.limit.endswith("_usd") else f"{count:,}"
                    for count in (each.allowed, each.spent, each.under_way, each.left)
                ),
                short(each.name or ""),
            )
            for each in lines
        ],
        empty="",
    )
