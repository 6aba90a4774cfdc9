-- Version 6: the guards of lanes.

-- What is kept of a lane's guards across a restart. Written together with other changes, by lanes whose guards have
-- something to keep.
CREATE TABLE guard_states (
    tenant     TEXT NOT NULL,
    dependency TEXT NOT NULL,
    state      TEXT NOT NULL,
    PRIMARY KEY (tenant, dependency)
) WITHOUT ROWID;

-- What operators have set for a lane: a pause, a breaker that is held open, limits.
CREATE TABLE lane_controls (
    tenant     TEXT NOT NULL,
    dependency TEXT NOT NULL,
    controls   TEXT NOT NULL,
    PRIMARY KEY (tenant, dependency)
) WITHOUT ROWID;
