-- What tools gave and was too long for the model to see at once, in full. Its event shows the first page.

CREATE TABLE large_results (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    outside BOOLEAN NOT NULL, -- strangers wrote it: a page of it is marked for the model, too
    content TEXT NOT NULL,
    chars BIGINT NOT NULL,
    page_chars BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- Of a batch; NULL in those that are older than the table and have no file of it.
ALTER TABLE archives ADD COLUMN large_results BIGINT;
