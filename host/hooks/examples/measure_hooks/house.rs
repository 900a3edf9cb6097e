//! An appliance's hooks without the appliance: peers, tables, messages.

use crate::{Outcome, Plugin};
use arc_swap::ArcSwap;
use capabilities::{
    CounterOptions, Counters, Fetch, FetchFailure, Grants, LogBudgets, MemoryValues, Request, Response,
    Shelf, ShelfOptions, TableHlr, TableKind,
};
use hooks::{Binding, Board, Hooks, HooksOptions, Powers};
use model::{
    Address, Attempt, DecidedBy, Directory, ErrorClass, Hook, Kind, Leg, Message, MessageId, PeerId,
    Priority, ReceiptRequest, Routed, Text, Timestamp, Verdict,
};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// Subscribers in the tables of the resolvers.
const SUBSCRIBERS: u64 = 100_000;
/// Different messages, and different numbers, that plugins are asked about in turn.
const DIFFERENT: u64 = 1024;

pub(crate) struct House {
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) north: PeerId,
    pub(crate) south: PeerId,
    pub(crate) bulk: PeerId,
    pub(crate) messages: Vec<Message>,
    pub(crate) numbers: Vec<String>,
    pub(crate) attempt: Attempt,
}

struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: &str, _: &Grants, _: Request) -> Result<Response, FetchFailure> {
        Err(FetchFailure::Unreachable("offline".to_owned()))
    }
}

fn number(n: u64) -> String {
    format!("86130{:08}", n.wrapping_mul(48_271) % SUBSCRIBERS)
}

impl House {
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let mut directory = Directory::new();
        let mut peer = |name: &str| directory.intern(name).map(|(id, _)| id);
        let (acme, home, north, south, bulk) =
            (peer("acme")?, peer("home")?, peer("north")?, peer("south")?, peer("bulk")?);
        let shelf = Arc::new(Shelf::open(&folder.join("tables"), ShelfOptions::default())?);
        let rows: String = (0..SUBSCRIBERS).map(|n| format!("{},26201{n:010}\n", number(n))).collect();
        for name in ["hlr", "subscribers"] {
            shelf.put(name, TableKind::Exact, rows.as_bytes())?;
        }
        let powers = Powers {
            board: Arc::new(Board::default()),
            pools: Arc::default(),
            counters: Arc::new(Counters::new(CounterOptions::default())),
            durable_counters: Arc::default(),
            values: Arc::new(MemoryValues::default()),
            fetch: Arc::new(Offline),
            hlr: Arc::new(TableHlr::new(shelf.clone())),
            shelf,
            lines: LogBudgets::default(),
        };
        // As the appliance has them.
        let options = HooksOptions { home: Some(home), record: true, ..HooksOptions::default() };
        let hooks = Hooks::open(
            &folder.join("plugins"),
            options,
            Arc::new(ArcSwap::from_pointee(directory)),
            powers,
        )?;
        let attempt = Attempt {
            number: 1,
            leg: (0, 1),
            peer: north,
            class: ErrorClass::Temporary,
            code: 8,
            age: Duration::from_secs(1),
            left: Duration::from_secs(86_400),
        };
        let messages = (0..DIFFERENT).map(|n| message(acme, north, &number(n))).collect();
        let numbers = (0..DIFFERENT).map(number).collect();
        Ok(Self { hooks, north, south, bulk, messages, numbers, attempt })
    }

    /// Brings a plugin into the house; gives the binding that makes it live.
    pub(crate) fn keep(&self, plugin: &Plugin) -> Outcome<Binding> {
        let octets = std::fs::read(&plugin.component)
            .map_err(|error| format!("{}: {error}", plugin.component.display()))?;
        // What an earlier run has brought is there, compiled: to compile a guest in Python takes a minute.
        let version: String =
            Sha256::digest(&octets).iter().take(6).map(|octet| format!("{octet:02x}")).collect();
        if !self.hooks.versions()?.iter().any(|info| info.plugin == plugin.name && info.version == version) {
            self.hooks.upload(&plugin.name, &octets, None)?;
        }
        let mut binding = Binding::new(&plugin.name, &version, &plugin.policy);
        // A guest in Python takes 20 MB, and a crowded machine takes its time.
        (binding.memory, binding.deadline) = (128 << 20, Duration::from_secs(1));
        binding.grants.tables = vec!["hlr".to_owned(), "subscribers".to_owned()];
        Ok(binding)
    }

    /// Puts the `n`th question to the plugin that is live, and looks at the answer: whether it is one.
    pub(crate) fn ask(&self, hook: Hook, n: usize, routed: &mut Routed) -> bool {
        let message = &self.messages[n % self.messages.len()];
        match hook {
            Hook::Router => {
                let routed = self.hooks.route(message, NOW);
                matches!(&routed.verdict, Verdict::Forward(legs) if legs.len() == 1 && legs[0].peer == self.north)
            }
            Hook::Resolver => {
                let number = &self.numbers[n % self.numbers.len()];
                matches!(self.hooks.resolve(number, NOW).subscriber, model::Subscriber::Found { .. })
            }
            Hook::DeliveryPolicy => self.hooks.next(message, &self.attempt, NOW).is_some(),
            Hook::Biller => {
                routed.quote = None;
                self.hooks.price(message, routed, NOW);
                routed.quote.as_ref().is_some_and(|quote| quote.charge.is_some())
            }
        }
    }
}

fn message(origin: PeerId, peer: PeerId, destination: &str) -> Message {
    Message {
        id: MessageId(0),
        kind: Kind::Text,
        origin,
        source: Address::international("10655912345"),
        destination: Address::international(destination),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: Text { octets: bytes::Bytes::from_static(&[b'x'; 140]), ..Text::default() },
        tlvs: bytes::Bytes::new(),
        accepted_at: NOW,
        scheduled: None,
        expires_at: NOW,
        routed: forwarded(peer),
    }
}

/// A verdict that a biller may put a price to.
pub(crate) fn forwarded(peer: PeerId) -> Routed {
    let by = Arc::new(DecidedBy { plugin: "native".to_owned(), version: String::new() });
    Routed::new(Verdict::Forward(vec![Leg::to(peer)]), by)
}
