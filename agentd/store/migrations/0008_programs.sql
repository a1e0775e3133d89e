-- Programs of the model that wait for tools: where each stands, so that it goes on there after a
-- crash. A row of its own and not an event: it is replaced at every pause and goes with the end.

CREATE TABLE programs (
    session_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    reply_seq BIGINT NOT NULL, -- the event of the reply that holds the call
    state TEXT NOT NULL,
    seal TEXT NOT NULL,
    paused_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (session_id, call_id)
);
