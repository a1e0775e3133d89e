-- The first shape. Primary keys only: a secondary index costs writes and can not be repaired.

CREATE TABLE schema_versions (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    title TEXT,
    created_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    prompt TEXT NOT NULL,
    title TEXT,
    priority TEXT NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    state TEXT NOT NULL
        CHECK (state IN ('pending', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    has_predecessors BOOLEAN NOT NULL, -- rows of task_predecessors: most tasks have none
    after_any BOOLEAN NOT NULL,
    not_before TIMESTAMPTZ,
    key TEXT,
    model TEXT,
    max_tool_iterations BIGINT,
    deadline_s DOUBLE PRECISION,
    attempt BIGINT NOT NULL,
    token BIGINT NOT NULL,
    run_id TEXT,
    daemon_id TEXT,
    waiting_reason TEXT,
    wake_at TIMESTAMPTZ,
    wake_on_task TEXT,
    woken_by TEXT,
    output TEXT,
    error TEXT,
    retryable BOOLEAN NOT NULL,
    cancel_requested_at TIMESTAMPTZ,
    enqueued_by TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ
);

CREATE TABLE task_predecessors (
    task_id TEXT NOT NULL,
    after_id TEXT NOT NULL,
    PRIMARY KEY (task_id, after_id)
);

CREATE TABLE events (
    session_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    task_id TEXT,
    run_id TEXT,
    body JSON NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (session_id, seq)
);

-- What was said to a session and not yet written into its journal by a run of it.
CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    delivered_at TIMESTAMPTZ
);

-- One row for each run that has ended; the one under way stands in `tasks`.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    daemon_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    token BIGINT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ NOT NULL,
    ending TEXT NOT NULL,
    error TEXT
);

CREATE TABLE model_calls (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    model TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    duration_ms BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    stop_reason TEXT,
    request_id TEXT,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_write_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cost_microusd BIGINT
);

CREATE TABLE daemons (
    id TEXT PRIMARY KEY,
    pid BIGINT NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    concurrency BIGINT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    stopped_at TIMESTAMPTZ
);
