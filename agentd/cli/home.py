"""`agentd init` and `agentd config`."""

import click

from agentd.cli.context import Context, Opened, home_option, json_option, pass_context
from agentd.cli.output import print_json, print_table
from agentd.config_text import explain
from agentd.home import make_home


@click.command()
@home_option
@json_option
@pass_context
def init(context: Context, *, as_json: bool) -> None:
    """Make a home: the folder of one installation. What exists already stays as it is."""
    made = [str(path) for path in make_home(context.home)]

    async def open_database(opened: Opened) -> None:
        await opened.tasks.list(limit=1)

    if not context.config.database_path.exists():
        made.append(str(context.config.database_path))
    context.run(open_database)
    if as_json:
        print_json({"home": context.home, "made": made})
        return
    for path in made:
        click.echo(f"made {path}")
    click.echo(f"The home is {context.home}" + ("" if made else " (it was complete)"))
    click.echo('Next: agentd enqueue "…" and agentd run', err=True)


@click.command()
@home_option
@json_option
@click.argument("key", required=False)
@pass_context
def config(context: Context, *, key: str | None, as_json: bool) -> None:
    """Show each setting, its value and where it came from; with KEY only those that start so."""
    settings = [each for each in explain(context.config) if each.key.startswith(key or "")]
    if not settings:
        raise click.UsageError(f"There is no setting {key}.")
    if as_json:
        print_json(settings)
        return
    print_table(
        ("setting", "value", "from"),
        [
            (
                each.key,
                "" if each.value is None else each.value,
                each.variable if each.source == "environment" else each.source,
            )
            for each in settings
        ],
        empty="No settings.",
    )
    click.echo(f"file: {context.config.home / 'agentd.toml'}", err=True)
