"""Commands in a workspace of a test, and what a machine without the means is told."""

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.sandbox.commands import Command, Commands, CommandSettings
from agentd.sandbox.features import Features
from agentd.sandbox.finish import Finished
from agentd.sandbox.roots import Root


def make_commands(path: Path, *, branches: bool = False, **settings: Any) -> Commands:
    """The workspace is `path`/workspace; branches lie beside it."""
    workspace = path / "workspace"
    workspace.mkdir(exist_ok=True)
    if branches:
        settings["branches"] = path / "branches"
    return Commands([Root(workspace)], CommandSettings(**settings))


def shell(text: str, *, timeout_s: float = 10, **facts: Any) -> Command:
    return Command(["bash", "-c", text], timeout_s, **facts)


async def run(commands: Commands, text: str, **facts: Any) -> Finished:
    return await commands.run(shell(text, **facts))


@functools.cache
def here(path: Path) -> Features:
    """What this machine can enforce."""

    async def ask() -> Features:
        return await make_commands(path, branches=True).features()

    return asyncio.run(ask())


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a fact."""
    with anyio.fail_after(10):
        while not is_so():  # noqa: ASYNC110 - the world tells nobody
            await anyio.sleep(0.01)


def _skip(wanted: Callable[[Features], bool], why: str) -> pytest.MarkDecorator:
    import tempfile  # noqa: PLC0415 - only to ask

    with tempfile.TemporaryDirectory() as folder:
        found = here(Path(folder))
    return pytest.mark.skipif(not wanted(found), reason=f"{why}: {'; '.join(found.lacking)}")


needs_sandbox = _skip(lambda found: found.confines, "this machine can confine nothing")
needs_branches = _skip(lambda found: found.branches, "this machine has no overlays for users")
