-- Version 5: what a program cannot understand is set aside instead of holding up everything else.

-- `kind` and `row` say which row: 'task' and its id, 'policy version' and its id, 'blob' and its record. A task that is set
-- aside has status 1, so that it is in no index; `was` is its own status, for the program that understands it.
CREATE TABLE set_aside (
    kind    TEXT NOT NULL,
    row     TEXT NOT NULL,
    was     INTEGER,
    problem TEXT NOT NULL,
    PRIMARY KEY (kind, row)
) WITHOUT ROWID;
