-- One row for each attempt to get a reply from a model.

-- query: add
INSERT INTO model_calls (
    id, session_id, task_id, run_id, schedule_id, model, attempt, started_at, duration_ms, outcome, stop_reason,
    request_id, input_tokens, output_tokens, cache_write_tokens, cache_read_tokens, cost_microusd
) VALUES (
    $id, $session_id, $task_id, $run_id, $schedule_id, $model, $attempt, $started_at, $duration_ms, $outcome,
    $stop_reason, $request_id, $input_tokens, $output_tokens, $cache_write_tokens,
    $cache_read_tokens, $cost_microusd
);

-- query: of_task
-- Totals. `unpriced`: calls whose model has no known price.
SELECT count(*) AS calls,
    coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens,
    coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
    coalesce(sum(cache_read_tokens), 0) AS cache_read_tokens,
    coalesce(sum(cost_microusd), 0) AS cost_microusd,
    count(*) FILTER (WHERE outcome = 'ok' AND cost_microusd IS NULL) AS unpriced
FROM model_calls WHERE task_id = $task_id;

-- query: costs
-- Totals of each task, session, schedule, model or day ($by), or of all. `estimated`: the part of
-- the cost that counts calls which broke off, at their worst case.
SELECT CASE $by
        WHEN 'task' THEN task_id
        WHEN 'session' THEN session_id
        WHEN 'schedule' THEN coalesce(schedule_id, '')
        WHEN 'model' THEN model
        WHEN 'day' THEN CAST(CAST(started_at AT TIME ZONE $zone AS DATE) AS TEXT)
        ELSE 'all'
    END AS name,
    count(*) AS calls,
    count(*) FILTER (WHERE outcome <> 'ok') AS failed,
    coalesce(sum(input_tokens), 0) AS input_tokens,
    coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
    coalesce(sum(cache_read_tokens), 0) AS cache_read_tokens,
    coalesce(sum(output_tokens), 0) AS output_tokens,
    coalesce(sum(cost_microusd), 0) AS cost_microusd,
    coalesce(sum(cost_microusd) FILTER (WHERE outcome <> 'ok'), 0) AS estimated_microusd,
    count(*) FILTER (WHERE outcome = 'ok' AND cost_microusd IS NULL) AS unpriced
FROM model_calls
WHERE started_at >= $since
GROUP BY 1
ORDER BY CASE WHEN $by = 'day' THEN max(started_at) END DESC, cost_microusd DESC, calls DESC, name
LIMIT $limit;

-- query: titles
SELECT id, coalesce(title, left(prompt, 200)) AS title FROM tasks WHERE id = ANY($ids)
UNION ALL
SELECT id, title FROM sessions WHERE id = ANY($ids) AND title IS NOT NULL;
