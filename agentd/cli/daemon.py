"""`agentd daemon …`: who works on this home."""

import click

from agentd.cli.context import Context, Opened, json_option, limit_option, pass_context
from agentd.cli.output import plain, print_json, print_table, short
from agentd.daemon.presence import is_alive


@click.group()
def daemon() -> None:
    """See who works on this home."""


@daemon.command("list")
@click.option("--all", "include_stopped", is_flag=True, help="Also those that have stopped.")
@limit_option
@json_option
@pass_context
def list_(context: Context, *, include_stopped: bool, limit: int, as_json: bool) -> int:
    """The daemons of this home; exit 1 when none is alive."""

    async def work(opened: Opened) -> int:
        found = await opened.daemons.list(include_stopped=include_stopped, limit=limit)
        run_path = opened.config.run_path
        states = [
            "stopped" if each.stopped_at else "alive" if is_alive(run_path, each.id) else "dead"
            for each in found
        ]
        rows = list(zip(found, states, strict=True))
        if as_json:
            print_json([{"state": state, **plain(each)} for each, state in rows])
        else:
            print_table(
                ("id", "state", "pid", "host", "version", "running", "of", "started"),
                [
                    (
                        short(each.id),
                        state,
                        each.pid,
                        each.host,
                        each.version,
                        each.running,
                        each.concurrency,
                        each.started_at,
                    )
                    for each, state in rows
                ],
                empty="No daemon works on this home; start one: agentd run",
            )
        return 0 if "alive" in states else 1

    return context.run(work)
