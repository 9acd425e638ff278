-- The first schema: jobs, the other documents, who holds what, the log. Room on each page for updates in place.

CREATE TABLE IF NOT EXISTS {jobs} (
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    pool TEXT COLLATE "C" NOT NULL,
    handler TEXT COLLATE "C" NOT NULL,
    due_at BIGINT,
    cursor_at BIGINT NOT NULL,
    marks SMALLINT NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    version BIGINT NOT NULL,
    definition TEXT NOT NULL,
    state TEXT NOT NULL,
    blocked_until BIGINT,
    blocked_reason TEXT,
    blocked_times INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX IF NOT EXISTS {jobs_due} ON {jobs} (namespace, pool, due_at, name) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS {jobs_marks} ON {jobs} (namespace, name, marks) WHERE marks > 0;

CREATE INDEX IF NOT EXISTS {jobs_blocked} ON {jobs} (namespace, blocked_until) WHERE blocked_until IS NOT NULL;

CREATE TABLE IF NOT EXISTS {documents} (
    namespace TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    state TEXT,
    expires_at BIGINT,
    ended_at BIGINT,
    version BIGINT NOT NULL,
    fixed TEXT NOT NULL,
    body TEXT NOT NULL,
    blocked_until BIGINT,
    blocked_reason TEXT,
    blocked_times INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, kind, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX IF NOT EXISTS {documents_state} ON {documents} (namespace, kind, state, ended_at) WHERE state IS NOT NULL;

CREATE INDEX IF NOT EXISTS {documents_blocked} ON {documents} (namespace, blocked_until) WHERE blocked_until IS NOT NULL;

CREATE TABLE IF NOT EXISTS {holds} (
    namespace TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, session, kind, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE TABLE IF NOT EXISTS {runs} (
    namespace TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    attempt INTEGER NOT NULL,
    job TEXT COLLATE "C" NOT NULL,
    slot BIGINT NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    run_key TEXT COLLATE "C" NOT NULL,
    recorded_at BIGINT NOT NULL,
    reason TEXT,
    node TEXT,
    session TEXT,
    fence BIGINT NOT NULL,
    claimed_at BIGINT,
    started_at BIGINT,
    finished_at BIGINT,
    error TEXT,
    result TEXT,
    progress TEXT,
    first_slot BIGINT,
    slots BIGINT NOT NULL,
    asked_by TEXT,
    note TEXT,
    PRIMARY KEY (namespace, run, attempt)
);

CREATE INDEX IF NOT EXISTS {runs_recorded} ON {runs} (namespace, recorded_at);

CREATE INDEX IF NOT EXISTS {runs_job} ON {runs} (namespace, job, recorded_at);

CREATE INDEX IF NOT EXISTS {runs_status} ON {runs} (namespace, status, recorded_at) WHERE status <> 'succeeded';
