"""The part of the composition root that is about tools: which there are, what they may be given."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentd.agent.results import cleaned
from agentd.config import Config
from agentd.connectors.servers import McpManager
from agentd.daemon.health_files import HealthFiles
from agentd.daemon.presence import is_alive
from agentd.domain.clock import Clock, SystemClock
from agentd.domain.errors import AgentdError
from agentd.domain.health import HealthReader
from agentd.domain.ids import new_id
from agentd.domain.redactor import Redactor
from agentd.domain.run import CallKey, Run
from agentd.processes.registry import Processes, Settings
from agentd.sandbox.branches import Branches
from agentd.sandbox.commands import Commands, CommandSettings
from agentd.sandbox.configured import git_settings, host_commands
from agentd.sandbox.edits import Edits
from agentd.sandbox.egress import Egress
from agentd.sandbox.egress import Rules as EgressRules
from agentd.sandbox.git.git import Git
from agentd.sandbox.host_commands import HostCommands
from agentd.sandbox.http import Http
from agentd.sandbox.limits import Limits
from agentd.sandbox.network import granted_network
from agentd.sandbox.roots import Root
from agentd.sandbox.workspace import Workspace
from agentd.schedules.scheduling import Scheduling
from agentd.store.connection import Connection
from agentd.store.events import EventStore
from agentd.store.large_results import LargeResultStore
from agentd.store.processes import ProcessStore
from agentd.store.runs import RunStore
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from agentd.toolkit.call import RolledBack, call
from agentd.toolkit.definition import Effect, Tool
from agentd.toolkit.discover import load_registry
from agentd.toolkit.inject import CallContext, Injector, PerCall
from agentd.toolkit.progress import Progress
from agentd.toolkit.registry import ToolRegistry
from agentd.toolkit.result import ToolResult


@dataclass(frozen=True, slots=True)
class Runners:
    """What runs other programs, and lives as long as whoever uses the tools."""

    commands: Commands
    processes: Processes
    servers: McpManager


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of a home, what they may be given, and what of them could not be loaded."""

    registry: ToolRegistry
    injector: Injector
    problems: Sequence[AgentdError]
    runners: Runners


def make_injector(config: Config, store: Store, clock: Clock, runners: Runners) -> Injector:
    """Every capability that a tool can ask for. There is no other way to one."""
    commands = runners.commands
    workspace = Workspace(config.workspace_path, _further_roots(config), hidden=[config.home])
    egress = make_egress(config)
    http = Http(egress)
    on_host = host_commands(config)
    git = Git(config.workspace_path.resolve(), commands, egress, git_settings(config))
    branches = _branches(config, clock, commands, store.redactor)
    return Injector(
        {
            Config: lambda _: config,
            Clock: lambda _: clock,
            Run: lambda context: context.run,
            CallKey: _call_key,
            Progress: lambda context: context.progress,
            McpManager: lambda _: PerCall(runners.servers.open()),
            HealthReader: lambda _: HealthFiles(config.run_path, clock),
            Workspace: lambda _: workspace,
            Edits: lambda context: Edits(workspace, config.run_path / "edits", _call_key(context)),
            Commands: lambda _: commands,
            Egress: lambda _: egress,
            Http: lambda _: http,
            HostCommands: lambda _: on_host,
            Git: lambda _: git,
            Branches: lambda _: branches,
            Processes: lambda _: runners.processes,
            Store: lambda _: store,
            Connection: lambda context: PerCall(context.store.transaction()),
            TaskStore: lambda context: TaskStore(context.store, clock),
            RunStore: lambda context: RunStore(context.store, clock),
            LargeResultStore: lambda context: LargeResultStore(context.store),
            EventStore: lambda context: EventStore(context.store, clock),
            SessionStore: lambda context: SessionStore(context.store, clock),
            Scheduling: lambda context: Scheduling(context.store, clock, config.schedules),
        }
    )


def _call_key(context: CallContext) -> CallKey:
    """Ids of calls are the model's, and unique in a conversation at best."""
    if context.run is None or context.call_id is None:
        return CallKey(new_id())
    return CallKey(f"{context.run.task_id}/{context.call_id}")


def make_toolbox(config: Config, store: Store) -> Toolbox:
    """For whoever calls tools outside a run: the command line."""
    registry, problems = load_registry(config, config.tools_path)
    clock, commands, servers = SystemClock(), make_commands(config), McpManager.of(config)
    registry.attach(servers)
    runners = Runners(commands, _processes(config, store, clock, commands), servers)
    return Toolbox(registry, make_injector(config, store, clock, runners), problems, runners)


async def call_tool(
    toolbox: Toolbox, store: Store, tool: Tool, raw: object, progress: Progress | None = None
) -> ToolResult:
    """Call a tool for a person, outside any run. Never raises."""
    return cleaned(await _called(toolbox, store, tool, raw, progress), store.redactor)


async def _called(
    toolbox: Toolbox, store: Store, tool: Tool, raw: object, progress: Progress | None
) -> ToolResult:
    if tool.effect is not Effect.TRANSACTIONAL:
        return await call(tool, raw, toolbox.injector, CallContext(store, progress=progress))
    try:
        async with store.transaction() as conn:
            result = await call(tool, raw, toolbox.injector, CallContext(conn))
            if result.is_error:
                raise RolledBack(result)  # noqa: TRY301 - leaving the block is what rolls back
    except RolledBack as rolled_back:
        return rolled_back.result
    return result


def make_egress(config: Config) -> Egress:
    """Where tools and commands of this home may connect to."""
    return Egress(EgressRules(**config.egress.model_dump()))


def make_commands(config: Config) -> Commands:
    """What runs commands in the workspace of this home."""
    own = config.commands
    settings = CommandSettings(
        limits=Limits(
            processes=own.processes,
            memory_mb=own.memory_mb,
            cpu_s=own.cpu_seconds,
            file_mb=own.file_mb,
            open_files=own.open_files,
            tmp_mb=own.tmp_mb,
            disk_mb=own.disk_mb,
            disk_least_mb=own.disk_least_mb,
        ),
        confined=config.sandbox == "on",
        trusts=not _is_around_home(config),  # unconfined, they would see it
        environment={name: os.environ[name] for name in own.environment if name in os.environ},
        # What a command does in the network can not be taken back with its files.
        branches=config.branches_path if own.transactional and own.network == "none" else None,
        grant=None
        if own.network == "none"
        else partial(granted_network, make_egress(config), config.run_path),
        hidden=[config.home],
    )
    return Commands([Root(config.workspace_path.resolve()), *_further_roots(config)], settings)


def _further_roots(config: Config) -> list[Root]:
    return [Root(Path(each.path), each.writable) for each in config.workspace.roots]


def _is_around_home(config: Config) -> bool:
    """Whether the home lies in a folder that tools may reach."""
    roots = [config.workspace_path, *(Path(each.path) for each in config.workspace.roots)]
    return any(config.home.is_relative_to(each.resolve()) for each in roots)


def _branches(config: Config, clock: Clock, commands: Commands, redactor: Redactor) -> Branches:
    """What lets them work on a branch of its files."""
    keep_s = config.commands.keep_days * 86_400
    return Branches(config.branches_path, commands, clock, keep_s, redactor.redact)


def _processes(config: Config, store: Store, clock: Clock, commands: Commands) -> Processes:
    """What runs them in the background."""
    settings = Settings(
        folder=config.run_path / "processes",
        log_mb=config.commands.log_mb,
        keep_days=config.commands.keep_days,
        is_alive=partial(is_alive, config.run_path),
        redactor=store.redactor,
    )
    return Processes(commands, ProcessStore(store, clock), clock, settings)
