//! The classes of lanes that have work waiting.

use redrive_core::{Class, Lane};
use redrive_store::LaneDue;
use rusqlite::OptionalExtension;

use crate::codec::timestamp;
use crate::failure::Failure;
use crate::readers::Reader;

/// All lanes in order, from one on. The names have the order that is asked for, so a lane without work costs its probe
/// too.
pub(crate) const LANES: &str = "SELECT lanes.id
     FROM tenants CROSS JOIN lanes ON lanes.tenant = tenants.id
     WHERE tenants.name >= ?1 AND (tenants.name > ?1 OR lanes.dependency >= ?2)
     ORDER BY tenants.name, lanes.dependency";

/// The next class of a lane that has pending tasks, and when the first of them is due. Answered from the index alone.
pub(crate) const NEXT_CLASS: &str = "SELECT class, next_attempt_at FROM tasks
     WHERE status = 2 AND lane = ?1 AND class > ?2
     ORDER BY class, next_attempt_at
     LIMIT 1";

/// Below every class.
const NO_CLASS: i64 = -1;

/// Skips along the index of due tasks: one probe per class, whatever its backlog.
pub(crate) fn pending_lanes(
    reader: &mut Reader,
    after: Option<&(Lane, Class)>,
    limit: usize,
) -> Result<Vec<LaneDue>, Failure> {
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
            let found = next_class.query_row((key, passed), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((code, due)) = found else { break };
            let place = format_args!("a pending task of lane {key}");
            let class = u8::try_from(code).ok().and_then(Class::from_code);
            let class = class.ok_or_else(|| Failure::corrupt(place, format_args!("class {code}")))?;
            lanes.push(LaneDue { lane: names.lane(connection, key)?, class, next_due: timestamp(due) });
            passed = code;
        }
        if lanes.len() >= limit {
            break;
        }
    }
    Ok(lanes)
}
