//! The classes of lanes that have pending tasks.

use redrive_core::{Class, Lane};
use redrive_store::LaneDue;
use rusqlite::{Connection, OptionalExtension};

use crate::codec::time;
use crate::ops::set_aside::{Damaged, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// All lanes in the order of their names, from one on. A lane without pending tasks costs its probe too.
pub(crate) const LANES: &str = "SELECT lanes.id
     FROM tenants CROSS JOIN lanes ON lanes.tenant = tenants.id
     WHERE tenants.name >= ?1 AND (tenants.name > ?1 OR lanes.dependency >= ?2)
     ORDER BY tenants.name, lanes.dependency";

/// The next class of a lane that has pending tasks, and when the first of them is due. Answered from the index alone.
pub(crate) const NEXT_CLASS: &str = "SELECT class, next_attempt_at, id FROM tasks
     WHERE status = 2 AND lane = ?1 AND class > ?2
     ORDER BY class, next_attempt_at
     LIMIT 1";

/// A number below every class.
const NO_CLASS: i64 = -1;

/// Skips along the index of due tasks: one probe per class, whatever its backlog.
pub(crate) fn pending_lanes(
    reader: &mut Reader,
    after: Option<&(Lane, Class)>,
    limit: usize,
    damaged: &mut Vec<Damaged>,
) -> Result<Vec<LaneDue>, SqliteError> {
    let Reader { connection, names } = reader;
    let (tenant, dependency) = after.map_or(("", ""), |(lane, _)| (lane.tenant.as_str(), lane.dependency.as_str()));
    let (mut known, mut class_after) = (None, NO_CLASS);
    if let Some((lane, class)) = after {
        known = names.lane_key(connection, lane)?.map(|key| key.lane);
        class_after = i64::from(class.code());
    }
    let mut select = connection.prepare_cached(LANES)?;
    let mut next_class = connection.prepare_cached(NEXT_CLASS)?;
    let mut rows = select.query((tenant, dependency))?;
    let mut lanes = Vec::new();
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        let mut passed = if known == Some(key) { class_after } else { NO_CLASS };
        while lanes.len() < limit {
            let found = next_class.query_row((key, passed), |row| {
                let code = row.get_ref(0)?.as_i64().ok();
                Ok((code, code.and_then(class), time(row, 1)?, row.get(2)?))
            });
            let Some((code, class, next_due, task)) = found.optional()? else { break };
            let lane = names.lane(connection, key);
            let Some(lane) = readable(lane, damaged, |problem| Damaged::task(task, problem))? else { break };
            match (code, class, next_due) {
                (_, Some(class), Some(due)) => lanes.push(LaneDue { lane, class, next_due: Some(due) }),
                (_, Some(_), None) => damaged.push(Damaged::task(task, "the due time is none")),
                (code, None, _) => damaged.extend(of_class(connection, key, code)?),
            }
            // SQLite orders texts after all numbers, so only texts remain.
            let Some(code) = code else { break };
            passed = code;
        }
        if lanes.len() >= limit {
            break;
        }
    }
    Ok(lanes)
}

fn class(code: i64) -> Option<Class> {
    u8::try_from(code).ok().and_then(Class::from_code)
}

/// The first tasks of a lane in a class that does not exist. The others are found after these are set aside.
fn of_class(connection: &Connection, lane: i64, code: Option<i64>) -> Result<Vec<Damaged>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT id FROM tasks
         WHERE status = 2 AND lane = ?1 AND (class = ?2 OR ?2 IS NULL AND typeof(class) <> 'integer')
         LIMIT 1000",
    )?;
    let problem = || code.map_or("a class that is no number".to_owned(), |code| format!("class {code}"));
    let tasks = select.query_map((lane, code), |row| Ok(Damaged::task(row.get(0)?, problem())))?;
    Ok(tasks.collect::<Result<_, _>>()?)
}
