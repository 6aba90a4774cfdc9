-- Version 6: the guards that all nodes share: a versioned state for each lane and for each origin.
--
-- Rows are updated often, so a page has room for new versions of its rows, and no index has a column that usually
-- changes: PostgreSQL then updates a row within its page, without touching an index. So there is no index on expires_at:
-- the table has few rows, and a search for expired ones may read all of them.
--
-- `guard_tallies` and `guard_holds` of version 1 are not used any more. They stay until a later version, because a program
-- of version 5 with a schedule in Redis reads `guard_holds` during a rolling upgrade.
CREATE TABLE redrive.shared_guards (
    tenant     text COLLATE "C" NOT NULL,
    scope      smallint NOT NULL, -- 0: lane, 1: origin
    name       text COLLATE "C" NOT NULL, -- the lane's dependency, or the origin
    version    bigint NOT NULL CHECK (version > 0),
    state      text NOT NULL,
    is_closed  boolean NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, scope, name)
) WITH (fillfactor = 50);

-- The lanes whose breaker is not closed.
CREATE INDEX shared_guards_not_closed ON redrive.shared_guards (tenant, name) WHERE scope = 0 AND NOT is_closed;

-- Versions of all rows. A row that was deleted and made again does not get an earlier version again.
CREATE SEQUENCE redrive.shared_guard_versions;
