//! Replies about pools, numbers and the server.

use crate::counts::RedisServerState;
use crate::server_state::{REDIS_VERSION, ServerInfo};
use model::{NumberState, NumberStatus, PoolSummary, Timestamp};
use resp::RespReply;
use std::fmt::Write as _;
use std::time::Duration;

fn integer(value: impl TryInto<i64>) -> RespReply {
    RespReply::Integer(value.try_into().unwrap_or(i64::MAX))
}

fn milliseconds(time: Option<Duration>) -> RespReply {
    time.map_or(RespReply::Null, |time| integer(time.as_millis()))
}

fn map<const N: usize>(pairs: [(&str, RespReply); N]) -> RespReply {
    RespReply::Map(pairs.into_iter().map(|(key, value)| (RespReply::text(key), value)).collect())
}

/// `POOL.SHOW pool`.
pub(crate) fn pool_reply(pool: &PoolSummary) -> RespReply {
    let counts = &pool.counts;
    map([
        ("name", RespReply::text(pool.name.as_str())),
        ("strategy", RespReply::text(pool.settings.strategy.as_str())),
        ("quarantine_ms", integer(pool.settings.quarantine.as_millis())),
        ("numbers", integer(counts.total())),
        ("idle+up", integer(counts.idle_up)),
        ("idle+down", integer(counts.idle_down)),
        ("busy+up", integer(counts.busy_up)),
        ("busy+down", integer(counts.busy_down)),
        ("ready", integer(pool.ready)),
        ("next_ms", milliseconds(pool.next)),
        ("entries", integer(pool.entries)),
        ("given", integer(pool.acquired)),
        ("none", integer(pool.none)),
        ("lapsed", integer(pool.lapsed)),
    ])
}

/// `POOL.SHOW pool number`.
pub(crate) fn number_reply(standing: &NumberStatus, now: Timestamp) -> RespReply {
    let row = &standing.row;
    let remaining = row.ends.map(|ends| Duration::from_millis(ends.0.saturating_sub(now.0)));
    let blocked = matches!(row.state, NumberState::BusyUp | NumberState::BusyDown);
    map([
        ("number", RespReply::text(&standing.number.to_string())),
        ("state", RespReply::text(row.state.as_str())),
        ("since_ms", integer(row.since.0)),
        ("holder", RespReply::text(&row.holder)),
        ("reason", RespReply::text(&row.reason)),
        ("ticket", standing.ticket().map_or(RespReply::Null, |ticket| integer(ticket.0))),
        ("lease_left_ms", milliseconds(remaining.filter(|_| blocked))),
        ("rest_left_ms", milliseconds(remaining.filter(|_| !blocked))),
        ("message", row.message.map_or(RespReply::Null, |message| RespReply::text(&message.to_string()))),
        ("weight", integer(row.weight)),
        ("calls", integer(row.calls)),
        ("held_s", integer(row.held)),
        ("lapsed", integer(row.lapsed)),
    ])
}

/// `INFO`, restricted to these sections if any are given. `pools` are the pools that the client may see.
pub(crate) fn info_reply(
    sections: &[String],
    server: &ServerInfo,
    state: RedisServerState,
    pools: &[PoolSummary],
) -> RespReply {
    let includes = |name: &str| {
        let fits = |section: &String| {
            matches!(section.as_str(), "all" | "everything" | "default") || section == name
        };
        sections.is_empty() || sections.iter().any(fits)
    };
    let sum = |of: fn(&PoolSummary) -> u64| pools.iter().map(of).sum::<u64>();
    let mut sections_text = Vec::new();
    if includes("server") {
        let uptime = server.started_at.elapsed().as_secs();
        sections_text.push(format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:cluster\r\nswitchyard_version:{}\r\n\
             process_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            server.port,
            uptime / 86_400,
        ));
    }
    if includes("clients") {
        let (open, limit) = (state.open, server.connections);
        sections_text.push(format!("# Clients\r\nconnected_clients:{open}\r\nmaxclients:{limit}\r\n"));
    }
    if includes("stats") {
        sections_text.push(format!(
            "# Stats\r\ntotal_connections_received:{}\r\nrejected_connections:{}\r\ntotal_commands_processed:{}\r\n\
             acl_access_denied_auth:{}\r\nacl_access_denied_cmd:{}\r\nnumbers_given:{}\r\n\
             calls_without_a_number:{}\r\nleases_lapsed:{}\r\n",
            state.connections,
            state.turned_away,
            state.requests,
            state.wrong_passwords,
            state.denied,
            sum(|pool| pool.acquired),
            sum(|pool| pool.none),
            sum(|pool| pool.lapsed),
        ));
    }
    if includes("cluster") {
        sections_text.push("# Cluster\r\ncluster_enabled:1\r\n".to_owned());
    }
    if includes("pools") || includes("keyspace") {
        let numbers = sum(|pool| pool.counts.total() as u64);
        let mut part = format!("# Pools\r\npools:{}\r\nnumbers:{numbers}\r\n", pools.len());
        for (index, pool) in pools.iter().enumerate() {
            let counts = &pool.counts;
            // Writing to a string cannot fail. The name is last, since it may contain commas.
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
        sections_text.push(part);
    }
    RespReply::Verbatim(sections_text.join("\r\n").into_bytes().into())
}
