//! A store of Redrive on a database of its own, and a driver's connection to it.

use std::time::{Duration, SystemTime};

use redrive_core::idempotency::{ExecutionId, Operation, RecordKey, RequestHash, Reserve, Reserved};
use redrive_core::{Consumer, PolicyId, RecordName, Status, TaskId, TenantId, Timestamp, policy};
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

    /// Begins an event over the service, as a consumer does that will confirm it.
    pub(crate) async fn begin_event(&self, consumer: &str, event: &str) {
        let operation = Operation::Inbox(Consumer::try_new(consumer).unwrap());
        let name = RecordName::try_new(event).unwrap();
        let ask = Reserve {
            request_hash: RequestHash([0; 32]),
            execution: ExecutionId::from_random(1),
            lease: Duration::from_secs(3_600),
            retention: Duration::from_secs(7 * 24 * 3_600),
            is_complete: false,
        };
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = Timestamp::from_millis(u64::try_from(since_1970.as_millis()).unwrap());
        let key = RecordKey { tenant: TenantId::default_tenant(), operation, name };
        let begun = self.store.records().reserve_one(key, ask, now).await.unwrap();
        assert!(matches!(begun, Reserved::Granted { .. }), "{begun:?}");
    }

    pub(crate) async fn pending(&self) -> u64 {
        let counts = self.store.reads().counts(TenantId::default_tenant()).await.unwrap();
        counts.get(&Status::Pending).copied().unwrap_or(0)
    }

    pub(crate) async fn task(&self, id: TaskId) -> Option<TaskDetail> {
        self.store.reads().task(TenantId::default_tenant(), id).await.unwrap()
    }
}
