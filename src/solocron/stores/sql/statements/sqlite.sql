-- What only SQLite says so. Reads take no lock; every write is compared with the version that was read.

-- newest_of_jobs --  The newest records of some jobs. The edges are made first, and not anew for each record.
WITH wanted AS MATERIALIZED (
    SELECT name, coalesce((
        SELECT recorded_at FROM {runs} {by:runs_job}
        WHERE namespace = :namespace AND job = name ORDER BY recorded_at DESC LIMIT 1 OFFSET :before_edge), 0) AS edge
    FROM {jobs} WHERE namespace = :namespace AND name {in:jobs})
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM wanted CROSS JOIN {runs} {by:runs_job}
WHERE namespace = :namespace AND job = wanted.name AND recorded_at >= wanted.edge

-- due_jobs --  The jobs of one pool in the order of their instants, one more than asked for: the first that is not due.
SELECT name, version, CASE WHEN due_at <= :now THEN definition END, CASE WHEN due_at <= :now THEN state END, due_at,
       (SELECT min(max(b.due_at, b.blocked_until)) FROM {jobs} b
        WHERE b.namespace = :namespace AND b.blocked_until > :now AND b.due_at IS NOT NULL
          AND b.pool = :pool AND b.handler {in:handlers} AND b.name NOT {in:exclude}),
       :session IS NULL OR EXISTS (SELECT 1 FROM {documents} d WHERE d.namespace = :namespace
        AND d.kind = 'session' AND d.name = :session AND d.state = 'live')
FROM {jobs}
WHERE namespace = :namespace AND pool = :pool AND due_at IS NOT NULL AND handler {in:handlers}
  AND name NOT {in:exclude} AND (blocked_until IS NULL OR blocked_until <= :now)
ORDER BY due_at, name LIMIT :limit + 1

-- nothing_due --  What `due_jobs` says besides, when it finds no job at all.
SELECT (SELECT min(max(due_at, blocked_until)) FROM {jobs}
        WHERE namespace = :namespace AND blocked_until > :now AND due_at IS NOT NULL
          AND pool {in:pools} AND handler {in:handlers} AND name NOT {in:exclude}),
       :session IS NULL OR EXISTS (SELECT 1 FROM {documents} WHERE namespace = :namespace
        AND kind = 'session' AND name = :session AND state = 'live')

-- job_versions --  Which versions these jobs have.
SELECT name, version FROM {jobs} WHERE namespace = :namespace AND name {in:names}

-- document_versions --  Which versions these documents have.
SELECT name, version FROM {documents} WHERE namespace = :namespace AND kind = :kind AND name {in:names}

-- job_added --  A new job; one of that name that came first is left alone.
INSERT INTO {jobs} (pool, handler, definition, due_at, cursor_at, marks, active, state, namespace, name, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (namespace, name) DO NOTHING

-- job_redefined --  A job with a new definition, if it is still the one that was read.
UPDATE {jobs} SET pool = ?, handler = ?, definition = ?, due_at = ?, cursor_at = ?, marks = ?, active = ?, state = ?,
    version = version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = ? AND name = ? AND version = ?

-- job_moved --  A job whose state alone has changed, if it is still the one that was read.
UPDATE {jobs} SET due_at = ?, cursor_at = ?, marks = ?, active = ?, state = ?,
    version = version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = ? AND name = ? AND version = ?

-- job_stayed --  The same where neither instant has changed: naming them would make SQLite write the index anew.
UPDATE {jobs} SET marks = ?, active = ?, state = ?,
    version = version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = ? AND name = ? AND version = ?

-- job_touched --  A job of which only the log changes, if it is still the one that was read.
UPDATE {jobs} SET version = version + 1 WHERE namespace = ? AND name = ? AND version = ?

-- job_removed --  A job goes, if it is still the one that was read.
DELETE FROM {jobs} WHERE namespace = ? AND name = ? AND version = ?

-- document_added --  A new document; one of that name that came first is left alone.
INSERT INTO {documents} (state, expires_at, ended_at, fixed, body, namespace, kind, name, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (namespace, kind, name) DO NOTHING

-- document_changed --  A document as it shall be, if it is still the one that was read.
UPDATE {documents} SET state = ?, expires_at = ?, ended_at = ?, fixed = ?, body = ?,
    version = version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = ? AND kind = ? AND name = ? AND version = ?

-- session_renewed --  A session as it shall be, if it is the one that was read; what the namespace's document bears.
UPDATE {documents} SET state = ?, expires_at = ?, ended_at = ?, fixed = ?, body = ?,
    version = version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = ? AND kind = ? AND name = ? AND version = ?
RETURNING coalesce((SELECT n.body FROM {documents} n
    WHERE n.namespace = {documents}.namespace AND n.kind = 'namespace' AND n.name = 'namespace'), '')

-- document_touched --  A document of which only the log changes, if it is still the one that was read.
UPDATE {documents} SET version = version + 1 WHERE namespace = ? AND kind = ? AND name = ? AND version = ?

-- document_removed --  A document goes, if it is still the one that was read.
DELETE FROM {documents} WHERE namespace = ? AND kind = ? AND name = ? AND version = ?

-- hold_added --  A session holds something.
INSERT INTO {holds} (namespace, session, kind, name) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- hold_removed --  A session no longer holds it.
DELETE FROM {holds} WHERE namespace = ? AND session = ? AND kind = ? AND name = ?

-- record_appended --  A new record; where one of the same run and attempt is there already, it stays.
INSERT INTO {runs} (run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
    claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note, namespace)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, run, attempt) DO NOTHING

-- prune_runs --  The oldest records from before then go.
DELETE FROM {runs} WHERE rowid IN (
    SELECT rowid FROM {runs}
    WHERE namespace = :namespace AND recorded_at < :before
    ORDER BY recorded_at LIMIT :limit)

-- tables --  Whether there is a schema at all.
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'solocron_meta'

-- notify --  Tell those who wait that something has changed.
INSERT INTO {signals} (namespace, count) VALUES (?, 1)
ON CONFLICT (namespace) DO UPDATE SET count = count + 1

-- signals --  How often something has changed.
SELECT count FROM {signals} WHERE namespace = :namespace

-- read_meta --  One of the store's own notes.
SELECT value FROM {meta} WHERE name = :name

-- add_meta --  One of the store's own notes, if nobody has written it yet.
INSERT INTO {meta} (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- swap_meta --  One of the store's own notes, if it still is what was read.
UPDATE {meta} SET value = :value WHERE name = :name AND value = :old
