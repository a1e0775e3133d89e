-- What runs by the clock, and the ledger of its occurrences.

-- query: add
INSERT INTO schedules (
    id, expression, timezone, prompt, title, session_id, priority, model, missed, overlap, gate,
    enabled, next_due, created_by, created_at, updated_at
) VALUES (
    $id, $expression, $timezone, $prompt, $title, $session_id, $priority, $model, $missed, $overlap, $gate,
    TRUE, $next_due, $created_by, $now, $now
);

-- query: count
SELECT count(*) AS schedules FROM schedules;

-- query: get
SELECT * FROM schedules WHERE id = $id;

-- query: list
SELECT * FROM schedules ORDER BY enabled DESC, next_due NULLS LAST, id;

-- query: awake
-- Those that fire by themselves.
SELECT * FROM schedules WHERE enabled AND next_due IS NOT NULL ORDER BY next_due, id;

-- query: ids_like
SELECT id FROM schedules
WHERE id = $text
   OR $in_part AND (left(id, length($text)) = $text OR right(id, length($text)) = $text)
ORDER BY CASE WHEN id = $text THEN 0 ELSE 1 END, id
LIMIT 5;

-- query: set_enabled
UPDATE schedules SET enabled = $enabled, next_due = $next_due, updated_at = $now
WHERE id = $id
RETURNING id;

-- query: remove
DELETE FROM schedules WHERE id = $id RETURNING id;

-- query: advance
-- No row back: another daemon was faster, or the schedule was changed.
UPDATE schedules SET next_due = $next_due
WHERE id = $id AND enabled AND next_due = $due AND updated_at = $updated_at
RETURNING id;

-- query: unfinished_task
SELECT id FROM tasks
WHERE schedule_id = $id AND state IN ('pending', 'running', 'waiting')
ORDER BY id DESC LIMIT 1;

-- query: decided
SELECT due_at FROM occurrences WHERE schedule_id = $schedule_id AND due_at = ANY($dues);

-- query: decide
INSERT INTO occurrences (
    schedule_id, due_at, outcome, reason, times, through, task_id, daemon_id, decided_at
) VALUES (
    $schedule_id, $due_at, $outcome, $reason, $times, $through, $task_id, $daemon_id, $now
);

-- query: ledger
-- The newest first.
SELECT * FROM occurrences WHERE schedule_id = $schedule_id
ORDER BY due_at DESC LIMIT $limit OFFSET $offset;
