"""process: what became of commands that run in the background."""

import signal as signals
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from agentd.domain.errors import ToolError
from agentd.domain.run import Run
from agentd.processes.registry import Processes
from agentd.sandbox.terminal import plain_text
from agentd.store.processes import ProcessRecord
from agentd.toolkit.definition import Effect, tool

_MOST_BYTES = 10_000  # seed 002 says characters; there are never more of them than bytes
_NAMES = ("SIGTERM", "SIGINT", "SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGSTOP")
_SIGNALS = {name: signals.Signals[name] for name in (*_NAMES, "SIGCONT")}

Action = Literal["status", "poll", "input", "signal", "list"]


@dataclass(frozen=True, slots=True)
class Shown:
    """`next_offset`: of the next poll. `outside`: strangers may have written the text."""

    content: str
    running: bool | None = None
    exit_code: int | None = None
    next_offset: int | None = None
    outside: bool = False
    notice: str | None = None

    @property
    def outside_of(self) -> str | None:
        """Through what strangers may have written the text."""
        return "process" if self.outside else None


@tool(group="runtime", effect=Effect.EXTERNAL)
async def process(  # noqa: PLR0913 - two capabilities, five inputs
    processes: Processes,
    run: Run | None,
    action: Annotated[
        Action,
        Field(
            description="status: does it run, how did it end; poll: its output from `offset`; "
            "input: write to it; signal: send a signal; list: all of this session."
        ),
    ],
    process_id: Annotated[str | None, Field(description="Which process; not for `list`.")] = None,
    input: Annotated[  # noqa: A002 - its name in seed 002
        str | None, Field(description="For `input`: the text. Without it, its input is closed.")
    ] = None,
    signal: Annotated[
        str | None, Field(description="For `signal`: a name, such as SIGTERM or SIGINT.")
    ] = None,
    offset: Annotated[
        int | None,
        Field(ge=0, description="For `poll`: the byte to start at; without it the last 10,000."),
    ] = None,
) -> Shown:
    """See and steer the commands that `exec` has started in the background.

    They run until they end, no task of the session is left, or the daemon stops.
    """
    session_id = run.session_id if run else None
    if action == "list":
        found = await processes.list(session_id)
        return Shown("\n".join(f"{each.id} {_line(each)}" for each in found) or "(no processes)")
    if process_id is None:
        raise ToolError("invalid_arguments", f"process_id is missing: {action} needs it")
    record = await processes.get(process_id, session_id)
    match action:
        case "status":
            return _shown(record, _line(record))
        case "poll":
            return _poll(processes, record, offset)
        case "input":
            if input is None:
                await processes.hang_up(record.id)
                return _shown(record, "Its standard input is closed.")
            await processes.tell(record.id, input.encode(errors="replace"))
            return _shown(record, f"{len(input)} characters were sent.")
        case "signal":
            number = _signal(signal)
            processes.signal(record.id, number)
            return _shown(record, f"{number.name} was sent.")


def _poll(processes: Processes, record: ProcessRecord, offset: int | None) -> Shown:
    asked = -_MOST_BYTES if offset is None else offset
    part = processes.output(record.id, asked, _MOST_BYTES)
    data = part.data
    more = part.start + len(data) < part.end
    if more or record.ended_at is None:
        data = _whole_characters(data)
    after = part.start + len(data)
    lines = [plain_text(data.decode(errors="replace")).rstrip("\n")] if data else []
    missing = part.start - (offset or 0)
    if missing > 0 and offset is not None:
        lines.insert(0, f"[{missing} bytes before this are no longer kept]")
    call = f'process(action="poll", process_id="{record.id}", offset={after})'
    how = f"{part.end - after} bytes follow" if part.end > after else _line(record)
    notice = f"[{how}. {call} goes on]" if more or not record.ended_at else f"[{how}]"
    facts = record.ended_at is None, record.exit_code, after
    if processes.has_network:  # ours stands behind the mark, theirs inside
        return Shown("\n".join(lines), *facts, outside=True, notice=notice)
    return Shown("\n".join([*lines, notice]), *facts)


def _whole_characters(data: bytes) -> bytes:
    """Without the start of a character whose end is still to come."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data[:-back] if length > back else data
    return data


def _shown(record: ProcessRecord, text: str) -> Shown:
    return Shown(text, record.ended_at is None, record.exit_code)


def _line(record: ProcessRecord) -> str:
    command = record.command if len(record.command) <= 80 else f"{record.command[:79]}…"
    if record.ended_at is None:
        return f"running since {record.started_at:%Y-%m-%d %H:%M:%S} UTC: {command}"
    how = record.ended_why or f"exit code {record.exit_code}"
    if record.ended_why and record.exit_code is not None:
        how = f"{how}, exit code {record.exit_code}"
    return f"ended at {record.ended_at:%Y-%m-%d %H:%M:%S} UTC ({how}): {command}"


def _signal(name: str | None) -> signals.Signals:
    upper = (name or "").upper()
    found = _SIGNALS.get(upper) or _SIGNALS.get(f"SIG{upper}")
    if found is None:
        raise ToolError(
            "invalid_arguments",
            f"signal: {name!r} is none that can be sent",
            next_action_hint=f"Signals: {', '.join(_SIGNALS)}",
        )
    return found
