-- Conversations, and what was said to them while nobody was listening.

-- query: ensure
INSERT INTO sessions (id, title, created_at) VALUES ($id, $title, $now) ON CONFLICT (id) DO NOTHING;

-- query: add
INSERT INTO sessions (id, title, created_at) VALUES ($id, $title, $now);

-- query: exists
SELECT id FROM sessions WHERE id = $id;

-- query: ids_like
-- The id itself first, then those that start or end with it.
SELECT id FROM sessions
WHERE id = $text
   OR $in_part AND (left(id, length($text)) = $text OR right(id, length($text)) = $text)
ORDER BY CASE WHEN id = $text THEN 0 ELSE 1 END, id
LIMIT 5;

-- query: list
SELECT s.id, s.title, s.created_at, count(e.seq) AS events, max(e.created_at) AS last_event_at
FROM sessions s
LEFT JOIN events e ON e.session_id = s.id
GROUP BY s.id, s.title, s.created_at
ORDER BY coalesce(max(e.created_at), s.created_at) DESC, s.id
LIMIT $limit OFFSET $offset;

-- query: add_message
INSERT INTO messages (id, session_id, sender, body, created_at)
VALUES ($id, $session_id, $sender, $body, $now);

-- query: undelivered
SELECT id, sender, body FROM messages
WHERE session_id = $session_id AND delivered_at IS NULL
ORDER BY id;

-- query: sessions_with_messages
SELECT DISTINCT session_id FROM messages WHERE delivered_at IS NULL;

-- query: mark_delivered
UPDATE messages SET delivered_at = $now WHERE id = ANY($ids);
