-- Background processes that tools have started. Without an end: it runs, or its daemon died.

CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    daemon_id TEXT NOT NULL,
    command TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ,
    exit_code BIGINT,
    ended_why TEXT
);
