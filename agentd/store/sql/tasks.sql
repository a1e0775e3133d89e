-- The queue as people see it: enqueue, look, change, cancel, retry, resume.

-- query: add
INSERT INTO tasks (
    id, session_id, prompt, title, priority, state, has_predecessors, after_any, not_before, key, model,
    schedule_id, max_tool_iterations, deadline_s, max_attempts, max_cost_microusd, max_total_tokens,
    attempt, token, retryable, enqueued_by, created_at, updated_at
) VALUES (
    $id, $session_id, $prompt, $title, $priority, 'pending', $has_predecessors, $after_any, $not_before, $key, $model,
    $schedule_id, $max_tool_iterations, $deadline_s, $max_attempts, $max_cost_microusd, $max_total_tokens,
    0, 0, FALSE, $enqueued_by, $now, $now
);

-- query: add_predecessor
INSERT INTO task_predecessors (task_id, after_id) VALUES ($task_id, $after_id);

-- query: remove_predecessors
DELETE FROM task_predecessors WHERE task_id = $task_id;

-- query: of_key
-- The unfinished task that has this key.
SELECT id FROM tasks WHERE key = $key AND state IN ('pending', 'running', 'waiting');

-- query: states
SELECT id, state FROM tasks WHERE id = ANY($ids);

-- query: get
SELECT * FROM tasks WHERE id = $id;

-- query: outcomes
SELECT id, title, state, output, error FROM tasks WHERE id = ANY($ids) ORDER BY id;

-- query: predecessors
SELECT task_id, after_id FROM task_predecessors WHERE task_id = ANY($ids) ORDER BY after_id;

-- query: ids_like
-- The id itself first, then those that start or end with it.
SELECT id FROM tasks
WHERE id = $text
   OR $in_part AND (left(id, length($text)) = $text OR right(id, length($text)) = $text)
ORDER BY CASE WHEN id = $text THEN 0 ELSE 1 END, id
LIMIT 5;

-- query: list
-- Unfinished tasks in the order in which they would be claimed, then the others, newest first.
SELECT t.*
FROM tasks t
WHERE (CAST($state AS TEXT) IS NULL OR t.state = $state)
  AND (CAST($priority AS TEXT) IS NULL OR t.priority = $priority)
  AND (CAST($session_id AS TEXT) IS NULL OR t.session_id = $session_id)
ORDER BY
    CASE t.state WHEN 'running' THEN 0 WHEN 'pending' THEN 1 WHEN 'waiting' THEN 2 ELSE 3 END,
    CASE WHEN t.state IN ('completed', 'failed', 'cancelled') THEN NULL
         WHEN t.priority = 'high' THEN 0 WHEN t.priority = 'medium' THEN 1 ELSE 2 END NULLS LAST,
    CASE WHEN t.state IN ('completed', 'failed', 'cancelled') THEN NULL ELSE t.created_at END NULLS LAST,
    t.finished_at DESC NULLS LAST,
    t.id DESC
LIMIT $limit OFFSET $offset;

-- query: count_by_state
SELECT state, count(*) AS tasks FROM tasks GROUP BY state ORDER BY state;

-- query: edges
-- Who waits for whom among unfinished tasks: by `after`, or by the wake condition.
SELECT p.task_id, p.after_id
FROM task_predecessors p
JOIN tasks t ON t.id = p.task_id
WHERE t.state IN ('pending', 'running', 'waiting')
UNION
SELECT t.id, t.wake_on_task FROM tasks t WHERE t.state = 'waiting' AND t.wake_on_task IS NOT NULL;

-- query: update
-- Pending tasks only. No row back: it is not pending any more.
UPDATE tasks
SET prompt = $prompt, title = $title, priority = $priority, not_before = $not_before,
    has_predecessors = $has_predecessors, updated_at = $now
WHERE id = $id AND state = 'pending'
RETURNING id;

-- query: delete
DELETE FROM tasks WHERE id = $id AND state <> 'running' RETURNING id;

-- query: unfinished_successors
SELECT t.id FROM tasks t
JOIN task_predecessors p ON p.task_id = t.id
WHERE p.after_id = $id AND t.state IN ('pending', 'running', 'waiting')
ORDER BY t.id;

-- query: cancel
-- A task that nobody runs.
UPDATE tasks
SET state = 'cancelled', error = $reason, retryable = FALSE, waiting_reason = NULL, wake_at = NULL,
    wake_on_task = NULL, woken_by = NULL, finished_at = $now, updated_at = $now
WHERE id = $id AND state IN ('pending', 'waiting')
RETURNING id;

-- query: request_cancel
-- A running task: its daemon sees the request and ends the run.
UPDATE tasks SET cancel_requested_at = $now, updated_at = $now
WHERE id = $id AND state = 'running'
RETURNING id;

-- query: retry
UPDATE tasks
SET state = 'pending', woken_by = 'retry', attempt = 0, output = NULL, retryable = FALSE,
    cancel_requested_at = NULL, finished_at = NULL, not_before = NULL, updated_at = $now
WHERE id = $id AND state IN ('failed', 'cancelled')
RETURNING id;

-- query: resume
UPDATE tasks
SET state = 'pending', woken_by = 'person', wake_at = NULL, wake_on_task = NULL, updated_at = $now
WHERE id = $id AND state = 'waiting'
RETURNING id;

-- query: wake_session
-- A message to a session wakes what waits in it.
UPDATE tasks
SET state = 'pending', woken_by = 'message', wake_at = NULL, wake_on_task = NULL, updated_at = $now
WHERE session_id = $session_id AND state = 'waiting';

-- query: fail_successors
-- Whoever could only go on after one of `ids` fails with it.
UPDATE tasks
SET state = 'failed', error = $error, retryable = FALSE, finished_at = $now, updated_at = $now
WHERE state = 'pending' AND NOT after_any
  AND id IN (SELECT task_id FROM task_predecessors WHERE after_id = ANY($ids))
RETURNING id;
