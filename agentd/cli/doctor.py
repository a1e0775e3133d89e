"""`agentd doctor`: what works here, and what to do about the rest."""

import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import anyio
import click

from agentd.app_tools import make_commands
from agentd.cli.context import Context, Opened, home_option, json_option, pass_context
from agentd.cli.output import print_json
from agentd.config import Config
from agentd.daemon.presence import is_alive
from agentd.domain.errors import AgentdError
from agentd.known_secrets import unreadable_files
from agentd.models.prices import price_of, prices_as_of
from agentd.models.scripted import read_script
from agentd.models.select import OPENAI_HINT, OPENAI_MISSING
from agentd.sandbox.workspace import Workspace
from agentd.toolkit.discover import load_registry


@dataclass(frozen=True, slots=True)
class Finding:
    """`ok` None: it works, but somebody should know."""

    check: str
    ok: bool | None
    text: str
    hint: str | None = None


Check = Callable[[Context], Finding]
_NAMES_MOST = 8


@click.command()
@home_option
@json_option
@pass_context
def doctor(context: Context, *, as_json: bool) -> int:
    """Check this installation and say what to mend; exit 1 when something is broken."""
    findings = list(_findings(context))
    if as_json:
        print_json(findings)
    else:
        for each in findings:
            mark = {True: ("✓", "green"), False: ("✗", "red"), None: ("!", "yellow")}[each.ok]
            click.echo(f"{click.style(mark[0], fg=mark[1])} {each.check}: {each.text}")
            if each.hint and not each.ok:
                click.echo(f"  {each.hint}")
    return 1 if any(each.ok is False for each in findings) else 0


def _findings(context: Context) -> Iterator[Finding]:
    for name, check in _CHECKS.items():
        try:
            yield check(context)
        except AgentdError as error:
            yield Finding(name, False, error.message, error.hint)
            if name in ("home", "configuration"):
                return  # everything else needs them


def _home(context: Context) -> Finding:
    home = context.config.home
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        hint = f"chmod 700 {home}"
        return Finding("home", False, f"{home} can be read by other users", hint)
    return Finding("home", True, str(home))


def _configuration(context: Context) -> Finding:
    count = len(context.config.sources)
    return Finding("configuration", True, f"{count} settings differ from the defaults")


def _database(context: Context) -> Finding:
    async def work(opened: Opened) -> int:
        return len(await opened.tasks.list(limit=1000))

    count = context.run(work)
    size = context.config.database_path.stat().st_size
    return Finding("database", True, f"opens; {count} tasks, {size / 1e6:.1f} MB")


def _disk(context: Context) -> Finding:
    free = shutil.disk_usage(context.config.home).free
    least = context.config.watchdog.disk_least_mb * 1e6
    text = f"{free / 1e9:.1f} GB free"
    return Finding("disk", free > least, text, "Make room: a full disk stops all work.")


def _workspace(context: Context) -> Finding:
    path = context.config.workspace_path
    count = len(Workspace(path).list("."))
    roots = context.config.workspace.roots
    missing = [each.path for each in roots if not Path(each.path).is_dir()]
    if missing:
        text = f"there is no folder {', '.join(missing)}"
        return Finding("workspace", False, text, "Make it, or take it out of workspace.roots.")
    further = f", {len(roots)} further roots" if roots else ""
    return Finding("workspace", True, f"{path}, {count} entries{further}")


def _sandbox(context: Context) -> Finding:
    features = anyio.run(make_commands(context.config).features)
    if context.config.sandbox == "off":
        return Finding("sandbox", None, "off: commands run with all rights of the daemon")
    if not features.confines:
        text = f"commands are refused: {'; '.join(features.lacking)}"
        return Finding("sandbox", None, text, " ".join(features.remedies))
    lacking = [
        *([] if features.filters else ["no filter of system calls for this processor"]),
        *([] if features.branches else ["no branches: a crash may leave a command half done"]),
    ]
    return Finding("sandbox", None if lacking else True, "; ".join(["confines", *lacking]))


def _model(context: Context) -> Finding:
    return _of_model("model", context.config, context.config.agent.model)


def _fallback(context: Context) -> Finding:
    config: Config = context.config
    first, second = config.agent.model, config.models.fallback
    if second is None:
        return Finding("fallback", True, "none: an outage makes tasks wait, then fail")
    if second != first and second.partition(":")[0] == first.partition(":")[0] != "scripted":
        text = f"{second} and {first} have the same provider, and rest together"
        return Finding("fallback", None, text, "Name a model of another provider.")
    return _of_model("fallback", config, second)


def _of_model(check: str, config: Config, spec: str) -> Finding:
    provider, _, name = spec.partition(":")
    if provider == "scripted":
        read_script(name)
        return Finding(check, None, f"{spec} plays a written file", "It is no language model.")
    if provider == "openai" and find_spec("openai") is None:
        return Finding(check, False, OPENAI_MISSING, OPENAI_HINT)
    section = config.models.openai if provider == "openai" else config.models.anthropic
    if section.api_key is not None:
        return Finding(check, True, f"{spec}, with a key (whether it is valid was not tried)")
    if provider == "openai" and section.base_url:
        return Finding(check, True, f"{spec} at {section.base_url}, without a key (not tried)")
    variable = f"{provider.upper()}_API_KEY"
    hint = f"Set {variable} for the daemon, or try scripts/demo, which needs none."
    return Finding(check, False, f"there is no key for {spec}", hint)


def _prices(context: Context) -> Finding:
    config: Config = context.config
    specs = dict.fromkeys(filter(None, (config.agent.model, config.models.fallback)))
    own = config.models.own_prices()
    unpriced = [spec for spec in specs if price_of(spec, own) is None]
    if unpriced:
        hint = (
            f'Set models.prices."{unpriced[0]}"; until then its tokens are counted, not its cost.'
        )
        return Finding("prices", None, f"none is known for {', '.join(unpriced)}", hint)
    return Finding("prices", True, f"known; built-in ones as of {prices_as_of()}")


def _tools(context: Context) -> Finding:
    registry, problems = load_registry(context.config, context.config.tools_path)
    if problems:
        return Finding(
            "tools", False, "; ".join(each.message for each in problems), problems[0].hint
        )
    return Finding("tools", True, f"{len(registry.definitions())} tools")


def _secrets(context: Context) -> Finding:
    names = context.redactor().names
    if unreadable := unreadable_files(context.config):
        files = ", ".join(str(path) for path in unreadable)
        hint = "Mend secrets.files: nothing of a file that can not be read is hidden."
        return Finding("secrets", False, f"can not be read: {files}", hint)
    more = f" and {len(names) - _NAMES_MOST} more" if len(names) > _NAMES_MOST else ""
    known = f"hidden wherever they show up: {', '.join(names[:_NAMES_MOST])}{more}"
    return Finding("secrets", True, known if names else "none are known")


def _daemons(context: Context) -> Finding:
    run_path: Path = context.config.run_path

    async def work(opened: Opened) -> int:
        found = await opened.daemons.list(include_stopped=False)
        return sum(is_alive(run_path, each.id) for each in found)

    alive = context.run(work)
    if not alive:
        return Finding("daemon", None, "none works on this home", "Start one: agentd run")
    return Finding("daemon", True, f"{alive} alive")


_CHECKS: dict[str, Check] = {
    "home": _home,
    "configuration": _configuration,
    "disk": _disk,
    "database": _database,
    "workspace": _workspace,
    "sandbox": _sandbox,
    "model": _model,
    "fallback": _fallback,
    "prices": _prices,
    "tools": _tools,
    "secrets": _secrets,
    "daemon": _daemons,
}
