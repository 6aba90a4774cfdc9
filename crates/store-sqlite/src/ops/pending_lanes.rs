//! The lanes that have work waiting.

use redrive_core::Lane;
use redrive_store::LaneDue;

use crate::failure::Failure;
use crate::ops::claim::earliest;
use crate::readers::Reader;

/// All lanes in order. The names have the order that is asked for, so a lane without work costs its probe too.
pub(crate) const LANES: &str = "SELECT lanes.id
     FROM tenants CROSS JOIN lanes ON lanes.tenant = tenants.id
     WHERE tenants.name >= ?1 AND (tenants.name > ?1 OR lanes.dependency > ?2)
     ORDER BY tenants.name, lanes.dependency";

/// One probe of the index of due tasks per lane, whatever its backlog.
pub(crate) fn pending_lanes(reader: &mut Reader, after: Option<&Lane>, limit: usize) -> Result<Vec<LaneDue>, Failure> {
    let Reader { connection, names } = reader;
    let (tenant, dependency) = after.map_or(("", ""), |lane| (lane.tenant.as_str(), lane.dependency.as_str()));
    let mut select = connection.prepare_cached(LANES)?;
    let mut rows = select.query((tenant, dependency))?;
    let mut lanes = Vec::new();
    while lanes.len() < limit {
        let Some(row) = rows.next()? else { break };
        let key = row.get(0)?;
        if let Some(due) = earliest(connection, key)? {
            lanes.push(LaneDue { lane: names.lane(connection, key)?, next_due: Some(due) });
        }
    }
    Ok(lanes)
}
