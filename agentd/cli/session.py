"""`agentd session …`: conversations."""

import json

import click

from agentd.cli.context import (
    Context,
    Opened,
    json_option,
    limit_option,
    offset_option,
    pass_context,
)
from agentd.cli.follow import event_lines
from agentd.cli.groups import NounGroup
from agentd.cli.output import one_line, plain, print_json, print_table


@click.group(cls=NounGroup)
def session() -> None:
    """Read conversations, and say something to them. ID may be the start or the end of an id."""


@session.command("list")
@limit_option
@offset_option
@json_option
@pass_context
def list_(context: Context, *, limit: int, offset: int, as_json: bool) -> None:
    """Sessions, the one with the newest event first."""

    async def work(opened: Opened) -> None:
        found = await opened.sessions.list(limit=limit, offset=offset)
        if as_json:
            print_json(found)
            return
        print_table(
            ("id", "events", "created", "last event", "title"),
            [
                (
                    each.id,
                    each.events,
                    each.created_at,
                    each.last_event_at,
                    one_line(each.title or ""),
                )
                for each in found
            ],
            empty="No sessions.",
        )

    context.run(work)


@session.command()
@click.argument("id_", metavar="ID")
@limit_option
@click.option("--full", is_flag=True, help="Do not shorten long events.")
@json_option
@pass_context
def history(context: Context, *, id_: str, limit: int, full: bool, as_json: bool) -> None:
    """The newest events of a session, in order. JSON: one event on each line."""

    async def work(opened: Opened) -> None:
        session_id = await opened.sessions.find(id_)
        events = await opened.events.newest(session_id, limit)
        for event in events:
            if as_json:
                click.echo(json.dumps(plain(event), ensure_ascii=False))
                continue
            for line in event_lines(event, most=1 << 30 if full else 160):
                click.echo(f"{event.seq:>4}{line}")
        if not events and not as_json:
            click.echo("No events yet.", err=True)

    context.run(work)


@session.command()
@click.argument("id_", metavar="ID")
@click.argument("message")
@json_option
@pass_context
def send(context: Context, *, id_: str, message: str, as_json: bool) -> None:
    """Say something to a session; a task that waits in it wakes, a running one reads it next."""
    if not message.strip():
        raise click.UsageError("MESSAGE is empty.")

    async def work(opened: Opened) -> None:
        session_id = await opened.sessions.find(id_)
        await opened.sessions.send(session_id, message, "person")
        if as_json:
            print_json({"session_id": session_id})
        else:
            click.echo(f"said to {session_id}")

    context.run(work)
