-- The ledger: what calls have cost (model_calls) and what those under way may cost (reservations).

-- query: used_by_task
SELECT coalesce(sum(spent_microusd), 0) AS spent_microusd,
    coalesce(sum(spent_tokens), 0) AS spent_tokens,
    coalesce(sum(reserved_microusd), 0) AS reserved_microusd,
    coalesce(sum(reserved_tokens), 0) AS reserved_tokens
FROM (
    SELECT cost_microusd AS spent_microusd,
        input_tokens + output_tokens + cache_write_tokens + cache_read_tokens AS spent_tokens,
        0 AS reserved_microusd, 0 AS reserved_tokens
    FROM model_calls WHERE task_id = $id
    UNION ALL
    SELECT 0, 0, cost_microusd, input_tokens + output_tokens
    FROM reservations WHERE task_id = $id
) AS ledger;

-- query: used_by_session
SELECT coalesce(sum(spent_microusd), 0) AS spent_microusd,
    coalesce(sum(spent_tokens), 0) AS spent_tokens,
    coalesce(sum(reserved_microusd), 0) AS reserved_microusd,
    coalesce(sum(reserved_tokens), 0) AS reserved_tokens
FROM (
    SELECT cost_microusd AS spent_microusd,
        input_tokens + output_tokens + cache_write_tokens + cache_read_tokens AS spent_tokens,
        0 AS reserved_microusd, 0 AS reserved_tokens
    FROM model_calls WHERE session_id = $id
    UNION ALL
    SELECT 0, 0, cost_microusd, input_tokens + output_tokens
    FROM reservations WHERE session_id = $id
) AS ledger;

-- query: used_by_schedule
SELECT coalesce(sum(spent_microusd), 0) AS spent_microusd,
    coalesce(sum(spent_tokens), 0) AS spent_tokens,
    coalesce(sum(reserved_microusd), 0) AS reserved_microusd,
    coalesce(sum(reserved_tokens), 0) AS reserved_tokens
FROM (
    SELECT cost_microusd AS spent_microusd,
        input_tokens + output_tokens + cache_write_tokens + cache_read_tokens AS spent_tokens,
        0 AS reserved_microusd, 0 AS reserved_tokens
    FROM model_calls WHERE schedule_id = $id
    UNION ALL
    SELECT 0, 0, cost_microusd, input_tokens + output_tokens
    FROM reservations WHERE schedule_id = $id
) AS ledger;

-- query: used_since
-- Of a day, or with a `since` before everything, of the installation.
SELECT coalesce(sum(spent_microusd), 0) AS spent_microusd,
    coalesce(sum(spent_tokens), 0) AS spent_tokens,
    coalesce(sum(reserved_microusd), 0) AS reserved_microusd,
    coalesce(sum(reserved_tokens), 0) AS reserved_tokens
FROM (
    SELECT cost_microusd AS spent_microusd,
        input_tokens + output_tokens + cache_write_tokens + cache_read_tokens AS spent_tokens,
        0 AS reserved_microusd, 0 AS reserved_tokens
    FROM model_calls WHERE started_at >= $since
    UNION ALL
    SELECT 0, 0, cost_microusd, input_tokens + output_tokens
    FROM reservations WHERE started_at >= $since
) AS ledger;

-- query: running
SELECT id, token FROM tasks WHERE id = ANY($ids) AND state = 'running';

-- query: reserve
INSERT INTO reservations (
    id, session_id, task_id, run_id, schedule_id, model, attempt, started_at, input_tokens,
    output_tokens, cost_microusd
) VALUES (
    $id, $session_id, $task_id, $run_id, $schedule_id, $model, $attempt, $started_at, $input_tokens,
    $output_tokens, $cost_microusd
);

-- query: settle
-- In the transaction that writes the rows of these calls into model_calls, if they were made.
DELETE FROM reservations WHERE id = ANY($ids);

-- query: abandoned
-- Those whose run is over: it was killed, cut off or taken over in the middle of the call.
SELECT id FROM reservations
WHERE run_id NOT IN (SELECT run_id FROM tasks WHERE state = 'running' AND run_id IS NOT NULL);

-- query: charge
-- What came of these calls nobody knows, so they count as the worst case.
INSERT INTO model_calls (
    id, session_id, task_id, run_id, schedule_id, model, attempt, started_at, duration_ms, outcome,
    input_tokens, output_tokens, cache_write_tokens, cache_read_tokens, cost_microusd
)
SELECT id, session_id, task_id, run_id, schedule_id, model, attempt, started_at, 0, 'unknown',
    0, output_tokens, input_tokens, 0, cost_microusd
FROM reservations WHERE id = ANY($ids);

-- query: waiting
-- Tasks that wait for money or tokens; the reason says for which limit.
SELECT id, waiting_reason, max_cost_microusd, max_total_tokens FROM tasks
WHERE state = 'waiting' AND left(waiting_reason, 18) = 'budget: the limit ' ORDER BY id;

-- query: raise_limits
-- None leaves a limit as it is. Not of a task that somebody works: its run has read them.
UPDATE tasks
SET max_cost_microusd = coalesce($max_cost_microusd, max_cost_microusd),
    max_total_tokens = coalesce($max_total_tokens, max_total_tokens), updated_at = $now
WHERE id = $id AND state <> 'running';
