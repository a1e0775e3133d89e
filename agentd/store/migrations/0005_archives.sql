-- The batches of old sessions that stand in Parquet files, archive/<table>/<id>.parquet. Only what is
-- named here counts: a file without its row was left by a crash, and its rows are still in the tables.

CREATE TABLE archives (
    id TEXT PRIMARY KEY,
    sessions BIGINT NOT NULL,
    tasks BIGINT NOT NULL,
    events BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
