//! The servers' programs: where they are, and which user they run as.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that the testbed starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
}

pub(crate) const INITDB: Program = Program { name: "initdb", package: "postgresql" };
pub(crate) const POSTGRES: Program = Program { name: "postgres", package: "postgresql" };
pub(crate) const PGBOUNCER: Program = Program { name: "pgbouncer", package: "pgbouncer" };
pub(crate) const REDIS: Program = Program { name: "redis-server", package: "redis-server" };
pub(crate) const CHROMEDRIVER: Program = Program { name: "chromedriver", package: "chromium-driver" };
pub(crate) const CHROMIUM: Program = Program { name: "chromium", package: "chromium" };
pub(crate) const SENTINEL: Program = Program { name: "redis-sentinel", package: "redis-sentinel" };

/// Debian's directory of PostgreSQL servers, one subdirectory per version, outside of the path.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// The account that PostgreSQL's Debian package creates.
const POSTGRES_USER: &str = "postgres";
/// Directories of PgBouncer and similar programs, which are often not on the path of users other than root.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The programs that are needed and not installed.
pub fn missing_programs() -> Vec<Program> {
    let postgres = [INITDB, POSTGRES].into_iter().filter(|_| find_postgres_directory().is_none());
    let others = [PGBOUNCER, REDIS, SENTINEL, CHROMEDRIVER, CHROMIUM];
    postgres.chain(others.into_iter().filter(|program| program.find().is_none())).collect()
}

impl Program {
    /// The program's path.
    pub(crate) fn path(self) -> PathBuf {
        self.find().unwrap_or_else(|| self.is_missing())
    }

    fn find(self) -> Option<PathBuf> {
        on_path().map(|directory| directory.join(self.name)).find(|program| program.is_file())
    }

    fn is_missing(self) -> ! {
        panic!("`{}` is not installed, and these tests need it: apt-get install {}", self.name, self.package)
    }
}

/// The directory with `initdb` and `postgres`: from the path, or else Debian's newest.
pub(crate) fn postgres_directory() -> PathBuf {
    find_postgres_directory().unwrap_or_else(|| INITDB.is_missing())
}

fn find_postgres_directory() -> Option<PathBuf> {
    let is_complete = |directory: &PathBuf| [INITDB, POSTGRES].iter().all(|it| directory.join(it.name).is_file());
    on_path().find(is_complete).or_else(|| debian_versions().into_iter().rev().find(is_complete))
}

/// Makes `command` run as `account`, or as this process's own user.
pub(crate) fn run_as(command: &mut Command, account: Option<Account>) {
    if let Some(Account { user, group }) = account {
        command.uid(user).gid(group);
    }
}

/// A user and a group by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// The account for servers that refuse to run as root; `None`, for this process's own user, unless it is root.
pub(crate) fn account_for_servers() -> Option<Account> {
    rustix::process::geteuid().is_root().then(|| {
        let accounts = std::fs::read_to_string("/etc/passwd").expect("reading /etc/passwd");
        account(&accounts, POSTGRES_USER).unwrap_or_else(|| {
            panic!("root cannot run PostgreSQL, and there is no user `{POSTGRES_USER}`: apt-get install postgresql");
        })
    })
}

fn account(accounts: &str, name: &str) -> Option<Account> {
    let mut fields = accounts.lines().map(|line| line.split(':')).find_map(|mut fields| {
        let is_it = fields.next() == Some(name);
        is_it.then_some(fields)
    })?;
    fields.next()?;
    Some(Account { user: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}

fn on_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.into_iter().chain(SYSTEM_PROGRAMS.map(PathBuf::from))
}

/// The `bin` directories of Debian's versions, oldest first.
fn debian_versions() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(Path::new(POSTGRES_VERSIONS)) else { return Vec::new() };
    let versions = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut versions: Vec<u32> = versions.collect();
    versions.sort_unstable();
    versions.into_iter().map(|version| Path::new(POSTGRES_VERSIONS).join(version.to_string()).join("bin")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts =
            "root:x:0:0:root:/root:/bin/bash\npostgres2:x:9:9::/:/bin/sh\npostgres:x:101:104:a,b:/var:/bin/sh\n";
        let found = account(accounts, "postgres").unwrap();
        assert_eq!((found.user, found.group), (101, 104));
        assert!(account(accounts, "nobody").is_none());
    }

    #[test]
    fn nothing_is_missing_where_these_tests_run() {
        assert_eq!(missing_programs(), []);
    }

    #[test]
    #[should_panic(
        expected = "`no-such-program` is not installed, and these tests need it: apt-get install its-package"
    )]
    fn a_missing_program_says_what_to_install() {
        Program { name: "no-such-program", package: "its-package" }.path();
    }
}
