//! PostgreSQL and its synchronous standby: killed, suspended, changed in its settings, failed over.
//!
//! A commit is answered once the standby has it, from the first one on, on either server. So a failover must not lose
//! anything that was acknowledged. After a failover the new primary gets a standby of its own, which takes some
//! seconds. Until then its commits hang, and it gets no further fault.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use redrive_testbed::Postgres;
use redrive_testbed::postgres::Options;

use super::sql;

const OPTIONS: Options<'static> = Options {
    fsync: true,
    settings: &[
        // For the nodes' pools, connections that have just been closed, and our own.
        ("max_connections", "200"),
        // So that a standby finds what it missed while it was disconnected, and is back soon.
        ("wal_keep_size", "256MB"),
        ("wal_retrieve_retry_interval", "100ms"),
        ("wal_receiver_status_interval", "1s"),
    ],
    files: &[],
};
const SYNCHRONOUS: &str = "synchronous_standby_names";
/// The standby's application name. (With `*`, the copy of the files for a new standby would count as one.)
const STANDBY: &str = "walreceiver";
/// The longest time for a standby to catch up, before a failover to it is given up.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// The state of the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The primary works.
    Up,
    /// The primary was killed or stopped.
    Down,
    /// The primary is suspended.
    Paused,
    /// The primary was killed, and its standby is not promoted yet.
    FailedOver,
}

/// The primary and its standby.
pub struct Servers {
    primary: Arc<Postgres>,
    standing: Standing,
    standby: Standby,
    /// The database that the nodes use.
    database: String,
    /// The setting that is changed for a while.
    setting: Option<(&'static str, &'static str)>,
}

enum Standby {
    Follows(Postgres),
    BeingMade(JoinHandle<Postgres>),
    /// Only while it becomes the primary.
    Promoted,
}

impl Servers {
    /// A primary with an empty database and a standby that follows it.
    pub fn start() -> Self {
        let primary = Arc::new(Postgres::start_with(OPTIONS));
        primary.set(&[(SYNCHRONOUS, STANDBY)]);
        let standby = Standby::Follows(primary.start_standby_with(OPTIONS));
        let database = primary.fresh_database().name().to_owned();
        Servers { primary, standing: Standing::Up, standby, database, setting: None }
    }

    /// The name of the nodes' database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The URL of the nodes' database at the primary.
    pub fn url(&self) -> String {
        format!("postgres://redrive@{}/{}", address_of(&self.primary), self.database)
    }

    /// The primary's address.
    pub fn address(&self) -> SocketAddr {
        address_of(&self.primary)
    }

    /// Whether statements can succeed.
    pub fn is_up(&self) -> bool {
        self.standing == Standing::Up
    }

    /// Checks whether a standby that was being made follows now.
    pub fn tend(&mut self) -> Result<()> {
        if matches!(&self.standby, Standby::BeingMade(making) if making.is_finished()) {
            self.wait_for_standby()?;
        }
        Ok(())
    }

    /// Waits until the primary has its standby.
    pub fn wait_for_standby(&mut self) -> Result<()> {
        self.standby = match std::mem::replace(&mut self.standby, Standby::Promoted) {
            Standby::BeingMade(making) => match making.join() {
                Ok(standby) => Standby::Follows(standby),
                Err(_) => bail!("the new standby could not be made"),
            },
            standby => standby,
        };
        Ok(())
    }

    /// Kills the primary as if its machine were lost. Returns whether it did.
    pub fn kill(&mut self) -> bool {
        self.break_by(Postgres::kill, Standing::Down)
    }

    /// Stops the primary immediately. Returns whether it did.
    pub fn stop(&mut self) -> bool {
        self.break_by(Postgres::stop_immediate, Standing::Down)
    }

    /// Suspends the primary. Returns whether it did.
    pub fn pause(&mut self) -> bool {
        self.break_by(Postgres::pause, Standing::Paused)
    }

    fn break_by(&mut self, act: fn(&Postgres), standing: Standing) -> bool {
        let may = self.may_be_broken();
        if may {
            act(&self.primary);
            self.standing = standing;
        }
        may
    }

    /// Kills the primary for good. Returns the address of its standby, which takes no writes yet. Does nothing if there
    /// is no standby, or if it lags: a primary that was killed and restarted shows what it had written before without
    /// waiting for the standby.
    pub fn fail_over(&mut self) -> Option<SocketAddr> {
        let Standby::Follows(standby) = &self.standby else { return None };
        if !self.is_up() || !self.has_caught_up() {
            return None;
        }
        self.primary.kill();
        self.standing = Standing::FailedOver;
        Some(address_of(standby))
    }

    /// Makes the primary refuse writes, like a standby.
    pub fn make_read_only(&mut self) {
        self.set(Some(("default_transaction_read_only", "on")));
    }

    /// Makes commits wait for a standby that does not exist.
    pub fn lose_standby(&mut self) {
        self.set(Some((SYNCHRONOUS, "gone")));
    }

    /// Restores the changed setting.
    pub fn reset(&mut self) {
        self.set(None);
        if self.is_up() {
            // Commits that hang continue when the standby next reports its position, which it does at once when there
            // is something new. Without this, or if it fails, that takes a second.
            sql::column(&self.url(), "SELECT pg_logical_emit_message(true, 'chaos', '')").ok();
        }
    }

    /// Restarts or resumes the primary, or promotes the standby.
    pub fn mend(&mut self) {
        match self.standing {
            Standing::Up => {}
            Standing::Down => self.primary.start_again(),
            Standing::Paused => self.primary.resume(),
            Standing::FailedOver => self.promote(),
        }
        self.standing = Standing::Up;
    }

    fn promote(&mut self) {
        let Standby::Follows(standby) = std::mem::replace(&mut self.standby, Standby::Promoted) else { return };
        standby.promote();
        // The previous primary is removed, with its files.
        self.primary = Arc::new(standby);
        self.set(self.setting);
        let primary = Arc::clone(&self.primary);
        self.standby = Standby::BeingMade(std::thread::spawn(move || primary.start_standby_with(OPTIONS)));
    }

    fn set(&mut self, setting: Option<(&'static str, &'static str)>) {
        self.setting = setting;
        let mut settings = vec![(SYNCHRONOUS, STANDBY)];
        // Of two lines with one name the last counts.
        settings.extend(setting);
        self.primary.set(&settings);
    }

    /// Whether the primary works, and its files are not being copied.
    fn may_be_broken(&self) -> bool {
        self.is_up() && matches!(self.standby, Standby::Follows(_))
    }

    /// Whether the standby has everything that the primary has written so far.
    fn has_caught_up(&self) -> bool {
        let url = self.url();
        let Ok(written) = sql::column(&url, "SELECT pg_current_wal_insert_lsn()") else { return false };
        let written = sql::literal(written.first().and_then(Option::as_deref));
        let has = format!(
            "SELECT 1 FROM pg_stat_replication WHERE application_name = '{STANDBY}' AND flush_lsn >= {written}"
        );
        let begin = Instant::now();
        while begin.elapsed() < CAUGHT_UP_WITHIN {
            match sql::column(&url, &has) {
                Ok(rows) if rows.is_empty() => std::thread::sleep(LOOK_AGAIN_AFTER),
                rows => return rows.is_ok(),
            }
        }
        false
    }
}

fn address_of(server: &Postgres) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port()))
}
