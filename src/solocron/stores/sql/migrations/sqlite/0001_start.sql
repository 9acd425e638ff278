-- The first schema: jobs, the other documents, who holds what, the log.

CREATE TABLE IF NOT EXISTS {jobs} (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    pool TEXT NOT NULL,
    handler TEXT NOT NULL,
    due_at INTEGER,
    cursor_at INTEGER NOT NULL,
    marks INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL,
    state TEXT NOT NULL,
    blocked_until INTEGER,
    blocked_reason TEXT,
    blocked_times INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
);

CREATE INDEX IF NOT EXISTS {jobs_due} ON {jobs} (namespace, pool, due_at, name) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS {jobs_marks} ON {jobs} (namespace, name, marks) WHERE marks > 0;

CREATE INDEX IF NOT EXISTS {jobs_blocked} ON {jobs} (namespace, blocked_until) WHERE blocked_until IS NOT NULL;

CREATE TABLE IF NOT EXISTS {documents} (
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT,
    expires_at INTEGER,
    ended_at INTEGER,
    version INTEGER NOT NULL,
    fixed TEXT NOT NULL,
    body TEXT NOT NULL,
    blocked_until INTEGER,
    blocked_reason TEXT,
    blocked_times INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, kind, name)
);

CREATE INDEX IF NOT EXISTS {documents_state} ON {documents} (namespace, kind, state, ended_at) WHERE state IS NOT NULL;

CREATE INDEX IF NOT EXISTS {documents_blocked} ON {documents} (namespace, blocked_until) WHERE blocked_until IS NOT NULL;

CREATE TABLE IF NOT EXISTS {holds} (
    namespace TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (namespace, session, kind, name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {runs} (
    namespace TEXT NOT NULL,
    run TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    job TEXT NOT NULL,
    slot INTEGER NOT NULL,
    origin TEXT NOT NULL,
    status TEXT NOT NULL,
    run_key TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    reason TEXT,
    node TEXT,
    session TEXT,
    fence INTEGER NOT NULL,
    claimed_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    error TEXT,
    result TEXT,
    progress TEXT,
    first_slot INTEGER,
    slots INTEGER NOT NULL,
    asked_by TEXT,
    note TEXT,
    UNIQUE (namespace, run, attempt)
);

CREATE INDEX IF NOT EXISTS {runs_recorded} ON {runs} (namespace, recorded_at);

CREATE INDEX IF NOT EXISTS {runs_job} ON {runs} (namespace, job, recorded_at);

CREATE INDEX IF NOT EXISTS {runs_status} ON {runs} (namespace, status, recorded_at) WHERE status <> 'succeeded';

CREATE TABLE IF NOT EXISTS {signals} (
    namespace TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) WITHOUT ROWID;
