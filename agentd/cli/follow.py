"""A task's journal as it grows, until the task has ended."""

import json
from typing import Any

import click

from agentd.cli.context import Opened
from agentd.cli.output import coloured, for_people, harmless, one_line, plain
from agentd.daemon.wake import Wake
from agentd.domain.event import Event, EventKind, Json
from agentd.domain.ids import TaskId, new_id
from agentd.domain.outside import unmarked
from agentd.domain.task import FINISHED, Task, TaskState

_LOOK_EVERY_S = 0.2  # the journal itself pokes nobody


async def follow(opened: Opened, task_id: TaskId, *, as_json: bool) -> Task:
    """Print what happens (JSON: a line for each event, the task last) and return the ended task."""
    task = await opened.tasks.get(task_id)
    seen, state = 0, None
    await _warn_without_daemon(opened, task)
    async with Wake(opened.config.run_path, f"watch-{new_id()}") as wake:
        while True:
            events = await opened.events.of_session(task.session_id, after=seen)
            for event in events:
                if event.task_id == task_id:
                    _print_event(event, as_json=as_json)
            seen = events[-1].seq if events else seen
            if task.state is not state and not as_json:
                _print_state(task)
            state = task.state
            if state in FINISHED:
                break
            await wake.wait(_LOOK_EVERY_S)
            task = await opened.tasks.get(task_id)
    if as_json:
        click.echo(json.dumps({"task": plain(task)}, ensure_ascii=False))
    return task


async def _warn_without_daemon(opened: Opened, task: Task) -> None:
    if task.state in FINISHED or await opened.daemons.list(include_stopped=False):
        return
    click.echo("No daemon works on this home now; start one: agentd run", err=True)


def _print_state(task: Task) -> None:
    why = task.waiting_reason if task.state is TaskState.WAITING else task.error
    if task.state is TaskState.COMPLETED:
        why = None
    line = f"{task.id} {coloured(task.state)}" + (f": {harmless(why)}" if why else "")
    click.echo(line)
    if task.state in FINISHED and task.output:
        click.echo(for_people(task.output))


def _print_event(event: Event, *, as_json: bool) -> None:
    if as_json:
        click.echo(for_people(json.dumps(plain(event), ensure_ascii=False)))
        return
    for line in event_lines(event):
        click.echo(line)


def event_lines(event: Event, *, most: int = 160) -> list[str]:
    """One event for people."""
    body = event.body
    match event.kind:
        case EventKind.USER:
            who = "task" if body["source"] == "task" else body["source"]
            return [click.style(f"  {who}: {one_line(body['text'], most)}", dim=True)]
        case EventKind.ASSISTANT:
            return [_block_line(block, most) for block in body["content"] if _is_shown(block)]
        case EventKind.TOOL_RESULT:
            text = _result_text(body)
            mark = click.style("✗", fg="red") if body["is_error"] else click.style("✓", fg="green")
            return [f"  {mark} {one_line(body['tool'])}: {one_line(text, most)}"]
        case EventKind.NOTE:
            facts = {name: value for name, value in body.items() if name != "note"}
            line = f"  note: {body['note']} {one_line(_arguments(facts), most)}"
            return [click.style(line, fg="yellow")]
        case EventKind.TOOL_CALL | EventKind.COMPACTION:
            return []


def _result_text(body: Json) -> str:
    """What the tool gave, without the marks that only the model needs."""
    content = body["content"]
    if not isinstance(content, str):
        return "(an image)"
    text = unmarked(content) if body.get("outside") else content
    return f"({body['large_result']}) {text}" if "large_result" in body else text


def _is_shown(block: dict[str, Any]) -> bool:
    return block["type"] == "tool_use" or (block["type"] == "text" and bool(block["text"].strip()))


def _block_line(block: dict[str, Any], most: int) -> str:
    if block["type"] == "text":
        return "  " + one_line(block["text"], most)
    name = click.style(one_line(block["name"]), bold=True)
    return f"  → {name}({one_line(_arguments(block['input']), most)})"


def _arguments(values: dict[str, Any]) -> str:
    pairs = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return ", ".join(pairs)
