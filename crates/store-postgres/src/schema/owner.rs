//! The owner of what a migration changes and adds.
//!
//! Everything belongs to one role, the owner of the tables: that role's default privileges apply to what is added, and
//! that role can change it the next time. Versions of this program exist that left what they added to the role that
//! migrated, such as a superuser. The owner cannot change these objects, so they are given to it first.

use std::collections::BTreeSet;

use tokio_postgres::types::Type;

use super::{BEGINNING, VERSIONS};
use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The owner of the tables, or of a schema without tables; whether that is the session's role; and whether the session
/// may act as it and give objects to it. (What `pg_has_role` calls the first right has changed in version 16.)
const OWNER: &str = "
WITH owner AS (
    SELECT coalesce(
        (
            SELECT relowner FROM pg_catalog.pg_class
            WHERE relnamespace = pg_namespace.oid AND relname = 'schema_versions' AND relkind = 'r'
        ),
        nspowner
    ) AS role
    FROM pg_catalog.pg_namespace
    WHERE nspname = 'redrive'
)
SELECT quote_ident(pg_get_userbyid(role)),
       pg_get_userbyid(role) = current_user,
       pg_has_role(role, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
FROM owner";

/// The objects with these names that do not belong to this role, and whether the session may give them away. What
/// follows the owner of a table is not among them: its indexes, its row type, the sequences of its columns.
const STRAYS: &str = "
WITH found AS (
    SELECT CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
           relname AS name, pg_class.oid::regclass::text AS address, relowner AS owner, relnamespace AS schema
    FROM pg_catalog.pg_class
    WHERE relkind IN ('r', 'p', 'v', 'S')
      AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_depend
          WHERE classid = 'pg_catalog.pg_class'::regclass AND objid = pg_class.oid
            AND relkind = 'S' AND deptype IN ('a', 'i')
      )
    UNION ALL
    SELECT 'FUNCTION', proname, oid::regprocedure::text, proowner, pronamespace
    FROM pg_catalog.pg_proc
    WHERE prokind = 'f'
    UNION ALL
    SELECT 'TYPE', typname, pg_type.oid::regtype::text, typowner, typnamespace
    FROM pg_catalog.pg_type
    LEFT JOIN pg_catalog.pg_class ON pg_class.oid = typrelid
    WHERE typtype IN ('d', 'e') OR typtype = 'c' AND relkind = 'c'
)
SELECT kind, address, quote_ident(pg_get_userbyid(owner)), pg_has_role(owner, 'USAGE')
FROM found
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = schema
WHERE nspname = 'redrive' AND name = ANY ($1) AND quote_ident(pg_get_userbyid(owner)) <> $2
ORDER BY kind DESC, address";

/// How many objects an error names.
const MOST_NAMED: usize = 3;

/// An object that does not belong to the owner.
#[derive(Debug)]
struct Stray {
    kind: String,
    address: String,
    owner: String,
    may_be_given: bool,
}

/// Objects that do not belong to the owner, and that the session's role may not give to it.
#[derive(Debug)]
pub(super) struct Strays {
    owner: String,
    found: Vec<Stray>,
}

/// Gives what Redrive made to the owner, and acts as the owner until the transaction ends. Where the session's role
/// may not, nothing is changed: the migration may still succeed, as it may not touch what belongs to other roles.
pub(super) async fn act_as_owner(connection: &Connection) -> Result<Option<Strays>, PostgresError> {
    let rows = connection.query(OWNER, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut cells = Cells::of(row);
    let (owner, is_session, may_act): (String, bool, bool) = (cells.get()?, cells.get()?, cells.get()?);
    let found = strays(connection, &owner).await?;
    if !found.is_empty() {
        if !may_act || found.iter().any(|stray| !stray.may_be_given) {
            return Ok(Some(Strays { owner, found }));
        }
        give(connection, &found, &owner).await?;
    }
    if may_act && !is_session {
        connection.execute(&format!("SET LOCAL ROLE {owner}")).await?;
    }
    Ok(None)
}

async fn strays(connection: &Connection, owner: &str) -> Result<Vec<Stray>, PostgresError> {
    let names: Vec<_> = own_names().into_iter().collect();
    let rows = connection.query(STRAYS, &[(&names, Type::TEXT_ARRAY), (&owner, Type::TEXT)]).await?;
    let stray = |row| {
        let mut cells = Cells::of(row);
        Ok(Stray { kind: cells.get()?, address: cells.get()?, owner: cells.get()?, may_be_given: cells.get()? })
    };
    rows.iter().map(stray).collect()
}

async fn give(connection: &Connection, strays: &[Stray], owner: &str) -> Result<(), PostgresError> {
    // This locks tables: calls of other processes must not queue up behind it.
    connection.execute("SET LOCAL lock_timeout = '2s'").await?;
    for Stray { kind, address, owner: previous, .. } in strays {
        tracing::info!(object = address, previous, owner, "giving an object of the schema to the schema's owner");
        connection.execute(&format!("ALTER {kind} {address} OWNER TO {owner}")).await?;
    }
    connection.execute("SET LOCAL lock_timeout = 0").await
}

/// What migrations make or change. Objects of other names in the schema are not Redrive's.
fn own_names() -> BTreeSet<&'static str> {
    let texts = VERSIONS.iter().map(|version| version.sql).chain([BEGINNING]);
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    texts
        .flat_map(|text| text.split("redrive.").skip(1))
        .map(|behind| behind.split(|c| !is_in_name(c)).next().unwrap_or_default())
        .collect()
}

impl Strays {
    /// The error for a failed migration: a missing right is explained by these objects.
    pub(super) fn explain(self, failure: PostgresError) -> PostgresError {
        if !failure.is_missing_right() {
            return failure;
        }
        let Strays { owner, found } = self;
        let name = |stray: &Stray| format!("{} {} ({})", stray.kind.to_lowercase(), stray.address, stray.owner);
        let mut names: Vec<_> = found.iter().take(MOST_NAMED).map(name).collect();
        if found.len() > MOST_NAMED {
            names.push(format!("{} more", found.len() - MOST_NAMED));
        }
        PostgresError::OtherOwners {
            failure: Box::new(failure),
            advice: format!(
                "these do not belong to {owner}, the owner of the schema's tables: {}; run `redrive migrate` once as a \
                 superuser, or as a member of all these roles, which gives them to {owner}",
                names.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_migrations_make_is_redrives_own() {
        let names = own_names();
        for name in
            ["schema_versions", "live", "le64", "enqueue", "reservation", "shared_guard_versions", "task_overview"]
        {
            assert!(names.contains(name), "{name}");
        }
        assert!(!names.contains("reports"), "{names:?}");
    }
}
