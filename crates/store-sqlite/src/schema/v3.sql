-- Version 3: large bodies are objects of their own.

-- A body that is stored elsewhere is a text in place of the bytes (`requests.body`, `answers.body`): its hash, its length
-- and which copy of that content it is, as in `sha256:… 1048576 9c0f…`. Rows of older versions have none.

-- The stored objects, and those that are to be deleted.
CREATE TABLE blobs (
    tenant     INTEGER NOT NULL,
    body       TEXT NOT NULL,
    adopted_at INTEGER NOT NULL,
    condemned  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, body)
) WITHOUT ROWID;

-- Which tasks refer to them, and with what: 'request' or 'answer'. Written only with a stored body.
CREATE TABLE body_uses (
    task INTEGER NOT NULL,
    part TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, part)
) WITHOUT ROWID;

CREATE INDEX body_uses_by_body ON body_uses (body);
