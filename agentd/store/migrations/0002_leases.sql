-- A run owns its task for a while; a task is tried so often.

ALTER TABLE tasks ADD COLUMN lease_until TIMESTAMPTZ;

ALTER TABLE tasks ADD COLUMN max_attempts BIGINT;
