"""A tool can do only what its signature asks for."""

from pathlib import Path
from typing import Annotated

import anyio
import pytest
from pydantic import Field

from agentd.config import Config, load_config
from agentd.domain.capability import Capability
from agentd.domain.clock import Clock
from agentd.domain.errors import StoreError
from agentd.home import make_home
from agentd.sandbox.workspace import Workspace
from agentd.store.connection import Connection
from agentd.store.store import Store
from agentd.toolkit.call import call
from agentd.toolkit.definition import Tool, tool, tool_of
from agentd.toolkit.inject import CallContext, Injector, PerCall
from tests.clock import HandClock

Name = Annotated[str, Field(description="A name.")]
_INSERT = "INSERT INTO sessions (id, created_at) VALUES ($id, now())"


def made(function: object) -> Tool:
    found = tool_of(function)
    assert found is not None
    return found


class Mailbox(Capability):
    """A capability of a test."""


kept: list[Connection] = []


@tool(group="x", effect="idempotent")
async def add_session(conn: Connection, name: Name) -> str:
    """Add."""
    kept.append(conn)
    await conn.execute(_INSERT, id=name)
    return name


@tool(group="x")
async def needs_nothing(name: Name) -> str:
    """Nothing."""
    return name


@tool(group="x")
async def needs_mail(mailbox: Mailbox, name: Name) -> str:
    """Mail."""
    return f"{mailbox}{name}"


@tool(group="x")
async def may_have_mail(name: Name, mailbox: Mailbox | None = None) -> str:
    """Mail."""
    return f"{name} {mailbox}"


@pytest.mark.requirement("S0-15")
async def test_a_connection_is_open_for_the_call_and_closed_right_after(
    injector: Injector, context: CallContext, store: Store
) -> None:
    kept.clear()
    assert (await call(made(add_session), {"name": "one"}, injector, context)).ok
    async with store.transaction() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM sessions") == 1
    with pytest.raises(StoreError, match="closed"):
        await kept[0].fetch("SELECT 1")


@pytest.mark.requirement("S0-16", "S0-22")
async def test_who_waits_takes_the_store_and_opens_short_transactions_itself(
    injector: Injector, context: CallContext
) -> None:
    @tool(group="x")
    async def refresh(store: Store) -> int:
        """Fetch for long, write briefly, twice."""
        for name in ("a", "b"):
            await anyio.lowlevel.checkpoint()
            async with store.transaction() as conn:
                await conn.execute(_INSERT, id=name)
        async with store.transaction() as conn:
            return int(await conn.fetch_value("SELECT count(*) FROM sessions"))

    assert (await call(made(refresh), {}, injector, context)).data == 2


@pytest.mark.requirement("S0-22")
async def test_a_tool_that_hangs_on_its_connection_is_rolled_back_and_told_to_take_the_store(
    tmp_path: Path,
) -> None:
    @tool(group="x")
    async def hang(conn: Connection) -> str:
        """Hang."""
        await conn.execute(_INSERT, id="never")
        await anyio.sleep_forever()
        return ""

    async with Store(tmp_path / "a.duckdb") as store, store.transaction() as conn:
        await conn.fetch("SELECT 1")  # which makes the tables
    async with Store(tmp_path / "a.duckdb", busy_s=0.05, transaction_s=0.05) as store:
        injector = Injector({Connection: lambda context: PerCall(context.store.transaction())})
        result = await call(made(hang), {}, injector, CallContext(store))
        assert result.is_error
        assert "Store" in (result.error or "")
        async with store.transaction() as conn:
            assert await conn.fetch_value("SELECT count(*) FROM sessions") == 0


@pytest.mark.requirement("S0-20", "S1-10", "S1-03")
async def test_nothing_that_is_not_asked_for_is_even_made(store: Store) -> None:
    def explode(_: CallContext) -> object:
        raise AssertionError("nobody asked for it")

    injector = Injector({Store: explode, Clock: explode, Connection: explode})
    result = await call(made(needs_nothing), {"name": "x"}, injector, CallContext(store))
    assert result.content == "x"


@pytest.mark.requirement("S0-19", "S0-20")
async def test_a_capability_that_is_not_there_is_none_or_an_error(
    injector: Injector, context: CallContext
) -> None:
    missing = await call(made(needs_mail), {"name": "x"}, injector, context)
    assert missing.error_type == "unavailable"
    assert "Mailbox" in (missing.error or "")
    assert (await call(made(may_have_mail), {"name": "x"}, injector, context)).content == "x None"


@pytest.mark.requirement("S0-20")
@pytest.mark.parametrize("stolen", ["conn", "mailbox", "store"])
async def test_the_model_can_not_pass_a_capability_in(
    stolen: str, injector: Injector, context: CallContext
) -> None:
    for each in (add_session, needs_mail):
        result = await call(made(each), {"name": "x", stolen: "mine"}, injector, context)
        assert result.error_type == "invalid_arguments"


@pytest.mark.requirement("S0-17", "S0-18", "S3-07")
async def test_the_configuration_and_the_folder_of_the_work_are_capabilities(
    tmp_path: Path, store: Store, clock: HandClock
) -> None:
    @tool(group="x")
    def where(config: Config, workspace: Workspace, clock: Clock) -> str:
        """Where."""
        assert clock.now()
        assert workspace.list(".") == []
        return f"{config.home} {config.agent.max_tokens} {config.workspace_path.is_absolute()}"

    make_home(tmp_path / "home")
    config = load_config(tmp_path / "home")
    injector = Injector(
        {
            Config: lambda _: config,
            Workspace: lambda _: Workspace(config.workspace_path),
            Clock: lambda _: clock,
        }
    )
    result = await call(made(where), {}, injector, CallContext(store))
    assert result.content == f"{tmp_path / 'home'} 8192 True"
