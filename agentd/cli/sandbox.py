"""`agentd sandbox`: whether commands are confined on this machine, and the proof."""

import anyio
import click

from agentd.app_tools import make_commands
from agentd.cli.context import Context, home_option, json_option, pass_context
from agentd.cli.groups import NounGroup
from agentd.cli.output import print_json, print_table
from agentd.cli.progress import shown_progress
from agentd.sandbox.battery.attacks import ATTACKS, KINDS
from agentd.sandbox.battery.prove import Bounds, Outcome, Proof, Verdict
from agentd.sandbox.battery.standing import standing


@click.group(cls=NounGroup)
def sandbox() -> None:
    """See how commands of the agent are confined, and attack that."""


@sandbox.command("status")
@home_option
@json_option
@pass_context
def status(context: Context, *, as_json: bool) -> int:
    """What is in force for a confined command; exit 1 when a part of it is missing."""
    found = anyio.run(standing, make_commands(context.config))
    if as_json:
        print_json(found)
    else:
        rows = [(each.part, "yes" if each.ok else "NO", each.text) for each in found]
        print_table(("part", "in force", "value"), rows, empty="")
    return 0 if all(each.ok for each in found) else 1


@sandbox.command("prove")
@home_option
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these; else all."
)
@json_option
@pass_context
def prove(context: Context, *, kinds: tuple[str, ...], as_json: bool) -> int:
    """Attack the sandbox from inside, here and now; exit 1 when an attack escapes.

    Needs about 20 seconds, harms nothing and leaves nothing behind. No daemon is needed.
    """
    config = context.config
    attacks = [each for each in ATTACKS if not kinds or each.kind in kinds]
    bounds, own = Bounds(), config.commands
    bounds = Bounds(
        processes=max(bounds.processes, own.processes + 64),
        memory_mb=max(bounds.memory_mb, own.memory_mb + 1024),
        file_mb=max(bounds.file_mb, own.file_mb + 1024),
        tmp_mb=max(bounds.tmp_mb, own.tmp_mb + 128),
        open_files=max(bounds.open_files, own.open_files + 64),
    )
    proof = Proof(make_commands(config), config.home, config.workspace_path.resolve(), bounds)
    with shown_progress() as tell:
        outcomes = anyio.run(proof.run, tell, attacks)
    if as_json:
        print_json({"held": all(each.holds for each in outcomes), "attacks": outcomes})
    else:
        _print(outcomes)
    return 0 if all(each.holds for each in outcomes) else 1


def _print(outcomes: list[Outcome]) -> None:
    columns = ("kind", "attack", "result", "stopped by", "evidence")
    rows = [
        (each.kind, each.tried, each.verdict, each.by if each.holds else "nothing", each.evidence)
        for each in outcomes
    ]
    print_table(columns, rows, empty="")
    counts = {verdict: sum(each.verdict is verdict for each in outcomes) for verdict in Verdict}
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))
