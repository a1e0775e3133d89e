-- What must hold in every database. Each query gives the `id` of what breaks it; checks.py says what
-- that means. $alive: the daemons that hold their lock.

-- query: running_without_daemon
SELECT id FROM tasks
WHERE state = 'running'
  AND (daemon_id IS NULL OR NOT list_contains(CAST($alive AS TEXT[]), daemon_id));

-- query: running_without_run
SELECT id FROM tasks
WHERE state = 'running' AND (run_id IS NULL OR started_at IS NULL OR lease_until IS NULL);

-- query: running_side_by_side
SELECT session_id AS id FROM tasks
WHERE state = 'running' GROUP BY session_id HAVING count(*) > 1;

-- query: waiting_for_nothing
SELECT id FROM tasks WHERE state = 'waiting' AND wake_at IS NULL AND wake_on_task IS NULL;

-- query: pending_for_ever
SELECT DISTINCT t.id
FROM tasks t
JOIN task_predecessors p ON p.task_id = t.id
LEFT JOIN tasks before ON before.id = p.after_id
WHERE t.state = 'pending' AND NOT t.after_any
  AND (before.id IS NULL OR before.state IN ('failed', 'cancelled'));

-- query: predecessors_not_noted
SELECT DISTINCT t.id
FROM tasks t
JOIN task_predecessors p ON p.task_id = t.id
WHERE NOT t.has_predecessors;

-- query: ended_without_time
SELECT id FROM tasks
WHERE state IN ('completed', 'failed', 'cancelled') AND finished_at IS NULL;

-- query: unfinished_with_time
SELECT id FROM tasks WHERE state IN ('pending', 'running', 'waiting') AND finished_at IS NOT NULL;

-- query: same_key_twice
SELECT key AS id FROM tasks
WHERE key IS NOT NULL AND state IN ('pending', 'running', 'waiting')
GROUP BY key HAVING count(*) > 1;

-- query: run_ahead_of_task
SELECT r.id FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.token > t.token;

-- query: gap_in_journal
SELECT session_id AS id FROM events
GROUP BY session_id HAVING min(seq) <> 1 OR max(seq) <> count(*);

-- query: result_without_call
SELECT DISTINCT r.session_id AS id
FROM events r
WHERE r.kind = 'tool_result'
  AND r.body->>'within' IS NULL -- else a program asked for it
  AND NOT EXISTS (
    SELECT 1
    FROM (
        SELECT session_id, seq, unnest(json_extract_string(body, '$.content[*].id')) AS call_id
        FROM events WHERE kind = 'assistant'
    ) asked
    WHERE asked.session_id = r.session_id AND asked.seq < r.seq
      AND asked.call_id = r.body->>'call_id');

-- query: task_without_session
SELECT id FROM tasks WHERE session_id NOT IN (SELECT id FROM sessions);

-- query: events_without_session
SELECT DISTINCT session_id AS id FROM events WHERE session_id NOT IN (SELECT id FROM sessions);

-- query: message_without_session
SELECT id FROM messages WHERE session_id NOT IN (SELECT id FROM sessions);

-- query: large_result_without_event
SELECT DISTINCT l.id
FROM large_results l
WHERE NOT EXISTS (
    SELECT 1 FROM events e
    WHERE e.session_id = l.session_id AND e.kind = 'tool_result' AND e.body->>'large_result' = l.id);

-- query: large_result_missing
SELECT DISTINCT body->>'large_result' AS id
FROM events
WHERE kind = 'tool_result' AND body->>'large_result' IS NOT NULL
  AND body->>'large_result' NOT IN (SELECT id FROM large_results);

-- query: run_without_session
SELECT id FROM runs WHERE session_id NOT IN (SELECT id FROM sessions);

-- query: predecessor_without_task
SELECT DISTINCT task_id AS id FROM task_predecessors WHERE task_id NOT IN (SELECT id FROM tasks);

-- query: fired_without_task
-- An occurrence that fired has made a task; a deleted or archived one was made all the same.
SELECT schedule_id AS id FROM occurrences WHERE outcome = 'fired' AND task_id IS NULL;

-- query: reserved_for_nothing
-- What a call under way may cost is settled with its run.
SELECT r.id FROM reservations r
WHERE NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = r.task_id);
