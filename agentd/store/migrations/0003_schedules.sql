-- What runs by the clock, and what became of each occurrence.

CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    expression TEXT NOT NULL,
    timezone TEXT NOT NULL,
    prompt TEXT NOT NULL,
    title TEXT,
    session_id TEXT,
    priority TEXT NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    model TEXT,
    missed TEXT NOT NULL CHECK (missed IN ('once', 'skip', 'all')),
    overlap TEXT NOT NULL CHECK (overlap IN ('queue', 'skip')),
    gate TEXT,
    enabled BOOLEAN NOT NULL,
    next_due TIMESTAMPTZ,
    created_by TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- Every occurrence is here once. `times` and `through`: a stretch of missed ones is one row.
CREATE TABLE occurrences (
    schedule_id TEXT NOT NULL,
    due_at TIMESTAMPTZ NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'skipped', 'missed', 'gated')),
    reason TEXT,
    times BIGINT NOT NULL,
    through TIMESTAMPTZ,
    task_id TEXT,
    daemon_id TEXT,
    decided_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (schedule_id, due_at)
);

ALTER TABLE tasks ADD COLUMN schedule_id TEXT;
