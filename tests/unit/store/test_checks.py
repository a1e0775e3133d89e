"""The check finds what is broken and says what to do; where nothing is, it finds nothing."""

from collections import Counter
from pathlib import Path

import pytest

from agentd.domain.clock import SystemClock
from agentd.domain.errors import StoreUnusable
from agentd.domain.task import NewTask
from agentd.store.checks import MEANINGS, Finding, check
from agentd.store.hub import BLOCK_SIZE
from agentd.store.queries import load
from agentd.store.snapshot import snapshot
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.store_filling import filled

_HEADERS_BYTES = 3 * 4096


def checked(path: Path, *alive: str) -> list[Finding]:
    with snapshot(path, path.parent / "run", 5, read_only=False) as instance:
        return check(instance, alive=alive, archive=path.parent / "archive")


async def test_a_database_in_order_has_no_findings(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path)
    async with Store(path) as store:
        tasks = TaskStore(store, SystemClock())
        first = (await tasks.enqueue(NewTask(prompt="first", key="k"))).task
        await tasks.enqueue(NewTask(prompt="second", after=(first.id,)))
        deleted = (await tasks.enqueue(NewTask(prompt="third"))).task
        await tasks.delete(deleted.id)
    assert checked(path) == []
    assert list((tmp_path / "run").iterdir()) == []


def test_every_query_has_its_meaning() -> None:
    assert set(load("checks")) == set(MEANINGS)


_BREAKING = {
    "running_without_daemon": "UPDATE tasks SET state = 'running', daemon_id = 'gone', "
    "run_id = 'r', started_at = now(), finished_at = NULL WHERE id = $one",
    "running_without_run": "UPDATE tasks SET state = 'running', daemon_id = 'here', "
    "finished_at = NULL WHERE id = $one",
    "running_side_by_side": "UPDATE tasks SET state = 'running', daemon_id = 'here', run_id = 'r', "
    "started_at = now(), finished_at = NULL, session_id = $one WHERE id IN ($one, $two)",
    "waiting_for_nothing": "UPDATE tasks SET state = 'waiting', finished_at = NULL WHERE id = $one",
    "pending_for_ever": "UPDATE tasks SET state = 'failed' WHERE id = $one",
    "predecessors_not_noted": "UPDATE tasks SET has_predecessors = FALSE WHERE prompt = 'after'",
    "ended_without_time": "UPDATE tasks SET finished_at = NULL WHERE id = $one",
    "unfinished_with_time": "UPDATE tasks SET finished_at = now() WHERE prompt = 'after'",
    "same_key_twice": "UPDATE tasks SET state = 'pending', finished_at = NULL, key = 'k' "
    "WHERE id IN ($one, $two)",
    "run_ahead_of_task": "INSERT INTO runs SELECT id || '.9', id, session_id, 'd', 9, 9, now(), "
    "now(), 'completed', NULL FROM tasks WHERE id = $one",
    "gap_in_journal": "DELETE FROM events WHERE session_id = $one AND seq = 5",
    "result_without_call": "UPDATE events SET body = replace(body, 'call1', 'other') "
    "WHERE session_id = $one AND kind = 'tool_result'",
    "task_without_session": "UPDATE tasks SET session_id = 'gone' WHERE id = $one",
    "events_without_session": "DELETE FROM sessions WHERE id = $one",
    "message_without_session": "INSERT INTO messages VALUES ('m', 'gone', 'x', 'x', now(), now())",
    "large_result_without_event": "INSERT INTO large_results VALUES ('lr_1', $one, $one, 'c', 'x', "
    "false, 'text', 4, 8000, now())",
    "large_result_missing": "UPDATE events SET body = "
    '\'{"call_id": "call0", "tool": "read", "content": "x", "is_error": false, '
    '"large_result": "lr_1"}\' WHERE session_id = $one AND kind = \'tool_result\' AND seq = 4',
    "run_without_session": "INSERT INTO runs VALUES ('r', 't', 'gone', 'd', 1, 1, now(), now(), "
    "'completed', NULL)",
    "fired_without_task": "INSERT INTO occurrences SELECT $one, now(), 'fired', NULL, 1, NULL, "
    "NULL, NULL, now()",
    "reserved_for_nothing": "INSERT INTO reservations SELECT $one, 's', 'gone', 'r', NULL, 'm', 1, "
    "now(), 1, 1, 1",
    "predecessor_without_task": "INSERT INTO task_predecessors VALUES ('gone', $one)",
}


def test_every_query_is_shown_below() -> None:
    assert set(_BREAKING) == set(MEANINGS)


@pytest.mark.parametrize("name", _BREAKING)
async def test_what_can_not_be_is_found(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    one, two = sorted(await filled(path, 2))
    async with Store(path) as store:
        await TaskStore(store, SystemClock()).enqueue(NewTask(prompt="after", after=(one,)))
        uses = {
            key: value
            for key, value in (("one", one), ("two", two))
            if f"${key}" in _BREAKING[name]
        }
        async with store.transaction() as conn:
            await conn.execute(_BREAKING[name], **uses)
    found = {finding.check: finding for finding in checked(path, "here")}
    assert name in found
    assert found[name].hint
    assert found[name].ids


@pytest.mark.timeout(60)
async def test_a_byte_that_flips_anywhere_is_found_and_does_no_harm(tmp_path: Path) -> None:
    """In each block of rows or keys of the file."""
    path = tmp_path / "a.duckdb"
    await filled(path, 2, turns=300)
    whole = path.read_bytes()
    found: Counter[str] = Counter()
    for place in range(_HEADERS_BYTES + 5000, len(whole), BLOCK_SIZE):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            findings = checked(path)
        except StoreUnusable:
            found["refused"] += 1
            continue
        for finding in findings:
            assert finding.check in ("readable", "keys")
            assert str(path) in finding.text
            assert "agentd db" in finding.hint
        found[findings[0].check if findings else "nothing"] += 1
    # A block that is free may well be damaged.
    assert found["nothing"] <= 2, found
    assert min(found["readable"], found["keys"]) >= 5, found


async def test_a_file_of_the_archive_that_is_gone_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    await filled(path)
    async with Store(path) as store, store.transaction() as conn:
        await conn.execute(
            "INSERT INTO archives VALUES ('b1', 1, 1, 1, 1, now(), 0), "
            "('b0', 1, 1, 1, 1, now(), NULL)"
        )
    older, newer = checked(path)
    assert {older.check, newer.check} == {"archive"}
    assert (older.count, newer.count) == (6, 7)  # the older one has no file of large results
