-- Views for people, made where somebody asks (views.py). `all_<table>` is the table and its archive.

-- query: task_costs
-- Each task with what it took. cost_usd is NULL when no call of it has a known price.
SELECT t.id, t.title, t.state, t.session_id, t.priority, t.attempt, t.enqueued_by,
    t.created_at, t.finished_at,
    epoch(t.finished_at - t.created_at) AS total_s,
    coalesce(c.calls, 0) AS calls,
    coalesce(c.input_tokens, 0) AS input_tokens,
    coalesce(c.output_tokens, 0) AS output_tokens,
    coalesce(c.cache_write_tokens, 0) AS cache_write_tokens,
    coalesce(c.cache_read_tokens, 0) AS cache_read_tokens,
    c.cost_usd,
    coalesce(c.unpriced, 0) AS unpriced
FROM all_tasks t
LEFT JOIN (
    SELECT task_id, count(*) AS calls,
        CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
        CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
        CAST(sum(cache_write_tokens) AS BIGINT) AS cache_write_tokens,
        CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
        sum(cost_microusd) / 1e6 AS cost_usd,
        count(*) FILTER (WHERE outcome = 'ok' AND cost_microusd IS NULL) AS unpriced
    FROM model_calls GROUP BY task_id
) c ON c.task_id = t.id;

-- query: tool_calls
-- One row for each call of a tool. Without an end: it is under way, or a crash cut it off.
SELECT
    coalesce(r.session_id, i.session_id) AS session_id,
    coalesce(r.task_id, i.task_id) AS task_id,
    coalesce(r.call_id, i.call_id) AS call_id,
    coalesce(r.tool, i.tool) AS tool,
    i.effect,
    coalesce(i.started_at, r.ended_at) AS started_at,
    r.ended_at,
    coalesce(r.duration_ms, CAST(1000 * epoch(r.ended_at - i.started_at) AS BIGINT)) AS duration_ms,
    r.is_error,
    r.error_type,
    r.content
FROM (
    SELECT session_id, task_id, body->>'call_id' AS call_id, max(body->>'tool') AS tool,
        max(body->>'effect') AS effect, min(created_at) AS started_at
    FROM all_events WHERE kind = 'tool_call'
    GROUP BY session_id, task_id, body->>'call_id'
) i
FULL JOIN (
    SELECT session_id, task_id, body->>'call_id' AS call_id, body->>'tool' AS tool,
        created_at AS ended_at, CAST(body->>'is_error' AS BOOLEAN) AS is_error,
        CAST(body->>'duration_ms' AS BIGINT) AS duration_ms,
        body->>'error_type' AS error_type, body->>'content' AS content
    FROM all_events WHERE kind = 'tool_result'
) r ON r.session_id = i.session_id AND r.task_id = i.task_id AND r.call_id = i.call_id;

-- query: tools
-- How often each tool was called, how long it took and how often it failed.
SELECT tool, count(*) AS calls,
    count(*) FILTER (WHERE is_error) AS failures,
    count(*) FILTER (WHERE ended_at IS NULL) AS unfinished,
    CAST(median(duration_ms) AS BIGINT) AS median_ms,
    max(duration_ms) AS longest_ms,
    CAST(sum(duration_ms) AS BIGINT) AS total_ms,
    max(started_at) AS last_at
FROM tool_calls GROUP BY tool;

-- query: cost_by_day
-- Days in UTC.
SELECT CAST(date_trunc('day', started_at) AS DATE) AS day, count(*) AS calls,
    count(DISTINCT task_id) AS tasks,
    CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(cache_write_tokens) AS BIGINT) AS cache_write_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    sum(cost_microusd) / 1e6 AS cost_usd
FROM model_calls GROUP BY date_trunc('day', started_at);

-- query: cost_by_model
SELECT model, count(*) AS calls, count(*) FILTER (WHERE outcome <> 'ok') AS failures,
    CAST(median(duration_ms) AS BIGINT) AS median_ms,
    CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(cache_write_tokens) AS BIGINT) AS cache_write_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    sum(cost_microusd) / 1e6 AS cost_usd,
    count(*) FILTER (WHERE outcome = 'ok' AND cost_microusd IS NULL) AS unpriced
FROM model_calls GROUP BY model;

-- query: cost_by_session
SELECT c.session_id, max(s.title) AS title, count(*) AS calls, count(DISTINCT c.task_id) AS tasks,
    sum(c.cost_microusd) / 1e6 AS cost_usd, max(c.started_at) AS last_at
FROM model_calls c
LEFT JOIN all_sessions s ON s.id = c.session_id
GROUP BY c.session_id;

-- query: cost_by_schedule
SELECT c.schedule_id, max(s.expression) AS expression, max(s.title) AS title, count(*) AS calls,
    count(DISTINCT c.task_id) AS tasks, sum(c.cost_microusd) / 1e6 AS cost_usd,
    max(c.started_at) AS last_at
FROM model_calls c
LEFT JOIN schedules s ON s.id = c.schedule_id
WHERE c.schedule_id IS NOT NULL
GROUP BY c.schedule_id;

-- query: conversation
-- What was said, as text: by people, by the model, by tools.
SELECT session_id, seq, created_at, kind, task_id,
    CASE kind
        WHEN 'user' THEN body->>'text'
        WHEN 'assistant' THEN array_to_string(json_extract_string(body, '$.content[*].text'), ' ')
        WHEN 'tool_call' THEN body->>'tool'
        WHEN 'tool_result' THEN body->>'content'
        ELSE body->>'note'
    END AS said
FROM all_events;
