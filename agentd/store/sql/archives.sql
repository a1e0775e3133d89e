-- Old sessions on their way from the tables into Parquet files.

-- query: expired
-- Of tasks that have one of their own (a session that has a name is spoken in again: its journal must
-- go on). Nothing has happened in them since $before, nothing of them is unfinished, and no unfinished
-- task still has to be told what became of one of theirs.
SELECT s.id
FROM sessions s
WHERE s.created_at < $before
  AND (EXISTS (SELECT 1 FROM tasks own WHERE own.id = s.id)
    OR EXISTS (SELECT 1 FROM events said WHERE said.session_id = s.id AND said.task_id = s.id))
  AND NOT EXISTS (
    SELECT 1 FROM tasks t
    WHERE t.session_id = s.id
      AND (t.state IN ('pending', 'running', 'waiting') OR t.updated_at >= $before))
  AND NOT EXISTS (
    SELECT 1 FROM events e WHERE e.session_id = s.id AND e.created_at >= $before)
  AND NOT EXISTS (
    SELECT 1 FROM messages m
    WHERE m.session_id = s.id AND (m.delivered_at IS NULL OR m.created_at >= $before))
  AND NOT EXISTS (
    SELECT 1 FROM tasks t
    JOIN task_predecessors p ON p.after_id = t.id
    JOIN tasks later ON later.id = p.task_id
    WHERE t.session_id = s.id AND later.state IN ('pending', 'running', 'waiting'))
  AND NOT EXISTS (
    SELECT 1 FROM tasks t
    JOIN tasks waiter ON waiter.wake_on_task = t.id
    WHERE t.session_id = s.id AND waiter.state IN ('pending', 'running', 'waiting'))
ORDER BY s.created_at, s.id
LIMIT $limit;

-- query: events_of
SELECT session_id, count(*) AS events FROM events WHERE session_id = ANY($ids) GROUP BY session_id;

-- query: tasks_of
SELECT count(*) AS tasks FROM tasks WHERE session_id = ANY($ids);

-- query: sessions
SELECT * FROM sessions WHERE id = ANY($ids) ORDER BY id;

-- query: tasks
SELECT * FROM tasks WHERE session_id = ANY($ids) ORDER BY id;

-- query: task_predecessors
SELECT * FROM task_predecessors
WHERE task_id IN (SELECT id FROM tasks WHERE session_id = ANY($ids)) ORDER BY task_id, after_id;

-- query: events
SELECT * FROM events WHERE session_id = ANY($ids) ORDER BY session_id, seq;

-- query: large_results
SELECT * FROM large_results WHERE session_id = ANY($ids) ORDER BY id;

-- query: messages
SELECT * FROM messages WHERE session_id = ANY($ids) ORDER BY id;

-- query: runs
SELECT * FROM runs WHERE session_id = ANY($ids) ORDER BY id;

-- query: delete_task_predecessors
DELETE FROM task_predecessors
WHERE task_id IN (SELECT id FROM tasks WHERE session_id = ANY($ids));

-- query: delete_tasks
DELETE FROM tasks WHERE session_id = ANY($ids);

-- query: delete_events
DELETE FROM events WHERE session_id = ANY($ids);

-- query: delete_large_results
DELETE FROM large_results WHERE session_id = ANY($ids);

-- query: delete_messages
DELETE FROM messages WHERE session_id = ANY($ids);

-- query: delete_runs
DELETE FROM runs WHERE session_id = ANY($ids);

-- query: delete_programs
DELETE FROM programs WHERE session_id = ANY($ids);

-- query: delete_sessions
DELETE FROM sessions WHERE id = ANY($ids);

-- query: add
INSERT INTO archives (id, sessions, tasks, events, large_results, size_bytes, created_at)
VALUES (
    $id, $sessions, $tasks, $events,
    (SELECT count(*) FROM large_results WHERE session_id = ANY($ids)), $size_bytes, $now
);

-- query: batches
SELECT id, large_results FROM archives ORDER BY id;
