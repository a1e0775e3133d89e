"""show_cost."""

from pathlib import Path

import pytest

from agentd.domain.clock import SystemClock
from agentd.domain.errors import ToolError
from agentd.tools.ops.show_cost import show_cost
from tests.desk import desk
from tests.messages_turns import DONE


async def test_costs_are_added_up(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE) as office:
        task = await office.work()
        clock = SystemClock()
        (by_model,) = await show_cost(office.store, clock, office.config)
        (by_task,) = await show_cost(office.store, clock, office.config, "task", since="1h")
        assert (by_model.calls, by_task.name) == (1, task.id)
        assert by_task.cost_microusd == by_model.cost_microusd
        with pytest.raises(ToolError, match="since"):
            await show_cost(office.store, clock, office.config, since="yesterday-ish")
