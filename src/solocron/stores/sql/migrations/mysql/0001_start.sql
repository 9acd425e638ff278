-- The first schema: jobs, the other documents, who holds what, the log. Names are compared byte by byte.

CREATE TABLE IF NOT EXISTS {jobs} (
    namespace VARCHAR(64) NOT NULL,
    name VARCHAR(255) NOT NULL,
    pool VARCHAR(128) NOT NULL,
    handler VARCHAR(255) NOT NULL,
    due_at BIGINT,
    cursor_at BIGINT NOT NULL,
    marks SMALLINT NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    version BIGINT NOT NULL,
    definition MEDIUMTEXT NOT NULL,
    state MEDIUMTEXT NOT NULL,
    blocked_until BIGINT,
    blocked_reason TEXT,
    blocked_times INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, name),
    KEY {jobs_due} (namespace, pool, due_at, name),
    KEY {jobs_marks} (namespace, marks, name),
    KEY {jobs_blocked} (namespace, blocked_until)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE {collation};

CREATE TABLE IF NOT EXISTS {documents} (
    namespace VARCHAR(64) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    name VARCHAR(255) NOT NULL,
    state VARCHAR(16),
    expires_at BIGINT,
    ended_at BIGINT,
    version BIGINT NOT NULL,
    fixed MEDIUMTEXT NOT NULL,
    body MEDIUMTEXT NOT NULL,
    blocked_until BIGINT,
    blocked_reason TEXT,
    blocked_times INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, kind, name),
    KEY {documents_state} (namespace, kind, state, ended_at),
    KEY {documents_blocked} (namespace, blocked_until)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE {collation};

CREATE TABLE IF NOT EXISTS {holds} (
    namespace VARCHAR(64) NOT NULL,
    session VARCHAR(128) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    name VARCHAR(255) NOT NULL,
    PRIMARY KEY (namespace, session, kind, name)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE {collation};

CREATE TABLE IF NOT EXISTS {runs} (
    namespace VARCHAR(64) NOT NULL,
    run VARCHAR(320) NOT NULL,
    attempt INTEGER NOT NULL,
    job VARCHAR(255) NOT NULL,
    slot BIGINT NOT NULL,
    origin VARCHAR(16) NOT NULL,
    status VARCHAR(16) NOT NULL,
    run_key TEXT NOT NULL,
    recorded_at BIGINT NOT NULL,
    reason TEXT,
    node TEXT,
    session VARCHAR(128),
    fence BIGINT NOT NULL,
    claimed_at BIGINT,
    started_at BIGINT,
    finished_at BIGINT,
    error MEDIUMTEXT,
    result MEDIUMTEXT,
    progress MEDIUMTEXT,
    first_slot BIGINT,
    slots BIGINT NOT NULL,
    asked_by TEXT,
    note TEXT,
    PRIMARY KEY (namespace, run, attempt),
    KEY {runs_recorded} (namespace, recorded_at),
    KEY {runs_job} (namespace, job, recorded_at),
    KEY {runs_status} (namespace, status, recorded_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE {collation};

CREATE TABLE IF NOT EXISTS {signals} (
    namespace VARCHAR(64) PRIMARY KEY,
    count BIGINT NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE {collation};
