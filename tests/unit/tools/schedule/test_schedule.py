"""schedule and cron: one implementation, both names of each input."""

import re

import pytest

from agentd.config import Config
from agentd.config_sections import SchedulesConfig
from agentd.domain.errors import NotFound, Refused, ToolError
from agentd.schedules.scheduling import Scheduling
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from agentd.toolkit.adapters.anthropic import to_anthropic
from agentd.toolkit.call import validate
from agentd.toolkit.discover import load_registry
from agentd.toolkit.result import ToolResult
from agentd.tools.schedule.schedule import schedule
from tests.clock import HandClock


@pytest.fixture
def scheduling(store: Store, clock: HandClock) -> Scheduling:
    return Scheduling(store, clock, SchedulesConfig.model_validate({"most": 3}))


@pytest.mark.requirement("S2-26", "S3-11")
async def test_add_list_and_remove(scheduling: Scheduling) -> None:
    added = await schedule(scheduling, "add", cron="0 9 * * *", message="Check your calendar")
    (view,) = added.schedules
    assert (view.schedule, view.prompt, view.enabled) == ("0 9 * * *", "Check your calendar", True)
    assert view.next_due is not None
    assert [each.id for each in (await schedule(scheduling, "list")).schedules] == [view.id]
    await schedule(scheduling, "remove", id=view.id[-8:])
    assert not (await schedule(scheduling, "list")).schedules


async def test_switch_and_trigger(scheduling: Scheduling, tasks: TaskStore) -> None:
    (view,) = (await schedule(scheduling, "add", cron="@daily", message="x")).schedules
    (off,) = (await schedule(scheduling, "disable", id=view.id)).schedules
    assert (off.enabled, off.next_due) == (False, None)
    (on,) = (await schedule(scheduling, "enable", id=view.id)).schedules
    assert on.next_due == view.next_due
    fired = await schedule(scheduling, "trigger", id=view.id)
    assert [task.id for task in await tasks.list()] == [fired.task_id]


@pytest.mark.requirement("S2-26")
@pytest.mark.parametrize(
    ("name", "shown"), [("schedule", {"cron", "message"}), ("cron", {"schedule", "prompt"})]
)
@pytest.mark.parametrize(
    "raw",
    [
        {"action": "add", "cron": "@daily", "message": "hi"},
        {"action": "add", "schedule": "@daily", "prompt": "hi"},
    ],
)
def test_both_names_of_an_input_are_understood_and_each_face_shows_its_own(
    name: str, shown: set[str], raw: dict[str, str], config: Config
) -> None:
    registry, problems = load_registry(config, config.tools_path)
    assert not problems
    tool = registry.find(name)
    assert not isinstance(tool, ToolResult)
    checked = validate(tool, raw)
    assert not isinstance(checked, ToolResult), checked
    assert (checked.cron, checked.message) == ("@daily", "hi")  # type: ignore[union-attr]
    (exported,) = to_anthropic([tool])
    assert shown <= exported["input_schema"]["properties"].keys()


@pytest.mark.requirement("S3-12")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '/schedule add "0 9 * * *" Check your calendar',
            {"action": "add", "cron": "0 9 * * *", "message": "Check your calendar"},
        ),
        ("/schedule list", {"action": "list"}),
        ("/schedule remove a1b2c3d4", {"action": "remove", "id": "a1b2c3d4"}),
    ],
)
def test_the_slash_commands_of_the_document(
    line: str, expected: dict[str, str], config: Config
) -> None:
    registry, _ = load_registry(config, config.tools_path)
    tool = registry.find("schedule")
    assert not isinstance(tool, ToolResult)
    assert tool.slash is not None
    match = re.fullmatch(tool.slash, line)
    assert match is not None
    given = {name: value for name, value in match.groupdict().items() if value is not None}
    assert given == expected
    assert not isinstance(validate(tool, given), ToolResult)


@pytest.mark.parametrize("action", ["add", "remove", "enable", "disable", "trigger"])
async def test_what_an_action_needs_is_said(action: str, scheduling: Scheduling) -> None:
    with pytest.raises(ToolError, match=f"{action} needs"):
        await schedule(scheduling, action)  # pyright: ignore[reportArgumentType]


async def test_what_can_not_be_is_refused(scheduling: Scheduling) -> None:
    with pytest.raises(Refused, match="min_interval"):
        await schedule(scheduling, "add", cron="every 5s", message="x")
    with pytest.raises(Refused, match="never due"):
        await schedule(scheduling, "add", cron="2020-01-01T00:00", message="x")
    with pytest.raises(NotFound):
        await schedule(scheduling, "remove", id="nothing")
    for _ in range(3):
        await schedule(scheduling, "add", cron="@daily", message="x")
    with pytest.raises(Refused, match="3 schedules already"):
        await schedule(scheduling, "add", cron="@daily", message="x")
