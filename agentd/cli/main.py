"""The entry point: commands are imported when they are used, errors end as one readable message."""

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import click

from agentd import __version__
from agentd.cli.context import Context
from agentd.cli.output import harmless
from agentd.domain.errors import AgentdError, ConfigError
from agentd.domain.redactor import Redactor

# name → where it is written. Nothing of it is imported before it is used.
_COMMANDS = {
    "init": "agentd.cli.home:init",
    "config": "agentd.cli.home:config",
    "run": "agentd.cli.run:run",
    "enqueue": "agentd.cli.enqueue:enqueue",
    "task": "agentd.cli.task:task",
    "session": "agentd.cli.session:session",
    "schedule": "agentd.cli.schedule:schedule",
    "cost": "agentd.cli.cost:cost",
    "daemon": "agentd.cli.daemon:daemon",
    "tools": "agentd.cli.tools:tools",
    "mcp": "agentd.cli.mcp:mcp",
    "db": "agentd.cli.db:db",
    "sql": "agentd.cli.sql:sql",
    "prune": "agentd.cli.prune:prune",
    "doctor": "agentd.cli.doctor:doctor",
    "health": "agentd.cli.health:health",
    "diagnostics": "agentd.cli.diagnostics:diagnostics",
    "sandbox": "agentd.cli.sandbox:sandbox",
    "completion": "agentd.cli.completion:completion",
}
_HELP = {
    "init": "Make a home: the folder of one installation.",
    "config": "Show each setting, its value and where it came from.",
    "run": "Run the daemon: claim tasks and work them.",
    "enqueue": "Put a task into the queue.",
    "task": "Look at tasks and change them.",
    "session": "Read conversations, and say something to them.",
    "schedule": "Let prompts run by the clock.",
    "cost": "See what tasks have cost, and what is left of the limits.",
    "daemon": "See who works on this home.",
    "tools": "See the tools, their schemas, and call one.",
    "mcp": "Use tools of MCP servers, and serve agentd's own.",
    "db": "Check, back up, restore, repair and compact the database.",
    "sql": "Ask the database with SQL; reading only, unless --write.",
    "prune": "Move old, finished sessions to the archive.",
    "doctor": "Check this installation and say what to mend.",
    "health": "Say whether a daemon lives and is well; for health checks.",
    "diagnostics": "Show what the watchdog of each daemon has seen.",
    "sandbox": "See how commands are confined, and attack that.",
    "completion": "Print the script that completes commands in your shell.",
}


class Root(click.Group):
    """Hand-written commands by name; every other group is made from the tools."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from agentd.cli.generated import group_names  # noqa: PLC0415 - only for listings

        return [*_COMMANDS, *(name for name in group_names(ctx) if name not in _COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module, _, attribute = _COMMANDS[cmd_name].partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        from agentd.cli.generated import has_group  # noqa: PLC0415 - loads every tool
        from agentd.cli.groups import NounGroup  # noqa: PLC0415 - same

        if not has_group(ctx, cmd_name):
            return None
        return NounGroup(cmd_name, help=f"The tools of group {cmd_name}.")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from agentd.cli.generated import group_names  # noqa: PLC0415 - only for listings

        with formatter.section("Commands"):
            formatter.write_dl(list(_HELP.items()))
        generated = [name for name in group_names(ctx) if name not in _COMMANDS]
        if generated:
            with formatter.section("Tools, by group"):
                formatter.write_dl([(name, f"The tools of group {name}.") for name in generated])


@click.command(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="The home; else AGENTD_HOME, else .agentd here or above, else the user's data folder.",
)
@click.version_option(__version__, prog_name="agentd")
@click.pass_context
def root(ctx: click.Context, home: Path | None) -> None:
    """The agent daemon: put tasks into a durable queue, workers carry them out."""
    ctx.ensure_object(Context).explicit_home = home


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and leave the process. 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C."""
    os.umask(0o077)
    code = invoke(arguments)
    sys.stderr.flush()
    # Everything is closed by now. Taking the interpreter down properly costs a fifth of the time of
    # `agentd enqueue`, and would wait for threads of tools that were cancelled.
    os._exit(code)


def invoke(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    context = Context()
    try:
        result: Any = root.main(arguments, prog_name="agentd", standalone_mode=False, obj=context)
        sys.stdout.flush()
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain while it leaves.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - also faults of ours: a traceback may hold a secret
        return _tell(error, context.redactor())
    return result if isinstance(result, int) else 0


def _tell(error: Exception, redactor: Redactor) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, OSError):
        error = _in_words(error)
    if not isinstance(error, AgentdError):
        said = "".join(traceback.format_exception(error))
        click.echo(redactor.redact(said), err=True, nl=False)
        return 1
    show_error(error, redactor)
    return 2 if isinstance(error, ConfigError) else 1


def _in_words(error: OSError) -> AgentdError:
    """Of the machine: mostly the output that can not be written."""
    what = error.filename or "the output can not be written"
    return AgentdError(f"{what}: {error.strerror or error}")


def show_error(error: AgentdError, redactor: Redactor) -> None:
    message = harmless(redactor.redact(error.message))
    click.echo(f"{click.style('Error:', fg='red', bold=True)} {message}", err=True)
    if error.hint:
        click.echo(harmless(redactor.redact(error.hint)), err=True)
