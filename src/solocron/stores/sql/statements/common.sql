-- What every dialect says alike. Names are compared byte by byte. A statement
-- with the word {lock} exists twice: without it, and as `..._locked`, which locks its rows in the order of names.

-- named_jobs --  Jobs by name.
SELECT name, version, definition AS fixed, state FROM {jobs}
WHERE namespace = :namespace AND name {in:names}
ORDER BY name {lock}

-- held_jobs --  Jobs that name this session as a holder.
SELECT name, version, definition AS fixed, state FROM {jobs}
WHERE namespace = :namespace
  AND name IN (SELECT h.name FROM {holds} h WHERE h.namespace = :namespace AND h.session = :holder AND h.kind = 'job')
ORDER BY name {lock}

-- held_by_any_jobs --  Jobs that any session holds.
SELECT name, version, definition AS fixed, state FROM {jobs}
WHERE namespace = :namespace AND name IN (SELECT h.name FROM {holds} h WHERE h.namespace = :namespace AND h.kind = 'job')
ORDER BY name {lock}

-- all_jobs --  Every job, a page at a time.
SELECT name, version, definition AS fixed, state FROM {jobs}
WHERE namespace = :namespace AND name > :after
ORDER BY name LIMIT :limit {lock}

-- named_documents --  Documents of another kind by name.
SELECT name, version, fixed, body AS state FROM {documents}
WHERE namespace = :namespace AND kind = :kind AND name {in:names}
ORDER BY name {lock}

-- held_documents --  Documents of another kind that name this session as a holder.
SELECT name, version, fixed, body AS state FROM {documents}
WHERE namespace = :namespace AND kind = :kind
  AND name IN (SELECT h.name FROM {holds} h WHERE h.namespace = :namespace AND h.session = :holder AND h.kind = :kind)
ORDER BY name {lock}

-- held_by_any_documents --  Documents of another kind that any session holds.
SELECT name, version, fixed, body AS state FROM {documents}
WHERE namespace = :namespace AND kind = :kind
  AND name IN (SELECT h.name FROM {holds} h WHERE h.namespace = :namespace AND h.kind = :kind)
ORDER BY name {lock}

-- all_documents --  Every document of another kind, a page at a time.
SELECT name, version, fixed, body AS state FROM {documents}
WHERE namespace = :namespace AND kind = :kind AND name > :after
ORDER BY name LIMIT :limit {lock}

-- sessions --  Sessions that are not swept, or ended since then.
SELECT name, version, fixed, body AS state FROM {documents}
WHERE namespace = :namespace AND kind = :kind
  AND (state IN ('live', 'dead') OR (state = 'swept' AND ended_at >= :since))
ORDER BY name {lock}

-- job_names --  Names of jobs, a page at a time.
SELECT name FROM {jobs} WHERE namespace = :namespace AND name > :after ORDER BY name LIMIT :limit

-- marked_jobs --  Names of jobs that bear one of these marks, a page at a time.
SELECT name FROM {jobs}
WHERE namespace = :namespace AND marks > 0 AND marks & :mark <> 0 AND name > :after
ORDER BY name LIMIT :limit

-- count_jobs --  How many jobs there are, then how many bear exactly which marks.
SELECT 0, count(*) FROM {jobs} WHERE namespace = :namespace
UNION ALL
SELECT marks, count(*) FROM {jobs} WHERE namespace = :namespace AND marks > 0 GROUP BY marks

-- due_times --  When jobs are due, the earliest first; the index of what is due has all of it.
SELECT due_at, name FROM {jobs}
WHERE namespace = :namespace AND due_at IS NOT NULL AND due_at < :until AND (due_at, name) > (:after_at, :after)
ORDER BY due_at, name LIMIT :limit

-- document_names --  Names of documents of another kind, a page at a time.
SELECT name FROM {documents} WHERE namespace = :namespace AND kind = :kind AND name > :after ORDER BY name LIMIT :limit

-- holders --  Sessions that hold anything.
SELECT DISTINCT session FROM {holds} WHERE namespace = :namespace

-- namespaces --  Every namespace that holds a document.
SELECT namespace FROM {jobs} GROUP BY namespace UNION SELECT namespace FROM {documents} GROUP BY namespace

-- history --  Records of the log, newest first: of `scan` that are looked at, those that were asked for.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM (SELECT * FROM {runs}
      WHERE namespace = :namespace
        AND recorded_at >= :since AND recorded_at < :until AND recorded_at <= :before_at
        AND (recorded_at, run, attempt) < (:before_at, :before_run, :before_attempt)
      ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :scan) looked_at
WHERE status {in:statuses} AND origin {in:origins}
  AND (CAST(:node AS {text}) IS NULL OR node = :node) AND (CAST(:session AS {text}) IS NULL OR session = :session)
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :limit

-- history_of_job --  The same of one job.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM (SELECT * FROM {runs} {by:runs_job}
      WHERE namespace = :namespace AND job = :job
        AND recorded_at >= :since AND recorded_at < :until AND recorded_at <= :before_at
        AND (recorded_at, run, attempt) < (:before_at, :before_run, :before_attempt)
      ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :scan) looked_at
WHERE status {in:statuses} AND origin {in:origins}
  AND (CAST(:node AS {text}) IS NULL OR node = :node) AND (CAST(:session AS {text}) IS NULL OR session = :session)
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :limit

-- history_of_status --  The same of a status other than succeeded, which has an index.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM (SELECT * FROM {runs} {by:runs_status}
      WHERE namespace = :namespace AND status = :status AND status <> 'succeeded'
        AND recorded_at >= :since AND recorded_at < :until AND recorded_at <= :before_at
        AND (recorded_at, run, attempt) < (:before_at, :before_run, :before_attempt)
      ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :scan) looked_at
WHERE status {in:statuses} AND origin {in:origins}
  AND (CAST(:node AS {text}) IS NULL OR node = :node) AND (CAST(:session AS {text}) IS NULL OR session = :session)
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT :limit

-- end_of_history --  The last record that `history` looked at, if it did not look at all.
SELECT recorded_at, run, attempt FROM {runs}
WHERE namespace = :namespace
  AND recorded_at >= :since AND recorded_at < :until AND recorded_at <= :before_at
  AND (recorded_at, run, attempt) < (:before_at, :before_run, :before_attempt)
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT 1 OFFSET :scan

-- end_of_history_of_job --  The same of one job.
SELECT recorded_at, run, attempt FROM {runs} {by:runs_job}
WHERE namespace = :namespace AND job = :job
  AND recorded_at >= :since AND recorded_at < :until AND recorded_at <= :before_at
  AND (recorded_at, run, attempt) < (:before_at, :before_run, :before_attempt)
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT 1 OFFSET :scan

-- end_of_history_of_status --  The same of a status.
SELECT recorded_at, run, attempt FROM {runs} {by:runs_status}
WHERE namespace = :namespace AND status = :status AND status <> 'succeeded'
  AND recorded_at >= :since AND recorded_at < :until AND recorded_at <= :before_at
  AND (recorded_at, run, attempt) < (:before_at, :before_run, :before_attempt)
ORDER BY recorded_at DESC, run DESC, attempt DESC LIMIT 1 OFFSET :scan

-- newest_of_jobs --  The newest records of some jobs: those since the last one that is wanted, the edge, was recorded.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM (SELECT name, coalesce((
          SELECT recorded_at FROM {runs} {by:runs_job}
          WHERE namespace = :namespace AND job = name ORDER BY recorded_at DESC LIMIT 1 OFFSET :before_edge), 0) AS edge
      FROM {jobs} WHERE namespace = :namespace AND name {in:jobs}) wanted
JOIN {runs} {by:runs_job} ON namespace = :namespace AND job = wanted.name AND recorded_at >= wanted.edge

-- history_of_runs --  Every record of some runs.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM {runs}
WHERE namespace = :namespace AND run {in:runs}

-- history_of_group --  Every record of the shards of a run: their names follow each other in the primary key.
SELECT run, job, attempt, slot, origin, status, run_key, recorded_at, reason, node, session, fence,
       claimed_at, started_at, finished_at, error, result, progress, first_slot, slots, asked_by, note
FROM {runs}
WHERE namespace = :namespace AND run >= :first AND run < :last

-- tally_by_time --  How many records of each status each part of a span has.
SELECT recorded_at - (recorded_at - :since) % :bucket AS part, status, sum(slots) FROM {runs}
WHERE namespace = :namespace AND recorded_at >= :since AND recorded_at < :until
GROUP BY part, status

-- tally_of_job_by_time --  The same of one job.
SELECT recorded_at - (recorded_at - :since) % :bucket AS part, status, sum(slots) FROM {runs} {by:runs_job}
WHERE namespace = :namespace AND job = :job AND recorded_at >= :since AND recorded_at < :until
GROUP BY part, status

-- density --  How many records of each status each node has in each part of a span.
SELECT recorded_at - (recorded_at - :since) % :bucket AS part, node, status, sum(slots) FROM {runs}
WHERE namespace = :namespace AND recorded_at >= :since AND recorded_at < :until
GROUP BY part, node, status

-- prune_sessions --  Swept sessions that ended before then go.
DELETE FROM {documents} WHERE namespace = :namespace AND kind = 'session' AND state = 'swept' AND ended_at < :before

-- blocked --  What is set aside at the moment.
SELECT 'job', name, blocked_until, blocked_reason, blocked_times FROM {jobs}
WHERE namespace = :namespace AND blocked_until > :now
UNION ALL
SELECT kind, name, blocked_until, blocked_reason, blocked_times FROM {documents}
WHERE namespace = :namespace AND blocked_until > :now

-- set_job_aside --  A job that fails on its own is kept out of the way, longer each time; nothing else of it changes.
UPDATE {jobs} SET blocked_until = :until, blocked_reason = :reason, blocked_times = :times
WHERE namespace = :namespace AND name = :name

-- set_document_aside --  The same for another kind.
UPDATE {documents} SET blocked_until = :until, blocked_reason = :reason, blocked_times = :times
WHERE namespace = :namespace AND kind = :kind AND name = :name

-- job_aside_before --  How often a job has been set aside.
SELECT blocked_times FROM {jobs} WHERE namespace = :namespace AND name = :name

-- document_aside_before --  The same for another kind.
SELECT blocked_times FROM {documents} WHERE namespace = :namespace AND kind = :kind AND name = :name

-- unblock_job --  A job that was set aside takes part again.
UPDATE {jobs} SET blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = :namespace AND name = :name AND blocked_until IS NOT NULL

-- unblock_document --  The same for another kind.
UPDATE {documents} SET blocked_until = NULL, blocked_reason = NULL, blocked_times = 0
WHERE namespace = :namespace AND kind = :kind AND name = :name AND blocked_until IS NOT NULL

-- session_is_live --  Whether a session is not buried, and stays so until the commit; what a gate is compared with.
SELECT s.body, (SELECT n.body FROM {documents} n WHERE n.namespace = :namespace AND n.kind = 'namespace'
                AND n.name = 'namespace'), {identity}
FROM {documents} s
WHERE s.namespace = :namespace AND s.kind = 'session' AND s.name = :session AND s.state = 'live' {share}

-- namespace --  The state of the namespace's document, empty where there is none, and which server says so.
SELECT coalesce((SELECT n.body FROM {documents} n
    WHERE n.namespace = :namespace AND n.kind = 'namespace' AND n.name = 'namespace'), ''), {identity}

-- schema_version --  Up to which number the migrations have been applied, and which code may work with it.
SELECT name, value FROM {meta} WHERE name IN ('schema', 'compatible')
