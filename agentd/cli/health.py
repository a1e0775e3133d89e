"""`agentd health`: for health checks of containers and scripts. Opens no database."""

import click

from agentd.cli.context import Context, home_option, json_option, pass_context
from agentd.cli.output import print_json
from agentd.daemon.health_files import HealthFiles
from agentd.domain.clock import SystemClock
from agentd.domain.health import Diagnosis, Diagnostics, Wellness


@click.command()
@home_option
@json_option
@pass_context
def health(context: Context, *, as_json: bool) -> int:
    """Exit 0 when a daemon of this home lives and is well, else 1, with the reason."""
    found = HealthFiles(context.config.run_path, SystemClock()).diagnose()
    well = next((each for each in found.daemons if _is_well(each)), None)
    reason = "" if well else _reason(found)
    if as_json:
        print_json(
            {
                "ok": well is not None,
                "state": well.state if well else Wellness.FAIL,
                "reason": reason or (well.reason if well else ""),
                "daemons": len(found.daemons),
            }
        )
    elif well:
        click.echo(f"{well.state}: {well.reason}" if well.reason else str(well.state))
    else:
        click.echo(f"not well: {reason}")
    return 0 if well else 1


def _is_well(daemon: Diagnosis) -> bool:
    return daemon.health is not None and daemon.state is not Wellness.FAIL


def _reason(found: Diagnostics) -> str:
    return "; ".join(each.reason for each in found.daemons) or found.reason
