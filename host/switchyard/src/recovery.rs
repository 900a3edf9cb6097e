//! Recovery of the engine from the store.

use crate::config::Config;
use crate::core_handle::CoreHandle;
use crate::plugin_setup::hooks_bound_event;
use anyhow::Result;
use engine::{Engine, Event, Output, Settings};
use hooks::Hooks;
use journal::LeaderLease;
use model::{MessageId, Now, RecoveredRecord, Timestamp};
use std::time::{Duration, Instant};
use store::Store;

/// A recovered engine.
pub(crate) struct Recovery {
    pub(crate) engine: Engine,
    /// Output of the recovery; it must be committed first.
    pub(crate) output: Output,
    /// The number of messages.
    pub(crate) messages: u64,
    /// The duration, in milliseconds.
    pub(crate) ms: u64,
}

/// Recovers the engine; `newest_record` is the time of the store's newest record.
pub(crate) fn recover(
    config: &Config,
    core: &CoreHandle,
    (store, newest_record): (&Store, Option<Timestamp>),
    hooks: &Hooks,
) -> Result<Recovery> {
    let started = Instant::now();
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| anyhow::anyhow!("system random numbers unavailable: {error}"))?;
    // Another node may have led until the claim.
    let previous_leader_sends = config.cluster.as_ref().map_or(Duration::ZERO, |_| LeaderLease::AFTER_CLAIM);
    let partition = config.partition();
    let seed = u64::from_le_bytes(seed);
    let settings = Settings { seed, previous_leader_sends, partition, ..config.engine_settings() };
    let mut engine = Engine::new(settings);
    let mut out = Output::default();
    let now = core.clock.now();
    engine.apply(now, Event::Pace(config.pace_settings()), &mut out);
    let queues = config.accounts.iter().map(|account| &account.queue);
    let queues = queues.chain(config.peers.iter().map(|peer| &peer.queue));
    let queues = queues.chain(config.partition_accounts.iter().map(|account| &account.queue));
    let queues = queues.chain(config.remote_accounts.iter().map(|account| &account.queue));
    let queues = queues.chain(config.shell.iter().map(|shell| &shell.queue));
    let queues = queues.chain(config.gateways.iter().map(|gateway| &gateway.queue));
    let queues = queues.chain(config.plugin_peers.iter().map(|peer| &peer.queue));
    for queue in queues.chain(config.networks.iter().map(|network| &network.queue)) {
        engine.apply(now, Event::Peer(queue.clone()), &mut out);
    }
    engine.apply(now, hooks_bound_event(hooks), &mut out);
    // First, because the recovery of a finished message may settle its charge.
    let record_age_time = Now { wall: core.clock.record_age_time(newest_record), ..now };
    store.recover_records(|found| {
        let now = if matches!(found, RecoveredRecord::IdempotencyKey(_)) { record_age_time } else { now };
        engine.recover_record(now, found);
    })?;
    let recovery = store.recover(|message| engine.recover(now, message, &mut out))?;
    let next = recovery.next_id;
    anyhow::ensure!(
        next == MessageId::FIRST || next.partition() == partition,
        "the data directory {} has the messages of partition {}, and [cluster] says `partition = {partition}`",
        config.appliance.data.display(),
        next.partition()
    );
    engine.finish_recovery(recovery.next_id, recovery.next_submit_row, &recovery.rows, &mut out);
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(messages = recovery.messages, ms, "recovered");
    Ok(Recovery { engine, output: out, messages: recovery.messages, ms })
}
