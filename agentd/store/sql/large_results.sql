-- Results in full. The id is made from the content, so the same result in a session is kept once.

-- query: add
INSERT INTO large_results (
    id, session_id, task_id, call_id, tool, outside, content, chars, page_chars, created_at
) VALUES (
    $id, $session_id, $task_id, $call_id, $tool, $outside, $content, $chars, $page_chars, $now
)
ON CONFLICT (id) DO NOTHING;

-- query: page
-- Empty content: the result ends before that page.
SELECT id, tool, outside, chars, page_chars,
    substring(content, CAST(($page - 1) * page_chars + 1 AS INTEGER), CAST(page_chars AS INTEGER))
        AS content
FROM large_results
WHERE id = $id;
