-- Version 4: a node says how far its machine's clock is off, and rows that a program cannot understand are set aside.
ALTER TABLE redrive.nodes ADD COLUMN clock_ahead_ms bigint NOT NULL DEFAULT 0;

-- Rows that a program could not understand, or that PostgreSQL refused to change. `kind` says what `name` is: the id of a
-- 'task', the number and the name of a 'policy version', the record of a 'blob'.
--
-- A task that has not ended is hidden: in `live` it has a lease without a beginning that never ends, so neither claims nor
-- the search for expired leases find it, also those of programs of the version before. The lease that it had, if any, is
-- kept here, and is given back when the row is taken back. A dead letter counts as announced until then.
CREATE TABLE redrive.set_aside (
    kind            text COLLATE "C" NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    problem         text NOT NULL,
    is_refused      boolean NOT NULL DEFAULT false,
    node            text COLLATE "C" NOT NULL,
    set_aside_at    timestamptz NOT NULL DEFAULT now(),
    was_lease_since bigint,
    was_lease_until bigint,
    was_node        text COLLATE "C",
    was_unannounced boolean NOT NULL DEFAULT false,
    PRIMARY KEY (kind, tenant, name)
);
