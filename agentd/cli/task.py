"""`agentd task …`: the queue, for people. More subcommands come from the tools of the group."""

from dataclasses import asdict
from typing import Any

import anyio
import click

from agentd.cli.context import (
    Budget,
    Context,
    Opened,
    budget_options,
    json_option,
    limit_option,
    offset_option,
    pass_context,
)
from agentd.cli.groups import NounGroup
from agentd.cli.output import (
    choice,
    coloured,
    one_line,
    plain,
    print_fields,
    print_json,
    print_table,
    short,
)
from agentd.domain.budget import dollars
from agentd.domain.task import FINISHED, Priority, Task, TaskState
from agentd.store.budgets import BudgetStore
from agentd.store.model_calls import Spent
from agentd.store.tasks import TaskStore

_CANCEL_S = 5.0  # a running call ends within a second; a busy database may add some


@click.group(cls=NounGroup)
def task() -> None:
    """Look at tasks and change them. ID may be the start or the end of an id."""


@task.command("list")
@click.option("--state", type=choice(TaskState), help="Only those in this state.")
@click.option("--priority", type=choice(Priority), help="Only those of this priority.")
@click.option("--session", metavar="ID", help="Only those of this session.")
@limit_option
@offset_option
@json_option
@pass_context
def list_(  # noqa: PLR0913 - one parameter for each option
    context: Context,
    *,
    state: str | None,
    priority: str | None,
    session: str | None,
    limit: int,
    offset: int,
    as_json: bool,
) -> None:
    """Running tasks, then pending ones in the order of work, then waiting, then ended ones."""

    async def work(opened: Opened) -> None:
        session_id = await opened.sessions.find(session) if session else None
        found = await opened.tasks.list(
            state=TaskState(state) if state else None,
            priority=Priority(priority) if priority else None,
            session_id=session_id,
            limit=limit,
            offset=offset,
        )
        if as_json:
            print_json(found)
            return
        print_table(
            ("id", "state", "priority", "created", "by", "task"),
            [
                (
                    short(each.id),
                    each.state,
                    each.priority,
                    each.created_at,
                    each.enqueued_by,
                    one_line(each.title or each.prompt),
                )
                for each in found
            ],
            empty="No tasks.",
        )

    context.run(work)


@task.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def view(context: Context, *, id_: str, as_json: bool) -> None:
    """One task in full: its output or error, its runs, what it cost."""

    async def work(opened: Opened) -> None:
        found = await opened.tasks.find(id_)
        runs = await opened.runs.of_task(found.id)
        spent = await opened.model_calls.of_task(found.id)
        if as_json:
            print_json({**plain(found), "runs": runs, "spent": asdict(spent)})
            return
        print_fields(_fields(found, spent))
        for each in runs:
            ended = f"attempt {each['attempt']} {each['ending']}"
            why = f": {one_line(each['error'], 500)}" if each["error"] else ""
            click.echo(f"  {ended}{why}")

    context.run(work)


@task.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def watch(context: Context, *, id_: str, as_json: bool) -> int:
    """Follow a task live to its end; exit 1 unless it is completed."""
    from agentd.cli.follow import follow  # noqa: PLC0415 - the other commands need no socket

    async def work(opened: Opened) -> int:
        ended = await follow(opened, (await opened.tasks.find(id_)).id, as_json=as_json)
        return 0 if ended.state is TaskState.COMPLETED else 1

    return context.run(work)


@task.command()
@click.argument("id_", metavar="ID")
@click.option("--reason", default="cancelled by a person", show_default=True)
@json_option
@pass_context
def cancel(context: Context, *, id_: str, reason: str, as_json: bool) -> int:
    """Cancel a task; a model call or a tool that is running for it ends within a second."""

    async def work(opened: Opened) -> int:
        found = await opened.tasks.find(id_)
        current = await opened.tasks.cancel(found.id, reason=reason)
        with anyio.move_on_after(_CANCEL_S):
            while current.state not in FINISHED:
                await anyio.sleep(0.05)
                current = await opened.tasks.get(found.id)
        _report(current, as_json=as_json)
        if current.state in FINISHED:
            return 0
        click.echo("Its daemon has not answered yet; the request stands.", err=True)
        return 1

    return context.run(work)


@task.command()
@click.argument("id_", metavar="ID")
@budget_options
@json_option
@pass_context
def retry(context: Context, *, id_: str, budget: Budget, as_json: bool) -> None:
    """Let a failed or cancelled task go on, in its session, with all that is known there."""

    async def work(opened: Opened) -> None:
        found = await opened.tasks.find(id_)
        async with opened.store.transaction() as conn:
            await BudgetStore(conn, opened.clock).raise_limits(found.id, *budget)
            retried = await TaskStore(conn, opened.clock).retry(found.id)
        _report(retried, as_json=as_json)

    context.run(work)


@task.command()
@click.argument("id_", metavar="ID")
@click.argument("message", required=False)
@budget_options
@json_option
@pass_context
def resume(
    context: Context, *, id_: str, message: str | None, budget: Budget, as_json: bool
) -> None:
    """Wake a waiting task, with something to say to it if you like."""

    async def work(opened: Opened) -> None:
        found = await opened.tasks.find(id_)
        async with opened.store.transaction() as conn:
            await BudgetStore(conn, opened.clock).raise_limits(found.id, *budget)
            resumed = await TaskStore(conn, opened.clock).resume(found.id, message)
        _report(resumed, as_json=as_json)

    context.run(work)


@task.command()
@click.argument("id_", metavar="ID")
@json_option
@pass_context
def delete(context: Context, *, id_: str, as_json: bool) -> None:
    """Take a task that is not running out of the queue; its session's journal stays."""

    async def work(opened: Opened) -> None:
        found = await opened.tasks.find(id_)
        await opened.tasks.delete(found.id)
        if as_json:
            print_json({"deleted": found.id})
        else:
            click.echo(f"{found.id} deleted")

    context.run(work)


def _report(task: Task, *, as_json: bool) -> None:
    if as_json:
        print_json(task)
    else:
        click.echo(f"{task.id} {coloured(task.state)}")


def _fields(found: Task, spent: Spent) -> list[tuple[str, Any]]:
    return [
        ("id", found.id),
        ("title", found.title),
        ("state", coloured(found.state)),
        ("prompt", found.prompt),
        ("output", found.output),
        ("error", found.error),
        ("waits for", found.waiting_reason),
        ("wakes at", found.wake_at),
        ("wakes on task", found.wake_on_task),
        ("session", found.session_id),
        ("priority", found.priority),
        ("after", found.after),
        ("not before", found.not_before),
        ("key", found.key),
        ("model", found.model),
        ("may cost", _limit(found)),
        ("attempt", found.attempt),
        ("enqueued by", found.enqueued_by),
        ("created", found.created_at),
        ("started", found.started_at),
        ("finished", found.finished_at),
        ("spent", _money(spent)),
    ]


def _limit(found: Task) -> str | None:
    """What the task says of itself; limits of the configuration stand in `agentd cost`."""
    cost, tokens = found.limits.max_cost_microusd, found.limits.max_total_tokens
    parts = [dollars(cost)] if cost is not None else []
    parts += [f"{tokens:,} tokens"] if tokens is not None else []
    return ", ".join(parts) or None


def _money(spent: Spent) -> str | None:
    if not spent.calls:
        return None
    tokens = f"{spent.input_tokens + spent.cache_read_tokens + spent.cache_write_tokens} tokens in"
    line = f"{spent.calls} model calls, {tokens}, {spent.output_tokens} out"
    priced = f"{line}, ${spent.cost_microusd / 1_000_000:.4f}"
    if spent.unpriced:
        return f"{line}; no price is known for {spent.unpriced} of them (see models.prices)"
    return priced
