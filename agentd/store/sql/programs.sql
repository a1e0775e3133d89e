-- Programs that wait for tools.

-- query: keep
INSERT INTO programs (session_id, call_id, reply_seq, state, seal, paused_at)
VALUES ($session_id, $call_id, $reply_seq, $state, $seal, $now)
ON CONFLICT (session_id, call_id) DO UPDATE
SET reply_seq = excluded.reply_seq, state = excluded.state, seal = excluded.seal,
    paused_at = excluded.paused_at;

-- query: find
SELECT * FROM programs
WHERE session_id = $session_id AND call_id = $call_id AND reply_seq = $reply_seq;

-- query: forget
-- All of a session: a run works one program at a time, so the others are remains.
DELETE FROM programs WHERE session_id = $session_id;
