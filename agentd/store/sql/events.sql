-- The journal: appended, never updated.

-- query: add
INSERT INTO events (session_id, seq, kind, task_id, run_id, body, created_at)
VALUES ($session_id, $seq, $kind, $task_id, $run_id, $body, $now);

-- query: since
SELECT * FROM events WHERE session_id = $session_id AND seq > $seq ORDER BY seq LIMIT $limit;

-- query: newest
SELECT * FROM events WHERE session_id = $session_id ORDER BY seq DESC LIMIT $limit;
