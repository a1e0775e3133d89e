"""The part of the composition root that is about commands."""

import os
from functools import partial

from agentd.config import Config
from agentd.daemon.presence import is_alive
from agentd.domain.clock import Clock
from agentd.processes.registry import Processes, Settings
from agentd.sandbox.branches import Branches
from agentd.sandbox.commands import Commands, CommandSettings
from agentd.sandbox.limits import Limits
from agentd.sandbox.roots import Root
from agentd.store.processes import ProcessStore
from agentd.store.store import Store


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
        environment={name: os.environ[name] for name in own.environment if name in os.environ},
        # What a command does in the network can not be taken back with its files.
        branches=config.branches_path if own.transactional and own.network == "none" else None,
    )
    return Commands([Root(config.workspace_path.resolve())], settings)


def make_branches(config: Config, clock: Clock, commands: Commands) -> Branches:
    """What lets them work on a branch of its files."""
    keep_s = config.commands.keep_days * 86_400
    return Branches(config.branches_path, commands, clock, keep_s)


def make_processes(config: Config, store: Store, clock: Clock, commands: Commands) -> Processes:
    """What runs them in the background."""
    settings = Settings(
        folder=config.run_path / "processes",
        log_mb=config.commands.log_mb,
        keep_days=config.commands.keep_days,
        is_alive=partial(is_alive, config.run_path),
    )
    return Processes(commands, ProcessStore(store, clock), clock, settings)
