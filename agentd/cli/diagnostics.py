"""`agentd diagnostics`: what the watchdog of each daemon has seen. Opens no database."""

from collections.abc import Iterator

import click

from agentd.cli.context import Context, home_option, json_option, pass_context
from agentd.cli.output import print_json, print_table, short
from agentd.daemon.health_files import HealthFiles
from agentd.domain.clock import SystemClock
from agentd.domain.health import Diagnosis, Diagnostics, Wellness


@click.command()
@home_option
@json_option
@pass_context
def diagnostics(context: Context, *, as_json: bool) -> int:
    """Every check of every daemon of this home; exit 1 when one fails, or no daemon lives."""
    found = HealthFiles(context.config.run_path, SystemClock()).diagnose()
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 1 if found.state is Wellness.FAIL else 0


def _print(found: Diagnostics) -> None:
    print_table(
        ("daemon", "check", "state", "seen", "found"),
        [row for each in found.daemons for row in _rows(each)],
        empty="No daemon works on this home; start one: agentd run",
    )
    if found.daemons:
        click.echo(f"{found.state}: {found.reason}" if found.reason else str(found.state))


def _rows(daemon: Diagnosis) -> Iterator[tuple[object, ...]]:
    name = short(daemon.daemon)
    health = daemon.health
    if health is None:
        yield name, "watchdog", daemon.state, "", daemon.reason
        return
    seen = f"{daemon.age_s:.0f} s ago"
    if daemon.state is not health.state:
        yield name, "watchdog", daemon.state, seen, daemon.reason
    for check in health.checks:
        yield name, check.name, check.state, seen, check.text
