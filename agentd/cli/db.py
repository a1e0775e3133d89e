"""`agentd db …`: the care of the database."""

from datetime import datetime
from pathlib import Path

import click

from agentd.cli.context import Context, json_option, pass_context
from agentd.cli.output import print_json
from agentd.cli.progress import shown_progress
from agentd.config import Config
from agentd.daemon.presence import alive_ones
from agentd.domain.clock import SystemClock
from agentd.domain.errors import Refused, StoreUnusable
from agentd.store.backups import back_up, default_name, restore, thin_out
from agentd.store.checks import Finding, check
from agentd.store.compact import compact
from agentd.store.salvage import salvage
from agentd.store.snapshot import bring_up_to_date, snapshot

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def db() -> None:
    """Check, back up, restore, repair and compact the database."""


@db.command("check")
@json_option
@pass_context
def check_(context: Context, *, as_json: bool) -> int:
    """Read everything, look every row up by its key, and look for what can not be; exit 1 if found.

    Works on a copy: daemons go on meanwhile.
    """
    config = context.config
    found = _findings(config)
    if as_json:
        print_json({"ok": not found, "findings": found})
    else:
        _print_findings(found)
        if not found:
            click.echo(f"{config.database_path} is in order.")
    return 1 if found else 0


def _findings(config: Config) -> list[Finding]:
    alive = alive_ones(config.run_path)
    try:
        bring_up_to_date(config.database_path, config.store.busy_seconds)
        with (
            shown_progress() as progress,
            snapshot(
                config.database_path,
                config.run_path,
                config.store.busy_seconds,
                read_only=False,
                progress=progress,
            ) as instance,
        ):
            # Whoever came or went while the copy was made is no reason to worry anybody.
            alive |= alive_ones(config.run_path)
            archive = config.archive_path
            return check(instance, alive=alive, archive=archive, progress=progress)
    except StoreUnusable as error:
        return [Finding("readable", 1, error.message, error.hint or "agentd db repair")]


def _print_findings(found: list[Finding]) -> None:
    for each in found:
        click.echo(f"{click.style('✗', fg='red')} {each.check}: {each.text} ({each.count})")
        if each.ids:
            more = " …" if each.count > len(each.ids) else ""
            click.echo(f"  {', '.join(each.ids)}{more}")
        click.echo(f"  {each.hint}")


@db.command()
@click.argument("path", required=False, type=_FILE)
@click.option("--keep", type=click.IntRange(1), help="Remove older backups but for so many.")
@json_option
@pass_context
def backup(context: Context, *, path: Path | None, keep: int | None, as_json: bool) -> None:
    """Copy the database, while daemons work, to PATH or into the home's folder backups/.

    The file gets its name once all of it was read again and is on the disk.
    """
    config = context.config
    target = path or config.home / "backups" / default_name(_now())
    if path is None:
        target.parent.mkdir(mode=0o700, exist_ok=True)
    with shown_progress() as progress:
        made = back_up(
            config.database_path, target, busy_s=config.store.busy_seconds, progress=progress
        )
    removed = thin_out(target.parent, keep) if keep else []
    if as_json:
        print_json({"backup": made, "removed": removed})
        return
    click.echo(str(made.path))
    for each in removed:
        click.echo(f"removed {each}", err=True)
    if (config.home / "archive").is_dir():
        click.echo("The folder archive/ is not part of it; copy it, too.", err=True)


@db.command("restore")
@click.argument("file", type=_FILE)
@json_option
@pass_context
def restore_(context: Context, *, file: Path, as_json: bool) -> None:
    """Put the backup FILE in the place of the database, which is kept beside it.

    The backup is read whole before anything is changed. Refused while a daemon runs.
    """
    config = context.config

    def refuse() -> None:
        if alive := alive_ones(config.run_path):
            raise Refused(
                f"{len(alive)} daemons work on this home",
                hint="Stop them first (agentd daemon list shows them). Nothing was changed.",
            )

    refuse()
    with shown_progress() as progress:
        done = restore(
            file,
            config.database_path,
            busy_s=config.store.busy_seconds,
            now=_now(),
            refuse=refuse,
            progress=progress,
        )
    if as_json:
        print_json(done)
        return
    click.echo(f"restored {file} ({_megabytes(done.size_bytes)}, schema {done.schema})")
    if done.kept:
        click.echo(f"the replaced database is {done.kept}")
    _print_findings(done.findings)


@db.command()
@json_option
@pass_context
def repair(context: Context, *, as_json: bool) -> int:
    """Save what can be read of a damaged database into a new one; exit 1 if something was lost.

    The damaged one is kept beside it. Look for a good backup first: it has everything.
    """
    config = context.config
    with shown_progress() as progress:
        done = salvage(
            config.database_path, busy_s=config.store.busy_seconds, now=_now(), progress=progress
        )
    whole = not done.lost and not done.log_bytes_lost
    if as_json:
        print_json(
            {"whole": whole, "tables": done.tables, "kept": done.kept}
            | {"log_bytes_lost": done.log_bytes_lost}
        )
        return 0 if whole else 1
    for each in done.tables:
        lost = f", up to {each.lost} lost" if each.lost else ""
        click.echo(f"{each.table}: {each.rows} rows saved{lost}")
    if done.log_bytes_lost:
        click.echo(f"the newest writes: {done.log_bytes_lost} bytes of the log lost")
    click.echo(f"the old database is {done.kept}")
    click.echo("Next: agentd db check", err=True)
    return 0 if whole else 1


@db.command("compact")
@json_option
@pass_context
def compact_(context: Context, *, as_json: bool) -> None:
    """Write the database anew without its free blocks. Daemons wait meanwhile, then go on."""
    config = context.config
    with shown_progress() as progress:
        done = compact(config.database_path, busy_s=config.store.busy_seconds, progress=progress)
    if as_json:
        print_json(done)
        return
    click.echo(f"{_megabytes(done.before_bytes)} → {_megabytes(done.after_bytes)}")


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"


def _now() -> datetime:
    return SystemClock().now()
