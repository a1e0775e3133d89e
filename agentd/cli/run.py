"""`agentd run`: the daemon."""

import click

from agentd.cli.context import Context, Opened, home_option, model_option, pass_context


@click.command()
@click.option("--drain", is_flag=True, help="Stop when nothing is left to do.")
@click.option("--once", is_flag=True, help="Work one task, then stop.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Tasks at a time.")
@model_option("The model of tasks that name none, e.g. scripted:demo.")
@click.option("--json", "as_json", is_flag=True, help="Log lines as JSON.")
@home_option
@pass_context
def run(
    context: Context,
    *,
    drain: bool,
    once: bool,
    concurrency: int | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Run the daemon: claim tasks from the queue and work them.

    SIGTERM or Ctrl-C lets running calls end and puts the rest back; a second one leaves at once.
    """
    if drain and once:
        raise click.UsageError("--drain and --once exclude each other.")
    # Everything heavy is loaded here: no other command needs the agent.
    from agentd.app import serve  # noqa: PLC0415 - see above
    from agentd.daemon.logs import configure_logs  # noqa: PLC0415 - see above
    from agentd.daemon.supervisor import Until  # noqa: PLC0415 - see above

    overrides = {"daemon.concurrency": concurrency, "agent.model": model}
    context.overrides = {name: value for name, value in overrides.items() if value is not None}
    log = context.config.log
    style = "json" if as_json else log.format
    configure_logs(level=log.level, style=style, redactor=context.redactor())
    until = Until.ONE if once else Until.DRAINED if drain else Until.STOPPED

    async def work(opened: Opened) -> None:
        await serve(opened.config, opened.store, until)

    context.run(work)
