"""schedule, cron: what runs by the clock, as the model handles it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from agentd.domain.errors import ToolError
from agentd.domain.ids import SessionId
from agentd.domain.run import Run
from agentd.domain.schedule import Missed, NewSchedule, Overlap, Schedule
from agentd.schedules.scheduling import Scheduling
from agentd.toolkit.definition import Alias, Effect, tool

Action = Literal["add", "list", "remove", "enable", "disable", "trigger"]
_WHAT = "What to do."
_WHEN = "For add: a cron expression (0 9 * * 1-5), every 90m, or a moment in ISO 8601."
_PROMPT = "For add: the prompt that each run gets."
# Both names are understood everywhere; each face shows its own first.
_CRON_FIELDS = {
    "action": Annotated[Literal["add", "list", "remove"], Field(description=_WHAT)],
    "cron": Annotated[
        str | None,
        Field(validation_alias=AliasChoices("schedule", "cron"), description=_WHEN),
    ],
    "message": Annotated[
        str | None,
        Field(validation_alias=AliasChoices("prompt", "message"), description=_PROMPT),
    ],
}


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """`next_due` None: it does not fire by itself."""

    id: str
    schedule: str
    timezone: str
    prompt: str
    description: str | None
    session: str | None
    enabled: bool
    next_due: datetime | None

    @classmethod
    def of(cls, schedule: Schedule) -> "ScheduleView":
        return cls(
            id=schedule.id,
            schedule=schedule.expression,
            timezone=schedule.timezone,
            prompt=schedule.prompt,
            description=schedule.title,
            session=schedule.session_id,
            enabled=schedule.enabled,
            next_due=schedule.next_due,
        )


@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules that the action was about; for list, all."""

    message: str
    schedules: Sequence[ScheduleView]
    task_id: str | None = None


@tool(
    group="schedule",
    name="schedule",
    effect=Effect.TRANSACTIONAL,
    slash=r'/schedule (?P<action>\w+)(?: "(?P<cron>[^"]+)" (?P<message>.+)| (?P<id>[\w-]+))?',
    aliases=[
        Alias(
            "cron",
            hidden=("description", "timezone", "session", "missed", "overlap"),
            description="Let a prompt run by the clock: list, add or remove schedules.",
            fields=_CRON_FIELDS,
        )
    ],
)
async def schedule(  # noqa: PLR0913 - one input for each thing a schedule can be given
    scheduling: Scheduling,
    action: Annotated[Action, Field(description=_WHAT)],
    cron: Annotated[
        str | None,
        Field(validation_alias=AliasChoices("cron", "schedule"), description=_WHEN),
    ] = None,
    message: Annotated[
        str | None,
        Field(validation_alias=AliasChoices("message", "prompt"), description=_PROMPT),
    ] = None,
    id: Annotated[  # noqa: A002 - the name that the model knows
        str | None, Field(description="Of the schedule: the whole, or its end.")
    ] = None,
    description: Annotated[str | None, Field(description="A few words for lists.")] = None,
    timezone: Annotated[str | None, Field(description="An IANA name, e.g. Europe/Berlin.")] = None,
    session: Annotated[
        str | None, Field(description="The session to speak in; none: a new one each time.")
    ] = None,
    missed: Annotated[
        Missed, Field(description="What to do about occurrences that nobody was there for.")
    ] = Missed.ONCE,
    overlap: Annotated[
        Overlap, Field(description="What to do while the last run is unfinished.")
    ] = Overlap.QUEUE,
    run: Run | None = None,
) -> Schedules:
    """Let a prompt run by the clock: add a schedule, list, remove, switch or trigger them."""
    if action == "list":
        found = await scheduling.list()
        return Schedules(f"{len(found)} schedules.", [ScheduleView.of(each) for each in found])
    if action == "add":
        new = NewSchedule(
            expression=_given(cron, "cron", action),
            prompt=_given(message, "message", action),
            timezone=timezone or scheduling.timezone,
            title=description,
            session_id=SessionId(session) if session else None,
            missed=missed,
            overlap=overlap,
            created_by=f"task:{run.task_id}" if run else "cli",
        )
        return _about(await scheduling.add(new), "Added")
    return await _named(scheduling, action, _given(id, "id", action))


async def _named(scheduling: Scheduling, action: Action, text: str) -> Schedules:
    match action:
        case "remove":
            return _about(await scheduling.remove(text), "Removed")
        case "enable":
            return _about(await scheduling.enable(text), "Enabled")
        case "disable":
            return _about(await scheduling.disable(text), "Disabled")
        case _:
            known = await scheduling.find(text)
            fired = await scheduling.trigger(text)
            what = f"task {fired.task_id}" if fired.task_id else str(fired.occurrence.reason)
            said = f"Triggered {known.id}: {what}."
            return Schedules(said, [ScheduleView.of(known)], fired.task_id)


def _about(found: Schedule, what: str) -> Schedules:
    due = f"; next at {found.next_due.isoformat()}" if found.next_due else ""
    return Schedules(f"{what} {found.id} ({found.expression}){due}.", [ScheduleView.of(found)])


def _given(value: str | None, name: str, action: str) -> str:
    if not value or not value.strip():
        raise ToolError("invalid_arguments", f"{action} needs {name}")
    return value
