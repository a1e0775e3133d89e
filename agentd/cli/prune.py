"""`agentd prune`: old sessions to the archive."""

from datetime import datetime

import click

from agentd.cli.context import Context, Opened, json_option, pass_context
from agentd.cli.output import print_json
from agentd.domain.moment import parse_moment
from agentd.store.archives import ArchiveStore


@click.command()
@click.option(
    "--older-than", default="90d", show_default=True, help="A duration, or a moment in the past."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be moved.")
@json_option
@pass_context
def prune(context: Context, *, older_than: str, dry_run: bool, as_json: bool) -> None:
    """Move sessions in which nothing has happened for so long to the folder archive/.

    `agentd sql` finds them there as before: the views all_tasks, all_events and so on have both.
    """

    async def work(opened: Opened) -> None:
        before = _before(older_than, opened.clock.now())
        archive = ArchiveStore(opened.store, opened.clock, opened.config.archive_path)
        done = await (archive.would_prune(before) if dry_run else archive.prune(before))
        if as_json:
            print_json({"dry_run": dry_run, "before": before, "pruned": done})
            return
        would = "would move" if dry_run else "moved"
        click.echo(f"{would} {done.sessions} sessions, {done.tasks} tasks, {done.events} events")

    context.run(work)


def _before(text: str, now: datetime) -> datetime:
    try:
        moment = parse_moment(text, now)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--older-than") from error
    return now - (moment - now) if moment > now else moment
