//! What is shown of pools, numbers and the door.

use crate::counts::DoorState;
use crate::door::{REDIS_VERSION, Site};
use model::{NumberStanding, NumberState, PoolSummary, Timestamp};
use resp::Reply;
use std::fmt::Write as _;
use std::time::Duration;

fn integer(value: impl TryInto<i64>) -> Reply {
    Reply::Integer(value.try_into().unwrap_or(i64::MAX))
}

fn milliseconds(time: Option<Duration>) -> Reply {
    time.map_or(Reply::Null, |time| integer(time.as_millis()))
}

fn map<const N: usize>(pairs: [(&str, Reply); N]) -> Reply {
    Reply::Map(pairs.into_iter().map(|(key, value)| (Reply::text(key), value)).collect())
}

/// `POOL.SHOW pool`.
pub(crate) fn pool(pool: &PoolSummary) -> Reply {
    let counts = &pool.counts;
    map([
        ("name", Reply::text(pool.name.as_str())),
        ("strategy", Reply::text(pool.settings.strategy.as_str())),
        ("quarantine_ms", integer(pool.settings.quarantine.as_millis())),
        ("numbers", integer(counts.total())),
        ("idle+up", integer(counts.idle_up)),
        ("idle+down", integer(counts.idle_down)),
        ("busy+up", integer(counts.busy_up)),
        ("busy+down", integer(counts.busy_down)),
        ("ready", integer(pool.ready)),
        ("next_ms", milliseconds(pool.next)),
        ("entries", integer(pool.entries)),
        ("given", integer(pool.given)),
        ("none", integer(pool.none)),
        ("lapsed", integer(pool.lapsed)),
    ])
}

/// `POOL.SHOW pool number`.
pub(crate) fn number(standing: &NumberStanding, now: Timestamp) -> Reply {
    let row = &standing.row;
    let left = row.ends.map(|ends| Duration::from_millis(ends.0.saturating_sub(now.0)));
    let held = matches!(row.state, NumberState::BusyUp | NumberState::BusyDown);
    map([
        ("number", Reply::text(&standing.number.to_string())),
        ("state", Reply::text(row.state.as_str())),
        ("since_ms", integer(row.since.0)),
        ("holder", Reply::text(&row.holder)),
        ("reason", Reply::text(&row.reason)),
        ("ticket", standing.ticket().map_or(Reply::Null, |ticket| integer(ticket.0))),
        ("lease_left_ms", milliseconds(left.filter(|_| held))),
        ("rest_left_ms", milliseconds(left.filter(|_| !held))),
        ("message", row.message.map_or(Reply::Null, |message| Reply::text(&message.to_string()))),
        ("weight", integer(row.weight)),
        ("calls", integer(row.calls)),
        ("held_s", integer(row.held)),
        ("lapsed", integer(row.lapsed)),
    ])
}

/// `INFO`, with these sections only if there are any. Pools are those that the client may see.
pub(crate) fn info(sections: &[String], site: &Site, state: DoorState, pools: &[PoolSummary]) -> Reply {
    let wants = |name: &str| {
        let fits = |section: &String| {
            matches!(section.as_str(), "all" | "everything" | "default") || section == name
        };
        sections.is_empty() || sections.iter().any(fits)
    };
    let sum = |of: fn(&PoolSummary) -> u64| pools.iter().map(of).sum::<u64>();
    let mut parts = Vec::new();
    if wants("server") {
        let uptime = site.since.elapsed().as_secs();
        parts.push(format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:cluster\r\nswitchyard_version:{}\r\n\
             process_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            site.port,
            uptime / 86_400,
        ));
    }
    if wants("clients") {
        let (open, most) = (state.open, site.connections);
        parts.push(format!("# Clients\r\nconnected_clients:{open}\r\nmaxclients:{most}\r\n"));
    }
    if wants("stats") {
        parts.push(format!(
            "# Stats\r\ntotal_connections_received:{}\r\nrejected_connections:{}\r\ntotal_commands_processed:{}\r\n\
             acl_access_denied_auth:{}\r\nacl_access_denied_cmd:{}\r\nnumbers_given:{}\r\n\
             calls_without_a_number:{}\r\nleases_lapsed:{}\r\n",
            state.connections,
            state.turned_away,
            state.requests,
            state.wrong_passwords,
            state.denied,
            sum(|pool| pool.given),
            sum(|pool| pool.none),
            sum(|pool| pool.lapsed),
        ));
    }
    if wants("cluster") {
        parts.push("# Cluster\r\ncluster_enabled:1\r\n".to_owned());
    }
    if wants("pools") || wants("keyspace") {
        let numbers = sum(|pool| pool.counts.total() as u64);
        let mut part = format!("# Pools\r\npools:{}\r\nnumbers:{numbers}\r\n", pools.len());
        for (index, pool) in pools.iter().enumerate() {
            let counts = &pool.counts;
            // Writing to a text cannot fail. The name comes last: it may hold commas.
            let _ = write!(
                part,
                "pool{index}:numbers={},idle_up={},idle_down={},busy_up={},busy_down={},ready={},name={}\r\n",
                counts.total(),
                counts.idle_up,
                counts.idle_down,
                counts.busy_up,
                counts.busy_down,
                pool.ready,
                pool.name
            );
        }
        parts.push(part);
    }
    Reply::Prose(parts.join("\r\n").into_bytes().into())
}
