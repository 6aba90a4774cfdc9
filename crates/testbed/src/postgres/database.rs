//! A private database on a PostgreSQL server.

use super::admin;

/// An empty, private database.
#[derive(Debug)]
pub struct Database {
    url: String,
    name: String,
    /// The server on which to drop it, if it is to be dropped before its server ends.
    drop_at: Option<String>,
}

impl Database {
    /// Creates a database on the server of `admin_url`.
    pub(super) fn create(admin_url: &str) -> Self {
        let name = format!("redrive_{}_{:016x}", std::process::id(), fastrand::u64(..));
        // template0 accepts no connections, so there are none to wait for: that is several times faster.
        let statement = format!("CREATE DATABASE {name} TEMPLATE template0");
        if let Err(error) = admin::execute(admin_url, &statement) {
            panic!("making a database at {admin_url}: {error}");
        }
        Database { url: with_database(admin_url, &name), name, drop_at: None }
    }

    /// Creates a database that is dropped with this value.
    pub(super) fn create_temporary(admin_url: &str) -> Self {
        let mut database = Database::create(admin_url);
        database.drop_at = Some(admin_url.to_owned());
        database
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(admin_url) = self.drop_at.take() else { return };
        if let Err(error) = admin::execute(&admin_url, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)) {
            eprintln!("the database {} is left behind: {error}", self.name);
        }
    }
}

/// `url` with another database, and with the parameters that it had.
fn with_database(url: &str, name: &str) -> String {
    let (base, parameters) = url.split_once('?').map_or((url, None), |(base, rest)| (base, Some(rest)));
    let authority = base.find("://").map_or(0, |at| at + 3);
    let end = base[authority..].find('/').map_or(base.len(), |at| authority + at);
    let parameters = parameters.map_or_else(String::new, |parameters| format!("?{parameters}"));
    format!("{}/{name}{parameters}", &base[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced() {
        for (url, expected) in [
            ("postgres://a@127.0.0.1:5/postgres", "postgres://a@127.0.0.1:5/new"),
            ("postgres://a:b@host", "postgres://a:b@host/new"),
            ("postgresql://host:5/x?sslmode=disable", "postgresql://host:5/new?sslmode=disable"),
        ] {
            assert_eq!(with_database(url, "new"), expected);
        }
    }
}
