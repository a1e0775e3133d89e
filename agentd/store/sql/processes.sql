-- Background processes that tools have started.

-- query: add
INSERT INTO processes (id, session_id, task_id, daemon_id, command, started_at)
VALUES ($id, $session_id, $task_id, $daemon_id, $command, $now);

-- query: end
UPDATE processes SET ended_at = $now, exit_code = $exit_code, ended_why = $why
WHERE id = $id AND ended_at IS NULL;

-- query: get
SELECT * FROM processes WHERE id = $id;

-- query: list
SELECT * FROM processes
WHERE $session_id IS NULL OR session_id = $session_id
ORDER BY started_at DESC, id DESC
LIMIT $limit;

-- query: finished_sessions
-- Those of the sessions in which no task is left that could want its processes.
SELECT DISTINCT s.session_id FROM (SELECT unnest($session_ids) AS session_id) s
WHERE NOT EXISTS (
    SELECT 1 FROM tasks t
    WHERE t.session_id = s.session_id AND t.state IN ('pending', 'running', 'waiting')
);

-- query: forget
DELETE FROM processes WHERE ended_at < $before RETURNING id;
