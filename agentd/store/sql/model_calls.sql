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
