-- The queue as a daemon sees it: claim, end, put back. `token` fences every write of a run.

-- query: signs
-- What there is to do, in one cheap look: most looks find nothing.
SELECT
    count(wake_on_task) AS awaiting,
    count(cancel_requested_at) AS cancelling,
    min(wake_at) AS next_wake,
    min(CASE WHEN not_before > $now THEN not_before END) AS next_start,
    (SELECT count(*) FROM messages WHERE delivered_at IS NULL) AS messages
FROM tasks
WHERE state IN ('pending', 'running', 'waiting');

-- query: wake_due
-- Waiting tasks whose condition holds: the time has come, or the task they wait for has ended.
UPDATE tasks
SET state = 'pending',
    woken_by = CASE WHEN wake_at <= $now THEN 'time' ELSE 'task' END,
    wake_at = NULL, updated_at = $now
WHERE state = 'waiting'
  AND (wake_at <= $now
       OR (wake_on_task IS NOT NULL
           AND wake_on_task NOT IN (
               SELECT id FROM tasks WHERE state IN ('pending', 'running', 'waiting'))));

-- query: candidates
-- The claimable tasks in the order of work, but for those that `blocked` finds.
SELECT t.*
FROM tasks t
WHERE t.state = 'pending'
  AND (t.not_before IS NULL OR t.not_before <= $now)
  AND t.session_id NOT IN (SELECT r.session_id FROM tasks r WHERE r.state = 'running')
ORDER BY CASE t.priority WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, t.created_at, t.id
LIMIT $limit OFFSET $offset;

-- query: blocked
-- A predecessor that failed has failed its successors with it, so only unfinished ones stand in the
-- way. Not part of `candidates`: most tasks have none, and the join doubles the cost of planning it.
SELECT DISTINCT p.task_id AS id
FROM task_predecessors p
JOIN tasks before ON before.id = p.after_id
WHERE p.task_id = ANY($ids) AND before.state IN ('pending', 'running', 'waiting');

-- query: claim
UPDATE tasks
SET state = 'running', token = token + 1, attempt = attempt + 1, daemon_id = $daemon_id,
    run_id = id || '.' || CAST(token + 1 AS TEXT), lease_until = $lease_until, started_at = $now,
    updated_at = $now
WHERE id = ANY($ids);

-- query: renew
-- Whatever this daemon still owns; what is missing from the rows was taken from it.
UPDATE tasks SET lease_until = $lease_until
WHERE state = 'running' AND daemon_id = $daemon_id
RETURNING id, token;

-- query: sessions_with_events
SELECT DISTINCT session_id FROM events WHERE session_id = ANY($ids);

-- query: cancel_requests
-- Running tasks of this daemon that somebody wants to end.
SELECT id FROM tasks
WHERE state = 'running' AND daemon_id = $daemon_id AND cancel_requested_at IS NOT NULL;

-- query: opened
-- What woke the task was told to the model.
UPDATE tasks SET woken_by = NULL, waiting_reason = NULL, wake_on_task = NULL, updated_at = $now
WHERE id = $id;

-- query: end
-- Beginning to wait is no failed attempt.
UPDATE tasks
SET state = $state, output = $output, error = $error, retryable = $retryable,
    attempt = CASE WHEN $state = 'waiting' THEN attempt - 1 ELSE attempt END,
    waiting_reason = $waiting_reason, wake_at = $wake_at, wake_on_task = $wake_on_task,
    cancel_requested_at = NULL, finished_at = $finished_at, updated_at = $now
WHERE id = $id AND token = $token AND state = 'running';

-- query: to_be_cancelled
SELECT cancel_requested_at FROM tasks WHERE id = $id AND cancel_requested_at IS NOT NULL;

-- query: max_attempts
SELECT max_attempts FROM tasks WHERE id = $id;

-- query: again
-- After an error that may pass: not before `not_before`.
UPDATE tasks
SET state = 'pending', output = $output, error = $error, not_before = $not_before,
    daemon_id = NULL, run_id = NULL, updated_at = $now
WHERE id = $id AND token = $token AND state = 'running';

-- query: wake_if_spoken_to
-- What was said while the model decided to wait, it has not heard.
UPDATE tasks
SET state = 'pending', woken_by = 'message', wake_at = NULL, wake_on_task = NULL, updated_at = $now
WHERE id = $id AND state = 'waiting'
  AND session_id IN (SELECT session_id FROM messages WHERE delivered_at IS NULL);

-- query: put_back
-- Unharmed: this claim counts as no attempt.
UPDATE tasks
SET state = 'pending', attempt = attempt - 1, daemon_id = NULL, run_id = NULL, updated_at = $now
WHERE id = $id AND token = $token AND state = 'running';

-- query: running
SELECT id, session_id, run_id, daemon_id, attempt, token, started_at, cancel_requested_at,
    max_attempts, lease_until
FROM tasks WHERE state = 'running' ORDER BY id;

-- query: take_over
-- A new token, so that the run of a daemon that is not dead after all can write nothing.
UPDATE tasks
SET state = $state, error = $error, retryable = $retryable, not_before = $not_before,
    finished_at = $finished_at, token = token + 1, daemon_id = NULL, run_id = NULL, updated_at = $now
WHERE id = $id AND token = $token AND state = 'running';

-- query: add
INSERT INTO runs (
    id, task_id, session_id, daemon_id, attempt, token, started_at, ended_at, ending, error
) VALUES (
    $id, $task_id, $session_id, $daemon_id, $attempt, $token, $started_at, $ended_at, $ending, $error
);

-- query: of_task
SELECT * FROM runs WHERE task_id = $task_id ORDER BY started_at, id;
