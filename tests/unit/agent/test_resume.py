"""A call that a crash cut off keeps the promise under which it began."""

from pathlib import Path
from typing import Any

import anyio

from tests.desk import desk
from tests.messages_turns import DONE, call

_TOOL = '''
import anyio
from agentd.config import Config
from agentd.toolkit.definition import tool

@tool(group="probe", effect="{effect}")
async def send(config: Config) -> str:
    """Send, and wait the first time for ever."""
    with open(config.home / "sent", "a") as file:
        file.write("x")
    if not (config.home / "again").exists():
        await anyio.sleep_forever()
    return "sent"
'''


async def test_what_began_as_external_is_not_repeated_when_it_says_read_later(
    tmp_path: Path,
) -> None:
    """A server may say another thing of its tools after every start."""
    patient: dict[str, Any] = {"agent__max_attempts": 9, "agent__attempt_base_seconds": 0}
    async with desk(tmp_path, call("send"), DONE, **patient) as here:
        here.config.tools_path.mkdir(exist_ok=True)
        tool = here.config.tools_path / "probe.py"
        tool.write_text(_TOOL.format(effect="external"))
        task = await here.enqueue()
        sent = here.config.home / "sent"
        async with here.daemon():
            with anyio.fail_after(10):
                while not sent.exists():  # noqa: ASYNC110 - a file of a tool
                    await anyio.sleep(0.005)
        tool.write_text(_TOOL.format(effect="read"))
        (here.config.home / "again").touch()
        await here.drain()
        result, *_ = await here.results(task)
    assert result["error_type"] == "outcome_unknown"
    assert sent.read_text() == "x"
