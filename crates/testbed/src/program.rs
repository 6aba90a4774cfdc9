//! Where the servers' programs are, and which user they run as.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian keeps PostgreSQL's servers, one directory per version, outside of the path.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// The account that PostgreSQL's Debian package makes.
const POSTGRES_USER: &str = "postgres";
/// Where PgBouncer and the like are for root, but often not on other users' paths.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The program `name`, which the Debian package `package` brings.
pub(crate) fn find(name: &str, package: &str) -> PathBuf {
    on_path().map(|directory| directory.join(name)).find(|program| program.is_file()).unwrap_or_else(|| {
        panic!("`{name}` is not installed, and these tests need it: apt-get install {package}");
    })
}

/// The directory with `initdb` and `postgres`: from the path, or else Debian's newest.
pub(crate) fn postgres_directory() -> PathBuf {
    let complete = |directory: &PathBuf| ["initdb", "postgres"].iter().all(|name| directory.join(name).is_file());
    on_path().find(complete).or_else(|| debian_versions().into_iter().rev().find(complete)).unwrap_or_else(|| {
        panic!("PostgreSQL's `initdb` and `postgres` are not installed, and these tests need them: apt-get install postgresql");
    })
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

/// Who runs a server that refuses to be run by root: nobody else unless we are root.
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
    #[should_panic(
        expected = "`no-such-program` is not installed, and these tests need it: apt-get install its-package"
    )]
    fn a_missing_program_says_what_to_install() {
        find("no-such-program", "its-package");
    }
}
