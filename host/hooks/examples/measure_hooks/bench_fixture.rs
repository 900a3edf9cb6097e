//! Hooks without the rest of an appliance: peers, tables, messages.

use crate::{Outcome, Plugin};
use api::{DnsGrant, Grants};
use arc_swap::ArcSwap;
use capabilities::{
    CounterOptions, Counters, DnsClient, Fetch, FetchFailure, FetchRequest, FetchResponse, HttpGrants,
    LogBudgets, MemoryKvStore, TableHlr, TableKind, TableStore, TableStoreOptions,
};
use hooks::{Binding, Hooks, HooksOptions, HostServices, PeerSnapshots, TenantLines};
use model::{
    Address, Attempt, Directory, ErrorClass, Hook, Leg, LookupNumber, LookupResult, Message, PeerId,
    PluginVersion, RoutingDecision, TenantTree, Text, Timestamp, Verdict,
};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// Number of subscribers in the resolvers' tables.
const SUBSCRIBERS: u64 = 100_000;
/// The text of each message: 140 characters.
const TEXT: &[u8] =
    b"Your parcel 4711 is on its way and will be with you between 10 and 12 today. Please have your \
    code ready, it is 58 12 90. Your delivery team";

/// Number of different messages and numbers, which are used in turn.
const DISTINCT: u64 = 1024;

pub(crate) struct BenchFixture {
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) north: PeerId,
    pub(crate) south: PeerId,
    pub(crate) bulk: PeerId,
    pub(crate) messages: Vec<Message>,
    pub(crate) numbers: Vec<String>,
    pub(crate) attempt: Attempt,
    /// The account of each tenant.
    pub(crate) tenant_accounts: Vec<PeerId>,
}

struct OfflineFetch;

impl Fetch for OfflineFetch {
    fn fetch(&self, _: &str, _: &HttpGrants, _: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        Err(FetchFailure::Unreachable("offline".to_owned()))
    }
}

/// The name of a tenant.
pub(crate) fn tenant_name(n: usize) -> String {
    format!("tenant-{n}")
}

fn number(n: u64) -> String {
    format!("86130{:08}", n.wrapping_mul(48_271) % SUBSCRIBERS)
}

impl BenchFixture {
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        Self::open_with_tables(folder, &folder.join("tables"))
    }

    /// Opens a host in `folder` that uses the tables in the folder `tables`.
    pub(crate) fn open_with_tables(folder: &Path, tables: &Path) -> Outcome<Self> {
        Self::open_with_tenants(folder, tables, 0, HooksOptions::default().instances)
    }

    /// Opens a host with this number of tenants, each with one account, and this number of plugin instances.
    pub(crate) fn open_with_tenants(
        folder: &Path,
        tables: &Path,
        tenants: usize,
        instances: u32,
    ) -> Outcome<Self> {
        let mut directory = Directory::new();
        let mut peer = |name: &str| directory.intern(name).map(|(id, _)| id);
        let (acme, home, north, south, bulk) =
            (peer("acme")?, peer("home")?, peer("north")?, peer("south")?, peer("bulk")?);
        let names: Vec<Arc<str>> = (0..tenants).map(|n| tenant_name(n).into()).collect();
        let accounts: Vec<Arc<str>> = (0..tenants).map(|n| format!("account-{n}").into()).collect();
        let tenant_accounts = accounts.iter().map(|name| directory.intern(name).map(|(id, _)| id));
        let tenant_accounts = tenant_accounts.collect::<Result<Vec<_>, _>>()?;
        let tree = TenantTree::new(
            names.iter().map(|name| (name.clone(), None)),
            accounts.iter().cloned().zip(names.iter().cloned().map(Some)),
            [],
        );
        let tenant_lines = TenantLines::default();
        tenant_lines.publish(&tree, |account| directory.id(account));
        let tables = Arc::new(TableStore::open(tables, TableStoreOptions::default())?);
        let rows: String = (0..SUBSCRIBERS).map(|n| format!("{},26201{n:010}\n", number(n))).collect();
        for name in ["hlr", "subscribers"] {
            tables.put(name, TableKind::Exact, rows.as_bytes())?;
        }
        let networks: String = (0..SUBSCRIBERS).map(|n| format!("{},460-0{}\n", number(n), n % 3)).collect();
        tables.put("networks", TableKind::Prefix, networks.as_bytes())?;
        let services = HostServices {
            peer_snapshots: Arc::new(PeerSnapshots::default()),
            pool_snapshots: Arc::default(),
            account_attributes: Arc::default(),
            peer_secrets: Arc::default(),
            tenant_lines: Arc::new(tenant_lines),
            decode_text: |text| Some(String::from_utf8_lossy(&text.octets).into_owned()),
            replace_text: |text, _| Ok(text.clone()),
            counters: Arc::new(Counters::new(CounterOptions::default())),
            durable_counters: Arc::default(),
            quality: Arc::default(),
            kv_store: Arc::new(MemoryKvStore::default()),
            fetch: Arc::new(OfflineFetch),
            dns: Arc::new(DnsClient::new()),
            hlr: Arc::new(TableHlr::new(tables.clone())),
            tables,
            log_budgets: LogBudgets::default(),
        };
        // As on an appliance.
        let options = HooksOptions { home: Some(home), record: true, instances, ..HooksOptions::default() };
        let hooks = Hooks::open(
            &folder.join("plugins"),
            options,
            Arc::new(ArcSwap::from_pointee(directory)),
            services,
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
        let messages = (0..DISTINCT).map(|n| message(acme, north, &number(n))).collect();
        let numbers = (0..DISTINCT).map(number).collect();
        Ok(Self { hooks, north, south, bulk, messages, numbers, attempt, tenant_accounts })
    }

    /// Uploads a plugin unless it is stored already; returns its binding.
    pub(crate) fn upload_once(&self, plugin: &Plugin) -> Outcome<Binding> {
        let octets = std::fs::read(&plugin.component)
            .map_err(|error| format!("{}: {error}", plugin.component.display()))?;
        // Reuse the compiled version of an earlier run: compiling a Python guest takes a minute.
        let version: String = model::hex(&Sha256::digest(&octets)[..6]);
        if !self.hooks.versions()?.iter().any(|info| info.plugin == plugin.name && info.version == version) {
            self.hooks.upload(&plugin.name, &octets, None)?;
        }
        let mut binding = Binding::new(&plugin.name, &version, &plugin.policy);
        // A Python guest needs 20 MB, and a busy machine is slow.
        (binding.memory, binding.deadline) = (128 << 20, Duration::from_secs(1));
        // Guests in JavaScript and Python import everything that a template might use, so everything is granted; no service
        // answers here.
        binding.grants = Grants {
            tables: ["hlr", "networks", "subscribers"].map(str::to_owned).to_vec(),
            http: vec!["https://192.0.2.1/".to_owned()],
            kv: 1 << 20,
            hlr: true,
            dns: Some(DnsGrant {
                servers: vec!["192.0.2.1".to_owned()],
                zones: vec!["e164.arpa".to_owned()],
                timeout_ms: 1_000,
            }),
            ..Grants::default()
        };
        Ok(binding)
    }

    /// Asks the live plugin the `n`th question, and checks that it answers. `messages`: a copy of the fixture's.
    pub(crate) fn ask(
        &self,
        hook: Hook,
        n: usize,
        messages: &mut [Message],
        routed: &mut RoutingDecision,
    ) -> bool {
        let place = n % messages.len();
        let message = &mut messages[place];
        match hook {
            Hook::Screen => {
                let screened = self.hooks.screen(message, NOW);
                matches!(screened, Ok(Some(screening)) if screening.verdict == model::ScreenVerdict::Pass)
            }
            Hook::Router => {
                let routed = self.hooks.route(message, NOW);
                matches!(&routed.verdict, Verdict::Forward(legs) if legs.len() == 1 && legs[0].peer == self.north)
            }
            Hook::Lookup => {
                let number = Address::international(&self.numbers[n % self.numbers.len()]);
                let known = LookupNumber::of(&number).and_then(|number| self.hooks.look_up(&number, NOW));
                known.is_some_and(|(lookup, _)| lookup.result == LookupResult::Found)
            }
            Hook::Resolver => {
                let number = &self.numbers[n % self.numbers.len()];
                matches!(self.hooks.resolve(number, NOW).subscriber, model::Subscriber::Found { .. })
            }
            Hook::DeliveryPolicy => self.hooks.next(message, &self.attempt, NOW).is_some(),
            Hook::Receipt => {
                let submission = model::AcceptedSubmission {
                    attempts: 1,
                    leg: (0, 1),
                    peer: self.north,
                    age: std::time::Duration::from_secs(1),
                    left: std::time::Duration::from_secs(3_600),
                };
                self.hooks.decide_receipt(message, submission, model::ReceiptEvent::Accepted, NOW).is_some()
            }
            // Front ends are not measured.
            Hook::FrontEnd => true,
            Hook::Biller => {
                routed.quote = None;
                self.hooks.price(message, routed, NOW);
                routed.quote.as_ref().is_some_and(|quote| quote.charge.is_some())
            }
            // Its time depends on the peer.
            Hook::Peer => false,
        }
    }

    /// Asks the live plugin about these messages at a time; returns the number of wrong answers.
    pub(crate) fn ask_many(&self, hook: Hook, messages: &mut [Message]) -> u64 {
        let is_wrong = match hook {
            Hook::Router => {
                let asked: Vec<&Message> = messages.iter().collect();
                let wrong = |routed: RoutingDecision| !matches!(&routed.verdict, Verdict::Forward(legs) if legs[0].peer == self.north);
                return self.hooks.route_many(&asked, NOW).into_iter().map(|one| u64::from(wrong(one))).sum();
            }
            Hook::Biller => {
                let mut asked: Vec<&mut Message> = messages.iter_mut().collect();
                self.hooks.price_many(&mut asked, NOW);
                |message: &mut Message| message.routed.quote.take().is_none_or(|quote| quote.charge.is_none())
            }
            Hook::Screen => {
                let mut asked: Vec<&mut Message> = messages.iter_mut().collect();
                let is_wrong = |screened: Result<Option<Box<model::Screening>>, _>| !matches!(screened, Ok(Some(screening)) if screening.verdict == model::ScreenVerdict::Pass);
                let screened = self.hooks.screen_many(&mut asked, NOW);
                return screened.into_iter().map(|one| u64::from(is_wrong(one))).sum();
            }
            Hook::Lookup
            | Hook::Resolver
            | Hook::DeliveryPolicy
            | Hook::Receipt
            | Hook::Peer
            | Hook::FrontEnd => |_: &mut Message| true,
        };
        messages.iter_mut().map(|message| u64::from(is_wrong(message))).sum()
    }
}

fn message(origin: PeerId, peer: PeerId, destination: &str) -> Message {
    Message {
        accepted_at: NOW,
        ..Message::new(
            origin,
            Address::international("10655912345"),
            Address::international(destination),
            Text { octets: bytes::Bytes::from_static(TEXT), ..Text::default() },
            NOW,
            forwarded(peer),
        )
    }
}

/// A forward verdict for a biller.
pub(crate) fn forwarded(peer: PeerId) -> RoutingDecision {
    let by = Arc::new(PluginVersion { plugin: "native".to_owned(), version: String::new() });
    RoutingDecision::new(Verdict::Forward(vec![Leg::to(peer)]), by)
}
