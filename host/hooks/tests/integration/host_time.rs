//! Values that a biller sets while a submitter waits, and the time that a call may wait in host functions.

use crate::support::{FORCED, NOW, directory, guest, message, options, services, with_long_deadline};
use capabilities::{CounterWriter, Error, KvStore, KvUsage, MemoryKvStore, RedbKvStore};
use hooks::{Binding, Grants, Hooks, HostServices};
use model::{Hook, Leg, MessageId, RoutingDecision, Settlement, Verdict};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Hooks with this store, and a biller that makes the host call.
fn biller(folder: &Path, kv_store: Arc<dyn KvStore>, call: &str) -> Arc<Hooks> {
    let services = HostServices { kv_store, ..services(folder) };
    let hooks = Hooks::open(folder, options(), directory(), services).unwrap();
    let info = hooks.upload("test_price_prober", &guest("test_price_prober"), None).unwrap();
    let binding = Binding {
        grants: Grants { kv: 1_000, ..Grants::default() },
        ..with_long_deadline(Binding::new("test_price_prober", &info.version, call))
    };
    // Half of the deadline is the interval at which calls are checked.
    let binding = Binding { deadline: Duration::from_millis(200), ..binding };
    hooks.activate(Hook::Biller, NOW, vec![binding], FORCED).unwrap();
    hooks
}

/// The note of the price of a message, or of the fault.
fn price(hooks: &Hooks) -> String {
    let message = message("good", "8613012345678");
    let leg = Leg::to(directory().load().id("north").unwrap());
    let mut routed = RoutingDecision::new(Verdict::Forward(vec![leg]), message.routed.by.clone());
    hooks.price(&message, &mut routed, NOW);
    let note = routed.quote.and_then(|quote| quote.note).or(routed.note);
    note.map(String::from).unwrap_or_default()
}

#[test]
fn a_price_does_not_wait_for_the_disk_and_a_settlement_does() {
    let folder = tempfile::tempdir().unwrap();
    let values = Arc::new(RedbKvStore::open(&folder.path().join("kv.redb")).unwrap());
    // It never runs by itself.
    let writer = CounterWriter::new(Arc::default(), values.clone());
    let hooks = biller(folder.path(), values.clone(), "set last 10");
    assert_eq!(price(&hooks), "Ok(())");
    let stored = || values.rows().unwrap().len();
    assert_eq!(values.get("test_price_prober", "last").unwrap().unwrap().len(), 10);
    assert_eq!(stored(), 0);
    writer.flush().unwrap();
    assert_eq!(stored(), 1);
    values.clear("test_price_prober").unwrap();

    let settlement = Settlement {
        serial: 1,
        message: MessageId(7),
        account: "acme".into(),
        amount: 1,
        captured: true,
        at: NOW,
    };
    hooks.settle(&[settlement], NOW).unwrap();
    assert_eq!(stored(), 1, "durable when the call returns");
}

/// A store on a slow disk.
struct SlowStore(MemoryKvStore);

impl KvStore for SlowStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        std::thread::park_timeout(Duration::from_millis(20));
        self.0.get(plugin, key)
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        self.0.set(plugin, key, value, quota)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        self.0.delete(plugin, key)
    }

    fn usage(&self, plugin: &str) -> Result<KvUsage, Error> {
        self.0.usage(plugin)
    }
}

#[test]
fn a_call_that_only_waits_ends_too() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = biller(folder.path(), Arc::new(SlowStore(MemoryKvStore::default())), "read-forever last");
    let note = price(&hooks);
    assert!(note.starts_with("fault (deadline): waited 250 ms for the disk"), "{note}");
}
