-- What only MySQL and MariaDB say so. A batch is one statement, whatever its size: {rows} and {values} are its rows,
-- as a derived table (faster than JSON_TABLE by half) or as the list of an INSERT.

-- due_jobs --  Due documents of one pool; locked, rows that other clients have locked are passed over.
SELECT name, version, definition, state, due_at FROM {jobs} FORCE INDEX ({jobs_due})
WHERE namespace = :namespace AND pool = :pool AND due_at <= {statement_clock} + :shift AND handler {in:handlers}
  AND name NOT {in:exclude} AND (blocked_until IS NULL OR blocked_until <= {statement_clock} + :shift)
ORDER BY due_at, name LIMIT :limit {lock:skip_locked}

-- newest_of_job --  The newest records of one job; those of several are one statement, a UNION of these.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM {runs} FORCE INDEX ({runs_job}) WHERE namespace = :namespace AND job = :job
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :limit

-- after_locks --  The time, read when every lock is held, and whether the session lives.
SELECT {clock} + :shift, :session IS NULL OR EXISTS (
    SELECT 1 FROM {documents}
    WHERE namespace = :namespace AND kind = 'session' AND name = :session AND state = 'live')

-- after_due --  The same, and the earliest instant at which something else in this pool can be selected.
SELECT {clock} + :shift, :session IS NULL OR EXISTS (
    SELECT 1 FROM {documents}
    WHERE namespace = :namespace AND kind = 'session' AND name = :session AND state = 'live'),
    (SELECT due_at FROM {jobs} FORCE INDEX ({jobs_due})
     WHERE namespace = :namespace AND pool = :pool AND due_at IS NOT NULL AND handler {in:handlers}
       AND name NOT {in:exclude} AND blocked_until IS NULL
     ORDER BY due_at, name LIMIT 1),
    (SELECT min(greatest(due_at, blocked_until)) FROM {jobs}
     WHERE namespace = :namespace AND blocked_until IS NOT NULL AND pool = :pool AND due_at IS NOT NULL
       AND handler {in:handlers} AND name NOT {in:exclude})

-- who_answers --  Which server this is.
SELECT {identity}

-- clock --  The server's time in microseconds.
SELECT {clock} + :shift

-- job_moved --  Jobs whose state alone has changed, if they are still those that were read.
UPDATE {jobs} j JOIN {rows} ON j.namespace = r.namespace AND j.name = r.name
SET j.due_at = r.due_at, j.cursor_at = r.cursor_at, j.marks = r.marks, j.active = r.active, j.state = r.state,
    j.version = j.version + 1, j.blocked_until = NULL, j.blocked_reason = NULL, j.blocked_times = 0
WHERE j.version = r.version

-- job_redefined --  Jobs with a new definition, if they are still those that were read.
UPDATE {jobs} j JOIN {rows} ON j.namespace = r.namespace AND j.name = r.name
SET j.pool = r.pool, j.handler = r.handler, j.definition = r.definition, j.due_at = r.due_at,
    j.cursor_at = r.cursor_at, j.marks = r.marks, j.active = r.active, j.state = r.state,
    j.version = j.version + 1, j.blocked_until = NULL, j.blocked_reason = NULL, j.blocked_times = 0
WHERE j.version = r.version

-- job_added --  New jobs; one of that name that came first refuses the batch.
INSERT INTO {jobs} (pool, handler, definition, due_at, cursor_at, marks, active, state, namespace, name, version)
VALUES {values}

-- job_touched --  Jobs of which only the log changes, if they are still those that were read.
UPDATE {jobs} j JOIN {rows} ON j.namespace = r.namespace AND j.name = r.name
SET j.version = j.version + 1
WHERE j.version = r.version

-- job_removed --  Jobs go, if they are still those that were read.
DELETE j FROM {jobs} j JOIN {rows} ON j.namespace = r.namespace AND j.name = r.name
WHERE j.version = r.version

-- document_changed --  Documents as they shall be, if they are still those that were read.
UPDATE {documents} d JOIN {rows}
ON d.namespace = r.namespace AND d.kind = r.kind AND d.name = r.name
SET d.state = r.state, d.expires_at = r.expires_at, d.ended_at = r.ended_at, d.fixed = r.fixed, d.body = r.body,
    d.version = d.version + 1, d.blocked_until = NULL, d.blocked_reason = NULL, d.blocked_times = 0
WHERE d.version = r.version

-- document_added --  New documents; one of that name that came first refuses the batch.
INSERT INTO {documents} (state, expires_at, ended_at, fixed, body, namespace, kind, name, version)
VALUES {values}

-- document_touched --  Documents of which only the log changes, if they are still those that were read.
UPDATE {documents} d JOIN {rows}
ON d.namespace = r.namespace AND d.kind = r.kind AND d.name = r.name
SET d.version = d.version + 1
WHERE d.version = r.version

-- document_removed --  Documents go, if they are still those that were read.
DELETE d FROM {documents} d JOIN {rows}
ON d.namespace = r.namespace AND d.kind = r.kind AND d.name = r.name
WHERE d.version = r.version

-- record_appended --  New records; where one of the same run and attempt is there already, it stays.
-- FOUND_ROWS counts such a row as well: the answer carries the number 1 if there is any.
INSERT INTO {runs} (run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
    claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note, namespace)
VALUES {values} ON DUPLICATE KEY UPDATE {runs}.attempt = {runs}.attempt + 0 * LAST_INSERT_ID(1)

-- hold_added --  Sessions hold something.
INSERT INTO {holds} (namespace, session, kind, name)
VALUES {values} ON DUPLICATE KEY UPDATE kind = VALUES(kind)

-- hold_removed --  Sessions no longer hold it.
DELETE h FROM {holds} h JOIN {rows}
ON h.namespace = r.namespace AND h.session = r.session AND h.kind = r.kind AND h.name = r.name

-- session_renewed --  A session as it shall be, if it is the one that we wrote last and our idea of the time is right.
UPDATE {documents} SET state = :state, expires_at = :expires_at, ended_at = :ended_at, fixed = :fixed, body = :body,
    -- An UPDATE has no RETURNING here, but its answer carries this number: four times the time, plus 2 if the
    -- namespace is as it was known, plus 1 if the session holds a job.
    version = version + 1 + 0 * LAST_INSERT_ID(4 * ({clock} + :shift)
        + 2 * (:known_server = {identity} AND :known_body = coalesce((SELECT n.body FROM (
            SELECT body FROM {documents} WHERE namespace = :namespace AND kind = 'namespace' AND name = 'namespace'
            LIMIT 1) n), ''))
        + EXISTS (
            SELECT 1 FROM {holds} h WHERE h.namespace = :namespace AND h.session = :name AND h.kind = 'job')),
    blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = :namespace AND kind = 'session' AND name = :name AND version = :version
  AND {clock} + :shift BETWEEN :now AND :latest

-- prune_runs --  The oldest records from before then go.
DELETE FROM {runs}
WHERE namespace = :namespace AND recorded_at < :before
ORDER BY recorded_at LIMIT :limit

-- notify --  Tell those who wait that something has changed.
INSERT INTO {signals} (namespace, count) VALUES (:namespace, 1) ON DUPLICATE KEY UPDATE count = count + 1

-- signals --  How often something has changed, and whether a transaction of the user's has left requests.
SELECT (SELECT count FROM {signals} WHERE namespace = :namespace),
       EXISTS (SELECT 1 FROM {documents} WHERE namespace = :namespace AND kind = 'request')

-- here --  A named lock that nobody else can know, and who holds it.
SELECT get_lock(:lock, 0), connection_id()

-- tables --  Whether there is a schema at all.
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = :meta

-- settings --  What `doctor` and the start want to know of the server.
SHOW VARIABLES WHERE Variable_name IN ('version', 'read_only', 'super_read_only', 'innodb_read_only', 'wsrep_on',
    'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_doublewrite', 'sql_mode', 'time_zone',
    'tx_isolation', 'transaction_isolation', 'character_set_connection', 'have_ssl', 'default_storage_engine', 'max_connections')

-- collations --  How names are compared in our tables.
SELECT table_name, table_collation FROM information_schema.tables
WHERE table_schema = database() AND table_name IN (:jobs, :documents, :runs)

-- migrating --  Wait until nobody else changes the schema.
SELECT get_lock(:lock, :seconds)

-- migrated --  Let the next one look.
SELECT release_lock(:lock)

-- connections --  How many clients the server has.
SHOW GLOBAL STATUS LIKE 'Threads_connected'

-- encrypted --  Whether this connection is.
SHOW SESSION STATUS LIKE 'Ssl_cipher'

-- grants --  What this user may do.
SHOW GRANTS
