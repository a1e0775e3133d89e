-- The `agentd run` processes of this home.

-- query: add
INSERT INTO daemons (id, pid, host, version, concurrency, started_at)
VALUES ($id, $pid, $host, $version, $concurrency, $now);

-- query: stop
UPDATE daemons SET stopped_at = $now WHERE id = $id AND stopped_at IS NULL;

-- query: list
SELECT d.*,
    (SELECT count(*) FROM tasks t WHERE t.daemon_id = d.id AND t.state = 'running') AS running
FROM daemons d
WHERE $all OR d.stopped_at IS NULL
ORDER BY d.started_at DESC, d.id
LIMIT $limit;

-- query: not_stopped
-- Who has not signed off, or has and left something running.
SELECT id FROM daemons WHERE stopped_at IS NULL
UNION
SELECT daemon_id FROM tasks WHERE state = 'running' AND daemon_id IS NOT NULL;
