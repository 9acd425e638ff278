-- What only PostgreSQL says so. A selection to be changed is one statement: lock the rows, then read the clock; a batch
-- is one statement too, put together from the parts that it needs. Rows come as one JSON text: one parameter, one plan.

-- select --  A selection, locked, and then the clock: the last row is read when every lock is held.
WITH locked AS MATERIALIZED ({selection})
SELECT name, version, fixed, state, NULL::bigint, NULL::bigint, NULL::boolean FROM locked
UNION ALL
SELECT NULL, NULL, NULL, NULL, {clock} + :shift + 0 * counted.n, NULL,
       :session::text IS NULL OR EXISTS (SELECT 1 FROM {documents} d
        WHERE d.namespace = :namespace AND d.kind = 'session' AND d.name = :session AND d.state = 'live')
FROM (SELECT count(*) AS n FROM locked) counted

-- due_jobs --  Due documents this node may run, locked; the others' locked ones are passed over. Then clock and next.
WITH locked AS MATERIALIZED (
    SELECT name, version, definition, state, due_at FROM {jobs}
    WHERE namespace = :namespace AND pool {pool_is} AND handler = ANY(:handlers) AND name <> ALL(:exclude)
      AND due_at <= {statement_clock} + :shift
      AND (blocked_until IS NULL OR blocked_until <= {statement_clock} + :shift)
    ORDER BY due_at, name LIMIT :limit FOR UPDATE SKIP LOCKED)
SELECT name, version, definition, state, due_at, NULL::bigint, NULL::boolean FROM locked
UNION ALL
SELECT NULL, NULL, NULL, NULL, {clock} + :shift + 0 * counted.n,
       least((SELECT due_at FROM {jobs}
              WHERE namespace = :namespace AND pool {pool_is} AND handler = ANY(:handlers) AND name <> ALL(:exclude)
                AND due_at IS NOT NULL AND blocked_until IS NULL AND name NOT IN (SELECT name FROM locked)
              ORDER BY due_at, name LIMIT 1),
             (SELECT min(CASE WHEN due_at IS NOT NULL THEN greatest(due_at, blocked_until) END) FROM {jobs}
              WHERE namespace = :namespace AND pool {pool_is} AND handler = ANY(:handlers) AND name <> ALL(:exclude)
                AND blocked_until > 0 AND name NOT IN (SELECT name FROM locked))),
       :session::text IS NULL OR EXISTS (SELECT 1 FROM {documents} d
        WHERE d.namespace = :namespace AND d.kind = 'session' AND d.name = :session AND d.state = 'live')
FROM (SELECT count(*) AS n FROM locked) counted

-- due_now --  Due documents as they are.
SELECT name, version, definition, state FROM {jobs}
WHERE namespace = :namespace AND pool = ANY(:pools) AND handler = ANY(:handlers) AND name <> ALL(:exclude)
  AND due_at <= {statement_clock} + :shift
  AND (blocked_until IS NULL OR blocked_until <= {statement_clock} + :shift)
ORDER BY due_at, name LIMIT :limit

-- who_answers --  Which server this is: its cluster, and the timeline that it writes, which changes with a promotion.
SELECT {identity}

-- clock --  The server's time in microseconds.
SELECT {clock} + :shift

-- job_moved --  Jobs whose state alone has changed, if they are still those that were read.
UPDATE {jobs} j SET due_at = r.due_at, cursor_at = r.cursor_at, marks = r.marks, active = r.active, state = r.state,
    version = j.version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
FROM {rows:job_moved}
WHERE j.namespace = r.namespace AND j.name = r.name AND j.version = r.version

-- job_redefined --  Jobs with a new definition, if they are still those that were read.
UPDATE {jobs} j SET pool = r.pool, handler = r.handler, definition = r.definition, due_at = r.due_at,
    cursor_at = r.cursor_at, marks = r.marks, active = r.active, state = r.state,
    version = j.version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
FROM {rows:job_redefined}
WHERE j.namespace = r.namespace AND j.name = r.name AND j.version = r.version

-- job_added --  New jobs; one of that name that came first is left alone.
INSERT INTO {jobs} (pool, handler, definition, due_at, cursor_at, marks, active, state, namespace, name, version)
SELECT pool, handler, definition, due_at, cursor_at, marks, active, state, namespace, name, version
FROM {rows:job_added}
ON CONFLICT (namespace, name) DO NOTHING

-- job_touched --  Jobs of which only the log changes, if they are still those that were read.
UPDATE {jobs} j SET version = j.version + 1
FROM {rows:job_touched}
WHERE j.namespace = r.namespace AND j.name = r.name AND j.version = r.version

-- job_removed --  Jobs go, if they are still those that were read.
DELETE FROM {jobs} j USING {rows:job_removed}
WHERE j.namespace = r.namespace AND j.name = r.name AND j.version = r.version

-- document_changed --  Documents as they shall be, if they are still those that were read.
UPDATE {documents} d SET state = r.state, expires_at = r.expires_at, ended_at = r.ended_at, fixed = r.fixed,
    body = r.body, version = d.version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
FROM {rows:document_changed}
WHERE d.namespace = r.namespace AND d.kind = r.kind AND d.name = r.name AND d.version = r.version

-- document_added --  New documents; one of that name that came first is left alone.
INSERT INTO {documents} (state, expires_at, ended_at, fixed, body, namespace, kind, name, version)
SELECT state, expires_at, ended_at, fixed, body, namespace, kind, name, version
FROM {rows:document_added}
ON CONFLICT (namespace, kind, name) DO NOTHING

-- document_touched --  Documents of which only the log changes, if they are still those that were read.
UPDATE {documents} d SET version = d.version + 1
FROM {rows:document_touched}
WHERE d.namespace = r.namespace AND d.kind = r.kind AND d.name = r.name AND d.version = r.version

-- document_removed --  Documents go, if they are still those that were read.
DELETE FROM {documents} d
USING {rows:document_removed}
WHERE d.namespace = r.namespace AND d.kind = r.kind AND d.name = r.name AND d.version = r.version

-- record_appended --  New records; where one of the same run and attempt is there already, it stays.
INSERT INTO {runs} (run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
    claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note, namespace)
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
    claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note, namespace
FROM {rows:record_appended}
ON CONFLICT (namespace, run, attempt) DO NOTHING

-- hold_added --  Sessions hold something.
INSERT INTO {holds} (namespace, session, kind, name)
SELECT namespace, session, kind, name
FROM {rows:hold_added}
ON CONFLICT DO NOTHING

-- hold_removed --  Sessions no longer hold it.
DELETE FROM {holds} h USING {rows:hold_removed}
WHERE h.namespace = r.namespace AND h.session = r.session AND h.kind = r.kind AND h.name = r.name

-- all_written --  Raises 2201E unless every row was still the one that was read: the COMMIT behind it must not happen.
SELECT ln((:expected = ({counts}))::integer)

-- time_agrees --  Raises 2201E unless the server's clock has reached our idea of it, and not much more.
SELECT ln(({clock} + :shift BETWEEN :now AND :latest)::integer)

-- session_lives --  Raises 22012 unless the session is live, and keeps it so until the commit.
SELECT 1 / count(*) FROM (
    SELECT 1 FROM {documents}
    WHERE namespace = :namespace AND kind = 'session' AND name = :session AND state = 'live' FOR SHARE
) living

-- session_lived --  The same for a batch that writes that very session: its row is locked by that, and read as it was.
SELECT 1 / count(*) FROM {documents}
WHERE namespace = :namespace AND kind = 'session' AND name = :session AND state = 'live'

-- gate_is_open --  Raises 2201F unless session and namespace are as the node knows them, and this is that server.
SELECT sqrt(-1 + (EXISTS (
    SELECT 1 FROM {documents} s, {documents} n
    WHERE s.namespace = :namespace AND s.kind = 'session' AND s.name = :session
      AND (s.body::json ->> 'beats')::bigint >= :beats
      AND n.namespace = :namespace AND n.kind = 'namespace' AND n.name = 'namespace'
      AND EXISTS (SELECT 1 FROM unnest(:words::text[]) word
          WHERE starts_with((n.body::json -> 'body' ->> 'gate') || ' ', word || ' ' || {identity} || ' ' || :pauses))
))::integer)

-- notify --  Tell those who listen, once it is committed; the sender says who it is, so that it can overhear itself.
SELECT pg_notify(:channel, :sender)

-- session_renewed --  A session as it shall be, if it is the one that we wrote last and our idea of the time is right.
UPDATE {documents} SET state = :state, expires_at = :expires_at, ended_at = :ended_at, fixed = :fixed, body = :body,
    version = version + 1, blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = :namespace AND kind = 'session' AND name = :name AND version = :version
  AND {clock} + :shift BETWEEN :now AND :latest
RETURNING {clock} + :shift,
    EXISTS (SELECT 1 FROM {holds} h WHERE h.namespace = :namespace AND h.session = :name AND h.kind = 'job'),
    (SELECT n.body FROM {documents} n
     WHERE n.namespace = :namespace AND n.kind = 'namespace' AND n.name = 'namespace'),
    {identity}

-- prune_runs --  The oldest records from before then go.
DELETE FROM {runs} WHERE (namespace, run, attempt) IN (
    SELECT namespace, run, attempt FROM {runs}
    WHERE namespace = :namespace AND recorded_at < :before
    ORDER BY recorded_at LIMIT :limit FOR UPDATE SKIP LOCKED)

-- about --  What `doctor` and the start want to know of the server.
SELECT current_setting('server_version_num')::integer, pg_is_in_recovery(), current_setting('transaction_isolation'),
       current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('server_encoding'), current_setting('TimeZone'), {clock},
       CASE WHEN to_regnamespace({schema}::text) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
            ELSE has_schema_privilege({schema}::text, 'CREATE') END

-- connections --  How many clients the server has, and how many it takes. What they do is not ours to see.
SELECT (SELECT count(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL AND datid IS NOT NULL),
       current_setting('max_connections')::integer

-- standbys --  How many standbys follow this server, and which of them a commit waits for.
SELECT count(*), current_setting('synchronous_standby_names') FROM pg_stat_replication

-- here --  Which server this is, which database, and in which schema our tables are.
SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, current_database()::text, n.nspname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(:documents)

-- tables --  Whether there is a schema at all.
SELECT to_regclass(:meta) IS NOT NULL
