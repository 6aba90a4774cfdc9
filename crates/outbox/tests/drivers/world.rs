//! A store of Redrive on a database of its own, and a driver's connection to it.

use redrive_core::{PolicyId, Status, TaskId, TenantId, Timestamp, policy};
use redrive_store::{Expected, NodeId, Store, TaskDetail};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Database, Postgres};

use crate::driver::Driver;

pub(crate) struct World<D> {
    pub(crate) driver: D,
    store: PostgresStore,
    _database: Database,
}

impl<D: Driver> World<D> {
    /// A store with the policy that all tests use, and a table of an application.
    pub(crate) async fn new() -> Self {
        let database = Postgres::shared().fresh_database();
        let options = Options::new(database.url(), NodeId::try_new("one").unwrap());
        let store = PostgresStore::open(options).await.unwrap();
        let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
        let now = Timestamp::from_millis(0);
        store.policies().put(tenant, id, policy::Spec::default(), Expected::Anything, now).await.unwrap();
        let driver = D::connect(&database).await;
        World { driver, store, _database: database }
    }

    pub(crate) async fn pending(&self) -> u64 {
        let counts = self.store.reads().counts(TenantId::default_tenant()).await.unwrap();
        counts.get(&Status::Pending).copied().unwrap_or(0)
    }

    pub(crate) async fn task(&self, id: TaskId) -> Option<TaskDetail> {
        self.store.reads().task(TenantId::default_tenant(), id).await.unwrap()
    }
}
