-- What a task may cost, and what calls under way may still cost.

ALTER TABLE tasks ADD COLUMN max_cost_microusd BIGINT;
ALTER TABLE tasks ADD COLUMN max_total_tokens BIGINT;
ALTER TABLE model_calls ADD COLUMN schedule_id TEXT;

-- One row for each call under way to which a limit applies: its worst case. The row in model_calls
-- takes its place, under the same id, in one transaction.
CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    schedule_id TEXT,
    model TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost_microusd BIGINT
);
