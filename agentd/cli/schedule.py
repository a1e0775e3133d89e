"""`agentd schedule …`: what runs by the clock."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from agentd.cli.context import (
    Context,
    Opened,
    json_option,
    limit_option,
    model_option,
    offset_option,
    pass_context,
)
from agentd.cli.groups import NounGroup
from agentd.cli.output import choice, one_line, print_fields, print_json, print_table, short
from agentd.domain.clock import SystemClock
from agentd.domain.errors import NotFound, Refused
from agentd.domain.ids import SessionId
from agentd.domain.moment import parse_moment
from agentd.domain.schedule import Decided, Missed, NewSchedule, Overlap, Schedule
from agentd.domain.task import Priority

_EMPTY = 'No schedules. Add one: agentd schedule add "0 9 * * 1-5" "Look at the mail."'


@click.group(cls=NounGroup)
def schedule() -> None:
    """Let prompts run by the clock. ID may be the start or the end of an id."""


@schedule.command()
@click.argument("when")
@click.argument("prompt")
@click.option("--timezone", metavar="NAME", help="E.g. Europe/Berlin; none: as configured.")
@click.option("--session", metavar="NAME", help="The session to speak in; none: always a new one.")
@click.option("--title", help="A few words for lists.")
@click.option("--priority", type=choice(Priority), default=str(Priority.MEDIUM), show_default=True)
@model_option("E.g. anthropic:claude-sonnet-5-5; none: as configured.")
@click.option(
    "--missed",
    type=choice(Missed),
    default=str(Missed.ONCE),
    show_default=True,
    help="What was due while no daemon ran: one run for all, none, or each.",
)
@click.option(
    "--overlap",
    type=choice(Overlap),
    default=str(Overlap.QUEUE),
    show_default=True,
    help="What is due while the last run is unfinished: wait in the queue, or none.",
)
@click.option("--gate", metavar="COMMAND", help="Run only if this command exits with 0.")
@json_option
@pass_context
def add(  # noqa: PLR0913 - one parameter for each option
    context: Context,
    *,
    when: str,
    prompt: str,
    timezone: str | None,
    session: str | None,
    title: str | None,
    priority: str,
    model: str | None,
    missed: str,
    overlap: str,
    gate: str | None,
    as_json: bool,
) -> None:
    """Run PROMPT at WHEN: a cron expression ("0 9 * * 1-5", @daily), "every 90m", or a moment."""
    if not prompt.strip():
        raise click.UsageError("PROMPT is empty.")

    async def work(opened: Opened) -> None:
        new = NewSchedule(
            expression=when,
            prompt=prompt,
            timezone=timezone or opened.scheduling.timezone,
            title=title,
            session_id=SessionId(session) if session else None,
            priority=Priority(priority),
            model=model,
            missed=Missed(missed),
            overlap=Overlap(overlap),
            gate=gate,
        )
        _report(await opened.scheduling.add(new), as_json=as_json)

    context.run(work)


@schedule.command("list")
@json_option
@pass_context
def list_(context: Context, *, as_json: bool) -> None:
    """All schedules, the next to fire first."""

    async def work(opened: Opened) -> None:
        found = await opened.scheduling.list()
        if as_json:
            print_json(found)
            return
        print_table(
            ("id", "when", "timezone", "next", "session", "prompt"),
            [
                (
                    short(each.id),
                    each.expression,
                    each.timezone,
                    _next(each),
                    each.session_id,
                    one_line(each.title or each.prompt),
                )
                for each in found
            ],
            empty=_EMPTY,
        )

    context.run(work)


@schedule.command()
@click.argument("id_", metavar="ID")
@limit_option
@offset_option
@json_option
@pass_context
def view(context: Context, *, id_: str, limit: int, offset: int, as_json: bool) -> None:
    """One schedule in full, and what became of its occurrences, the newest first."""

    async def work(opened: Opened) -> None:
        found = await opened.scheduling.find(id_)
        ledger = await opened.schedules.ledger(found.id, limit=limit, offset=offset)
        if as_json:
            print_json({"schedule": found, "ledger": ledger})
            return
        print_fields(_fields(found))
        _print_ledger(ledger)

    context.run(work)


@schedule.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def remove(context: Context, *, id_: str, as_json: bool) -> None:
    """Remove a schedule; its tasks and the record of its occurrences stay."""

    async def work(opened: Opened) -> None:
        removed = await opened.scheduling.remove(id_)
        if as_json:
            print_json({"removed": removed.id})
        else:
            click.echo(f"{removed.id} removed")

    context.run(work)


@schedule.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def enable(context: Context, *, id_: str, as_json: bool) -> None:
    """Let a schedule fire again; what was due in the meantime stays undone."""

    async def work(opened: Opened) -> None:
        _report(await opened.scheduling.enable(id_), as_json=as_json)

    context.run(work)


@schedule.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def disable(context: Context, *, id_: str, as_json: bool) -> None:
    """Keep a schedule, but do not let it fire."""

    async def work(opened: Opened) -> None:
        _report(await opened.scheduling.disable(id_), as_json=as_json)

    context.run(work)


@schedule.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def trigger(context: Context, *, id_: str, as_json: bool) -> int:
    """Fire once, now; the next occurrence stays what it is. Exit 1 if no task was made."""

    async def work(opened: Opened) -> int:
        fired = await opened.scheduling.trigger(id_)
        if as_json:
            print_json(fired)
        else:
            click.echo(fired.task_id or f"{fired.occurrence.outcome}: {fired.occurrence.reason}")
        return 0 if fired.task_id else 1

    return context.run(work)


@schedule.command()
@click.argument("what", metavar="WHEN|ID")
@click.option("--from", "start", metavar="TIME", help="A moment or a duration from now; none: now.")
@click.option("--to", "until", metavar="TIME", help="The last moment to show.")
@click.option("--timezone", metavar="NAME", help="In which WHEN is read; none: as configured.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=10, show_default=True)
@json_option
@pass_context
def simulate(  # noqa: PLR0913 - one parameter for each option
    context: Context,
    *,
    what: str,
    start: str | None,
    until: str | None,
    timezone: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the exact times at which a schedule, or an expression not yet added, fires."""
    first = _moment(start, "--from") or SystemClock().now()
    last = _moment(until, "--to")

    async def work(opened: Opened) -> None:
        scheduling, zone = opened.scheduling, timezone or opened.scheduling.timezone
        try:
            dues = scheduling.simulate(what, zone, first, last, limit)
        except Refused as unreadable:
            try:
                known = await scheduling.find(what)
            except NotFound:
                raise unreadable from None
            zone = known.timezone
            dues = await scheduling.simulate_known(known.id, first, last, limit)
        _print_dues(dues, zone, as_json=as_json)

    context.run(work)


@schedule.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def explain(context: Context, *, id_: str, as_json: bool) -> None:
    """Say why a schedule did or did not fire."""

    async def work(opened: Opened) -> None:
        explained = await opened.scheduling.explain(id_)
        if as_json:
            print_json(explained)
            return
        click.echo(f"{explained.schedule.expression} ({explained.schedule.timezone})")
        for sentence in explained.why:
            click.echo(sentence)
        _print_ledger(explained.ledger)

    context.run(work)


def _report(found: Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        click.echo(f"{found.id} {_next(found)}")


def _next(found: Schedule) -> str:
    if not found.enabled:
        return "disabled"
    return _local(found.next_due, found.timezone) if found.next_due else "done"


def _local(due: datetime, zone: str) -> str:
    try:
        return due.astimezone(ZoneInfo(zone)).isoformat()
    except (ZoneInfoNotFoundError, ValueError):
        return due.isoformat()  # a zone that is no longer known must not hide the others


def _fields(found: Schedule) -> list[tuple[str, object]]:
    return [
        ("id", found.id),
        ("when", found.expression),
        ("timezone", found.timezone),
        ("next", _next(found)),
        ("title", found.title),
        ("prompt", found.prompt),
        ("session", found.session_id),
        ("priority", found.priority),
        ("model", found.model),
        ("missed", found.missed),
        ("overlap", found.overlap),
        ("gate", found.gate),
        ("created by", found.created_by),
        ("created", found.created_at),
    ]


def _print_ledger(ledger: Sequence[Decided]) -> None:
    print_table(
        ("due", "outcome", "times", "task", "why"),
        [
            (
                each.occurrence.due_at,
                each.occurrence.outcome,
                each.occurrence.times,
                short(each.task_id or ""),
                each.occurrence.reason,
            )
            for each in ledger
        ],
        empty="It has not been due yet.",
    )


def _print_dues(dues: Sequence[datetime], zone: str, *, as_json: bool) -> None:
    if as_json:
        print_json([{"utc": due.isoformat(), "local": _local(due, zone)} for due in dues])
        return
    for due in dues:
        click.echo(_local(due, zone))
    if not dues:
        click.echo("It is not due in that time.", err=True)


def _moment(text: str | None, option: str) -> datetime | None:
    try:
        return parse_moment(text, SystemClock().now()) if text else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error
