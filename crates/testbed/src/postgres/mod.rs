mod admin;
mod database;
mod shared;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

pub use database::Database;
pub use shared::{SHARED_POSTGRES, SharedPostgres};

use crate::home::{Farewell, Home, StorageMedium};
use crate::server::{Plan, Server};
use crate::{process_tree, program};

/// The role in every URL, a superuser.
const ROLE: &str = "redrive";
/// The database to connect to in order to create others.
const ADMIN_DATABASE: &str = "postgres";

/// Followed by "connections", or by "read-only connections" of a standby. A standby that was promoted logs the first
/// when it is restarted.
const READY: &str = "database system is ready to accept ";

/// How a server differs from the default.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Whether a commit is on disk before it is answered. It matters only for a loss of power: a killed server keeps
    /// its commits either way. Without it, the files are kept in memory where there is room.
    pub fsync: bool,
    /// Further settings by their names in postgresql.conf.
    pub settings: &'a [(&'a str, &'a str)],
    /// Further files in the data directory, by their names; only the server can read them.
    pub files: &'a [(&'a str, &'a str)],
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { fsync: true, settings: &[], files: &[] }
    }
}

/// A PostgreSQL server with files of its own.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
}

impl Postgres {
    /// A new server that syncs its commits to disk.
    pub fn start() -> Self {
        Postgres::start_with(Options::default())
    }

    /// A new server with `options`.
    pub fn start_with(options: Options<'_>) -> Self {
        let programs = program::postgres_directory();
        let account = program::account_for_servers();
        let medium = if options.fsync { StorageMedium::Disk } else { StorageMedium::Memory };
        let home = Home::new(medium, account, Farewell::Quit);
        let data = home.path().join("data");
        make_cluster(&programs, &home, account);
        options.files.iter().for_each(|(name, content)| put_file(&data.join(name), content, account));
        Postgres::run(home, settings_of(&options))
    }

    /// A hot standby that follows this server: it answers reads and refuses writes, until it is [promoted](Self::promote).
    pub fn start_standby(&self) -> Self {
        self.start_standby_with(Options { fsync: false, ..Options::default() })
    }

    /// Starts a standby with `options`. Settings that were [given](Self::set) to this server are copied; the standby's
    /// `max_connections` must not be less than this server's.
    pub fn start_standby_with(&self, options: Options<'_>) -> Self {
        let account = program::account_for_servers();
        let medium = if options.fsync { StorageMedium::Disk } else { StorageMedium::Memory };
        let home = Home::new(medium, account, Farewell::Quit);
        copy_cluster(self.port(), &home, account);
        options
            .files
            .iter()
            .for_each(|(name, content)| put_file(&home.path().join("data").join(name), content, account));
        Postgres::run(home, settings_of(&options))
    }

    /// Promotes a standby to a server of its own that takes writes; returns when it does.
    ///
    /// # Panics
    ///
    /// When it is not a standby.
    pub fn promote(&self) {
        let promoted = admin::execute(&self.url(), "SELECT pg_promote(true, 60)");
        promoted.unwrap_or_else(|error| panic!("promoting a standby: {error}"));
    }

    /// Starts a server on the files in `home`.
    fn run(home: Home, settings: Vec<String>) -> Self {
        let (programs, account) = (program::postgres_directory(), program::account_for_servers());
        let data = home.path().join("data");
        let command = move |port: u16| {
            let mut command = Command::new(programs.join(program::POSTGRES.name));
            command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
            settings.iter().for_each(|setting| {
                command.args(["-c", setting.as_str()]);
            });
            program::run_as(&mut command, account);
            command
        };
        let plan = Plan { name: "PostgreSQL", command: Box::new(command), ready: READY, farewell: Signal::QUIT };
        Postgres { server: Server::start(plan, home) }
    }

    /// The server that the tests share: see [`SharedPostgres`].
    pub fn shared() -> SharedPostgres {
        SharedPostgres::get()
    }

    /// The URL of a database that exists from the start.
    pub fn url(&self) -> String {
        self.url_of(ADMIN_DATABASE)
    }

    /// Creates a new, empty database, which is kept as long as the server's files.
    pub fn fresh_database(&self) -> Database {
        Database::create(&self.url())
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The main process.
    ///
    /// # Panics
    ///
    /// When the server does not run.
    pub fn pid(&self) -> u32 {
        self.running().as_raw_nonzero().get().unsigned_abs()
    }

    /// The directory with the server's files.
    pub fn data_directory(&self) -> PathBuf {
        self.server.directory().join("data")
    }

    /// All that the server has logged since it was last started.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// User and system time of the whole server since it was last started: the main process and every one that it has
    /// started, also those that have ended.
    pub fn cpu_time(&self) -> Duration {
        process_tree::cpu_time(self.running())
    }

    /// Kills every process of the server at once (SIGKILL), as when its machine is lost. Commits that were answered are
    /// still there when it is restarted.
    pub fn kill(&self) {
        self.server.kill();
    }

    /// Shuts the server down immediately (as `pg_ctl stop -m immediate` does): clients are notified, nothing is
    /// written, and the next start recovers as from a crash.
    pub fn stop_immediate(&self) {
        self.server.stop(Signal::QUIT);
    }

    /// Starts a server that was killed or stopped, on the same port and the same files; returns when it has recovered.
    pub fn start_again(&self) {
        self.server.start_again();
    }

    /// Sets these settings beside those that the server was started with, instead of what was set here before. Those
    /// that can be changed at run time take effect at once. Needs no connection.
    pub fn set(&self, settings: &[(&str, &str)]) {
        let lines: String = settings.iter().map(|(name, value)| format!("{name} = '{value}'\n")).collect();
        std::fs::write(self.data_directory().join("postgresql.auto.conf"), lines).expect("the settings can be written");
        if let Some(pid) = self.server.pid() {
            rustix::process::kill_process(pid, Signal::HUP).expect("the server can be told");
        }
    }

    /// Suspends every process of the server (SIGSTOP): connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.server.pause();
    }

    /// Resumes a paused server.
    pub fn resume(&self) {
        self.server.resume();
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://{ROLE}@127.0.0.1:{}/{database}", self.port())
    }

    fn running(&self) -> Pid {
        self.server.pid().expect("the server does not run")
    }
}

fn settings_of(options: &Options<'_>) -> Vec<String> {
    let on_or_off = if options.fsync { "on" } else { "off" };
    let base = [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("fsync", on_or_off),
        // Torn pages also need a power loss.
        ("full_page_writes", on_or_off),
        // Among the server's files, so that it is removed with them when the server was killed.
        ("dynamic_shared_memory_type", "mmap"),
        // A recovery begins with a sync of every file; one by one that takes many seconds.
        ("recovery_init_sync_method", "syncfs"),
    ];
    base.iter().chain(options.settings).map(|(name, value)| format!("{name}={value}")).collect()
}

/// Runs `initdb`.
fn make_cluster(programs: &std::path::Path, home: &Home, account: Option<program::Account>) {
    let mut initdb = Command::new(programs.join(program::INITDB.name));
    initdb.arg("--pgdata").arg(home.path().join("data"));
    initdb.args(["--username", ROLE, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"]);
    initdb.args(["--no-sync", "--no-instructions"]);
    program::run_as(&mut initdb, account);
    let output = initdb.current_dir(home.path()).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("starting {initdb:?}: {error}"));
    assert!(output.status.success(), "initdb failed:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Copies the files of a running server, for a standby of it.
fn copy_cluster(port: u16, home: &Home, account: Option<program::Account>) {
    // The server's programs may be links to the directory with the others.
    let initdb = std::fs::canonicalize(program::postgres_directory().join(program::INITDB.name));
    let mut copy =
        Command::new(initdb.expect("the directory of PostgreSQL's programs").with_file_name("pg_basebackup"));
    copy.arg("--pgdata").arg(home.path().join("data"));
    copy.args(["--host", "127.0.0.1", "--username", ROLE, "--port", &port.to_string()]);
    copy.args(["--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"]);
    program::run_as(&mut copy, account);
    let output = copy.current_dir(home.path()).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("starting {copy:?}: {error}"));
    assert!(output.status.success(), "pg_basebackup failed:\n{}", String::from_utf8_lossy(&output.stderr));
}

fn put_file(path: &std::path::Path, content: &str, account: Option<program::Account>) {
    std::fs::write(path, content).expect("writing a file of the server");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .expect("keeping a file of the server secret");
    if let Some(program::Account { user, group }) = account {
        std::os::unix::fs::chown(path, Some(user), Some(group)).expect("giving a file to the server");
    }
}
