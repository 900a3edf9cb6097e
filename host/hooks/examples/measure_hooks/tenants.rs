//! Measures a router for each of many tenants against one router for all tenants, in alternating rounds.

use crate::bench_fixture::{BenchFixture, NOW, tenant_name};
use crate::{Outcome, Plugin};
use hooks::{Binding, HooksOptions};
use model::{Hook, Message, PeerId, Verdict};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// Routers of tenants.
#[derive(Deserialize)]
pub(crate) struct Task {
    tenants: usize,
    rounds: usize,
    /// Calls of each kind in each round.
    calls: usize,
    /// The router; its policy sends everything to `north`.
    plugin: Plugin,
}

/// The results; times of changes in milliseconds.
#[derive(Serialize)]
pub(crate) struct Measured {
    /// The activation of all bindings by one request.
    activation: f64,
    /// The change of one binding among them.
    change: f64,
    /// Growth of the resident memory by the activation, in octets.
    memory: u64,
    /// One router for all accounts.
    one: Calls,
    /// A router for each tenant, each with a warm instance.
    warm: Calls,
    /// A router for each tenant, with the default number of instances: most instances are made for one call.
    few: Calls,
}

/// Times of calls in microseconds, for each round.
#[derive(Serialize, Default)]
struct Calls {
    p50: Vec<f64>,
    p99: Vec<f64>,
}

/// The distance between the accounts of consecutive messages. A prime, so that all accounts have a turn.
const STRIDE: usize = 389;

/// A host of plugins, and its messages: one from each account.
struct Routers {
    fixture: BenchFixture,
    messages: Vec<Message>,
    bindings: Vec<Binding>,
}

impl Routers {
    fn open(folder: &Path, task: &Task, instances: u32) -> Outcome<Self> {
        let fixture =
            BenchFixture::open_with_tenants(folder, &folder.join("tables"), task.tenants, instances)?;
        let base = fixture.upload_once(&task.plugin)?;
        let each = |(account, message): (&PeerId, &Message)| Message { origin: *account, ..message.clone() };
        let messages =
            fixture.tenant_accounts.iter().zip(fixture.messages.iter().cycle()).map(each).collect();
        let of_tenant = |n: usize| Binding {
            tenant: Some(tenant_name(n)),
            peers: vec!["north".to_owned()],
            // No two tenants have the same document.
            policy: format!("# {}\n{}", tenant_name(n), base.policy),
            ..base.clone()
        };
        let bindings = (0..task.tenants).map(of_tenant).chain([base.clone()]).collect();
        Ok(Self { fixture, messages, bindings })
    }

    fn activate(&self, bindings: Vec<Binding>) -> Outcome<f64> {
        let begun = Instant::now();
        self.fixture.hooks.activate(Hook::Router, NOW, bindings, None)?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }

    /// Routes this number of messages, each from the next account.
    fn round(&self, count: usize, calls: &mut Calls) -> Outcome<()> {
        let mut times = Vec::with_capacity(count);
        let mut place = 0_usize;
        for _ in 0..count {
            place = (place + STRIDE) % self.messages.len();
            let message = &self.messages[place];
            let begun = Instant::now();
            let routed = self.fixture.hooks.route(message, NOW);
            times.push(begun.elapsed());
            match &routed.verdict {
                Verdict::Forward(legs) if legs.len() == 1 && legs[0].peer == self.fixture.north => {}
                other => return Err(format!("routed to {other:?}: {:?}", routed.note).into()),
            }
        }
        times.sort_unstable();
        let at = |share: f64| -> f64 {
            let index = (times.len() as f64 * share) as usize;
            times.get(index.min(times.len() - 1)).copied().unwrap_or(Duration::ZERO).as_secs_f64() * 1e6
        };
        calls.p50.push(at(0.5));
        calls.p99.push(at(0.99));
        Ok(())
    }
}

/// Resident memory of the process, in octets.
fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no resident memory")?;
    Ok(kibibytes.parse::<u64>()? * 1024)
}

pub(crate) fn measure(folder: &Path, task: &Task) -> Outcome<Measured> {
    if task.tenants == 0 || task.calls == 0 {
        return Err("no tenants, or no calls".into());
    }
    let default = HooksOptions::default().instances;
    // Half of the instances may be idle instances of tenants.
    let enough = u32::try_from(task.tenants * 2 + 64)?;
    let one = Routers::open(&folder.join("one"), task, default)?;
    one.activate(one.bindings.iter().rev().take(1).cloned().collect())?;
    let few = Routers::open(&folder.join("few"), task, default)?;
    few.activate(few.bindings.clone())?;
    let warm = Routers::open(&folder.join("warm"), task, enough)?;
    let before = resident()?;
    let activation = warm.activate(warm.bindings.clone())?;
    let mut changed = warm.bindings.clone();
    if let Some(first) = changed.first_mut() {
        first.policy.push_str("# changed\n");
    }
    let change = warm.activate(changed)?;
    let memory = resident()?.saturating_sub(before);
    let mut measured = Measured {
        activation,
        change,
        memory,
        one: Calls::default(),
        warm: Calls::default(),
        few: Calls::default(),
    };
    // The first round makes the instances and is not counted.
    for routers in [&one, &warm, &few] {
        routers.round(task.calls, &mut Calls::default())?;
    }
    for _ in 0..task.rounds {
        one.round(task.calls, &mut measured.one)?;
        warm.round(task.calls, &mut measured.warm)?;
        few.round(task.calls, &mut measured.few)?;
    }
    Ok(measured)
}
