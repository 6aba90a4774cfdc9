-- Version 2: due work by class, deadlines of waiting tasks, and what a claim must know of a task's attempts.
--
-- The tables are locked only once no other transaction uses them: the first statement gives up after two seconds, so that
-- calls of other processes do not queue up behind it, and the whole step is tried again. From then on other processes wait
-- until the commit: about 10 seconds for each million tasks that have not ended. `log` and `tasks` are not read.
SET LOCAL lock_timeout = '2s';
LOCK TABLE redrive.live, redrive.log IN ACCESS EXCLUSIVE MODE;

-- `class`: 0 first attempts, 1 retries; others may come. `max_attempts` is that of the task; where it is NULL (written
-- by `enqueue`, or by a process of the version before), it is looked up in `tasks`. Columns come last, and each has a
-- default: processes of the version before insert rows without them.
ALTER TABLE redrive.live
    ADD COLUMN class        smallint NOT NULL DEFAULT 0,
    ADD COLUMN dns_failures bigint NOT NULL DEFAULT 0,
    ADD COLUMN max_attempts bigint;
-- `dns_failures`: those of the run that ended; NULL means none. `number_in_run`: NULL means the same as `number`, in
-- lines of the version before. A line with a `number` below zero is an end that no claim led to.
ALTER TABLE redrive.log
    ADD COLUMN dns_failures  bigint,
    ADD COLUMN number_in_run bigint;

-- What waits after an attempt is a retry. The table is written anew, which takes less time than an update of many rows and
-- leaves no dead ones.
DROP INDEX redrive.live_due;
ALTER TABLE redrive.live
    ALTER COLUMN class TYPE smallint USING (lease_until IS NULL AND attempt_number > attempts_before)::int;
CREATE INDEX live_due ON redrive.live (tenant, dependency, class, due_at, id) WHERE lease_until IS NULL;
CREATE INDEX live_deadline ON redrive.live (deadline_at, id) WHERE lease_until IS NULL;

-- A process of the version before does not know of classes. A retry that it writes gets its class here. What this version
-- writes has its class already, and does not get as far as the function.
CREATE FUNCTION redrive.class_of_retry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.class := 1;
    RETURN NEW;
END
$$;
CREATE TRIGGER live_class BEFORE UPDATE ON redrive.live FOR EACH ROW
WHEN (NEW.lease_until IS NULL AND NEW.class = 0 AND NEW.attempt_number > NEW.attempts_before)
EXECUTE FUNCTION redrive.class_of_retry();
