-- Version 4: due work is found by lane, class and time, and overdue work by its deadline.

-- The class is the queue of its lane that a task waits in: 0 before the first attempt of a run, 1 before a later one. It
-- is a number of its own, and not worked out from the attempts, so that there is room for priorities. It means something
-- only while the task is pending. New rows take the default, so that only a retry or a replay writes it.
ALTER TABLE tasks ADD COLUMN class INTEGER NOT NULL DEFAULT 0;

-- Attempts of this run that failed by DNS. New rows take the default.
ALTER TABLE tasks ADD COLUMN dns_failures INTEGER NOT NULL DEFAULT 0;

UPDATE tasks INDEXED BY tasks_due SET class = 1 WHERE status = 2 AND attempt_number > attempts_before;

-- Both hold pending tasks only: a task that is submitted as claimed and succeeds is never in them.
DROP INDEX tasks_due;
CREATE INDEX tasks_due ON tasks (lane, class, next_attempt_at) WHERE status = 2;
CREATE INDEX tasks_deadline ON tasks (deadline_at) WHERE status = 2;

-- The number of the attempt within its run. NULL in rows that were written before: the same as `number`.
ALTER TABLE attempts ADD COLUMN number_in_run INTEGER;
