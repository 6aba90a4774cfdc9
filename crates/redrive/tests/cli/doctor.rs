//! `redrive doctor`, and a service whose database was changed by hand.

use rusqlite::Connection;
use serde_json::json;

use super::world::{Service, Target};

#[test]
fn one_invalid_row_is_shown_and_everything_else_goes_on() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let service = Service::start_in(directory.path(), &[]);
    service.run(&["doctor"]).with(0).says(&["ready"]);
    let damaged = service.send(&[&target.url, "--delay", "1h"]);
    let database = Connection::open(directory.path().join("redrive-data/redrive.db")).unwrap();
    assert_eq!(database.execute("UPDATE tasks SET error_kind = 'martian'", []).unwrap(), 1);
    for _ in 0..3 {
        let id = service.send(&[&target.url]);
        service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED"]);
    }
    assert_eq!(service.run(&["tasks", "list", "--json"]).with(0).json()["tasks"].as_array().unwrap().len(), 3);
    service.run(&["doctor"]).with(1).says(&["set aside: 1 row ", "martian"]);
    let told = service.run(&["doctor", "--json"]).with(1).json();
    assert_eq!((&told["status"], &told["setAside"]["count"]), (&json!("ok"), &json!(1)));
    service.stop().with(0).says(&["nothing was lost"]);

    database.execute("UPDATE tasks SET error_kind = NULL WHERE error_kind = 'martian'", []).unwrap();
    drop(database);
    let service = Service::start_in(directory.path(), &[]);
    service.run(&["doctor"]).with(0).says(&["ready"]);
    assert_eq!(service.task(&damaged)["status"], "PENDING");
}
