"""`agentd enqueue`: put a task into the queue."""

import math
import sys

import click

from agentd.cli.context import (
    Budget,
    Context,
    Opened,
    budget_options,
    home_option,
    json_option,
    model_option,
    pass_context,
)
from agentd.cli.output import choice, print_json
from agentd.domain.clock import SystemClock
from agentd.domain.ids import SessionId, TaskId
from agentd.domain.moment import parse_moment
from agentd.domain.task import Limits, NewTask, Priority, TaskState
from agentd.store.tasks import Enqueued


@click.command()
@click.argument("prompt")
@click.option("--priority", type=choice(Priority), default=str(Priority.MEDIUM), show_default=True)
@click.option("--after", multiple=True, metavar="ID", help="A task that must be completed first.")
@click.option("--after-any", is_flag=True, help="Let those tasks fail or be cancelled, too.")
@click.option("--session", metavar="NAME", help="The session to work it in; none: a new one.")
@click.option("--at", metavar="TIME", help="Not before: 2026-12-24T18:00 or a duration (90m, 2d).")
@click.option("--key", help="While a task with this key is unfinished, no second one is made.")
@model_option("E.g. anthropic:claude-sonnet-5-5; none: as configured.")
@click.option("--title", help="A few words for lists.")
@click.option("--max-iterations", type=click.IntRange(0), help="Replies of the model; 0: no limit.")
@click.option("--deadline", type=click.FloatRange(0, min_open=True), help="Seconds of one run.")
@click.option("--max-attempts", type=click.IntRange(1), help="Runs that may end with an error.")
@budget_options
@click.option("--wait", is_flag=True, help="Follow it to its end; exit 1 unless it is completed.")
@json_option
@home_option
@pass_context
def enqueue(  # noqa: PLR0913 - one parameter for each option
    context: Context,
    *,
    prompt: str,
    priority: str,
    after: tuple[str, ...],
    after_any: bool,
    session: str | None,
    at: str | None,
    key: str | None,
    model: str | None,
    title: str | None,
    max_iterations: int | None,
    deadline: float | None,
    max_attempts: int | None,
    budget: Budget,
    wait: bool,
    as_json: bool,
) -> int:
    """Put a task into the queue. PROMPT says what to do; - reads it from standard input."""
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise click.UsageError("PROMPT is empty.")
    if deadline is not None and not math.isfinite(deadline):
        raise click.BadParameter("must be a number of seconds", param_hint="--deadline")
    if after_any and not after:
        raise click.UsageError("--after-any says nothing without --after.")
    try:
        not_before = parse_moment(at, SystemClock().now()) if at else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--at") from error

    async def work(opened: Opened) -> int:
        new = NewTask(
            prompt=text,
            title=title,
            priority=Priority(priority),
            session_id=SessionId(session) if session else None,
            after=tuple([(await opened.tasks.find(each)).id for each in after]),
            after_any=after_any,
            not_before=not_before,
            key=key,
            model=model,
            limits=Limits(max_iterations, deadline, max_attempts, *budget),
            enqueued_by="cli",
        )
        enqueued = await opened.tasks.enqueue(new)
        return await _report(opened, enqueued, wait=wait, as_json=as_json)

    return context.run(work)


async def _report(opened: Opened, enqueued: Enqueued, *, wait: bool, as_json: bool) -> int:
    task = enqueued.task
    if not wait:
        if as_json:
            print_json({"created": enqueued.created, "task": task})
        else:
            click.echo(task.id)
            if not enqueued.created:
                click.echo(f"The key {task.key!r} is taken by this {task.state} task.", err=True)
        return 0
    return await _follow(opened, task.id, as_json=as_json)


async def _follow(opened: Opened, task_id: TaskId, *, as_json: bool) -> int:
    from agentd.cli.follow import follow  # noqa: PLC0415 - enqueueing alone must stay fast

    ended = await follow(opened, task_id, as_json=as_json)
    return 0 if ended.state is TaskState.COMPLETED else 1
