//! Checks with the `sqlite3` shell whether a database of Redrive is consistent.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Each statement returns what is wrong; no rows if nothing is.
const QUESTIONS: &str = "
SELECT 'damaged', * FROM pragma_integrity_check WHERE integrity_check <> 'ok';

CREATE TEMP VIEW counted AS SELECT tenant, status, count(*) AS tasks FROM tasks GROUP BY tenant, status;
CREATE TEMP VIEW kept AS SELECT tenant, status, tasks FROM task_counts WHERE tasks <> 0;
SELECT 'counted, not kept', * FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept);
SELECT 'kept, not counted', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted);

CREATE TEMP VIEW used AS
    SELECT policy, count(*) AS kept, sum(status IN (2, 3)) AS live FROM tasks GROUP BY policy;
CREATE TEMP VIEW uses AS SELECT version, kept, live FROM policy_uses WHERE kept <> 0 OR live <> 0;
SELECT 'used, not noted', * FROM (SELECT * FROM used EXCEPT SELECT * FROM uses);
SELECT 'noted, not used', * FROM (SELECT * FROM uses EXCEPT SELECT * FROM used);

SELECT 'task without its request', id FROM tasks WHERE id NOT IN (SELECT task FROM requests);
SELECT 'request without its task', task FROM requests WHERE task NOT IN (SELECT id FROM tasks);
SELECT 'use of a body without its task', task FROM body_uses WHERE task NOT IN (SELECT id FROM tasks);
SELECT 'stored body without its blob', task FROM body_uses
    WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.body = body_uses.body AND NOT blobs.condemned);
SELECT 'stored body that is not noted', task FROM requests
    WHERE typeof(body) = 'text' AND NOT EXISTS (SELECT 1 FROM body_uses WHERE body_uses.task = requests.task);
SELECT 'answer without its task', task FROM answers WHERE task NOT IN (SELECT id FROM tasks);
SELECT 'attempt without its task', task FROM attempts WHERE task NOT IN (SELECT id FROM tasks);
SELECT 'task without a tenant', id FROM tasks WHERE tenant NOT IN (SELECT id FROM tenants);
SELECT 'task without its lane', id FROM tasks WHERE lane NOT IN (SELECT id FROM lanes);
SELECT 'task without its policy', id FROM tasks WHERE policy NOT IN (SELECT id FROM policy_versions);

SELECT 'attempts with a gap', task FROM attempts GROUP BY task
    HAVING min(number) <> 1 OR max(number) <> count(*) OR count(DISTINCT number) <> count(*);
SELECT 'attempts not as many as counted', id, attempt_number FROM tasks
    WHERE attempt_number - (status = 3) <> (SELECT count(*) FROM attempts WHERE task = tasks.id);
SELECT 'pending and never due', id FROM tasks WHERE status = 2 AND next_attempt_at IS NULL;
SELECT 'ended and no time of it, or the reverse', id FROM tasks WHERE (status >= 4) <> (ended_at IS NOT NULL);
SELECT 'to be announced and no dead letter', task FROM unannounced
    WHERE (ended_at, task) NOT IN (SELECT ended_at, id FROM tasks WHERE status IN (5, 6));

SELECT 'key of a task that is not there', task FROM keys WHERE task NOT IN (SELECT id FROM tasks);
SELECT 'task whose key was to be moved', id FROM tasks
    WHERE id <= (SELECT value FROM meta WHERE name = 'keys_complete_up_to') AND id NOT IN (SELECT task FROM keys);
";

/// Fails if the database in a store's directory is damaged or contradicts itself. No process may have it open.
pub fn consistency(directory: &Path) -> anyhow::Result<()> {
    let mut shell = Command::new("sqlite3");
    shell.args(["-batch", "-bail"]).arg(directory.join("redrive.db")).arg(QUESTIONS);
    let output = shell.output().context("running the sqlite3 shell")?;
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "the sqlite3 shell failed: {complained}");
    ensure!(said.trim().is_empty(), "the database contradicts itself: {}", said.trim());
    Ok(())
}
