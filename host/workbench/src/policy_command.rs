//! `switchyard policy`: tries policy documents.

use crate::WorkbenchError;
use crate::hooks_api::{ApiArgs, binding_request};
use api::{
    ActivationRequest, ExplainRequest, PolicyTryRequest, PolicyTryView, TriedDecisionView, TriedMessageView,
};
use clap::{Args, Subcommand};
use cli::format::{list, table, value_text};
use model::Hook;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Try policy documents before they serve messages.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show the decisions of a policy document about messages, and the decisions of the live plugins. Nothing is counted,
    /// stored or sent.
    Try(TryArgs),
}

/// Arguments of `policy try`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchyard policy try router --plugin prefix-router --policy routes.toml --last 100
  switchyard policy try router --plugin prefix-router --policy routes.toml --from-account shop --destination 8613012345678")]
pub struct TryArgs {
    /// The hook: screen, router or biller.
    #[arg(value_parser = ["screen", "router", "biller"])]
    hook: String,
    /// NAME@VERSION; NAME alone is the live version.
    #[arg(long, value_name = "NAME[@VERSION]")]
    plugin: String,
    /// The policy document; default: the live policy of this plugin.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The position in the live chain of routers, from 0; replaces an earlier version of the plugin. Default: the plugin is the only
    /// one.
    #[arg(long)]
    position: Option<u64>,
    /// Other settings of the binding, as KEY=VALUE, such as grants.tables=["offers"].
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Try it with this number of newest messages of the archive, 1 to 100.
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["from_account", "source", "destination", "text"],
        required_unless_present = "destination"
    )]
    last: Option<u64>,
    /// Try it with a message from this account or peer.
    #[arg(long, value_name = "NAME", requires = "destination")]
    from_account: Option<String>,
    /// The sender of the message.
    #[arg(long, default_value = "")]
    source: String,
    /// The recipient of the message.
    #[arg(long, requires = "from_account")]
    destination: Option<String>,
    /// The text of the message.
    #[arg(long, default_value = "")]
    text: String,
    /// The appliance, and the output format.
    #[command(flatten)]
    api: ApiArgs,
}

impl PolicyCommand {
    /// Runs the command. Uses the standard streams.
    #[must_use]
    #[allow(
        clippy::print_stdout,
        clippy::print_stderr,
        reason = "a command line tool uses the standard streams"
    )]
    pub fn run(self) -> ExitCode {
        let Self::Try(args) = self;
        match args.execute() {
            Ok(text) => {
                println!("{}", text.trim_end());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("switchyard: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

impl TryArgs {
    fn execute(self) -> Result<String, WorkbenchError> {
        let Self {
            hook,
            plugin,
            policy,
            position,
            settings,
            last,
            from_account,
            source,
            destination,
            text,
            api,
        } = self;
        let hook = Hook::named(&hook).ok_or_else(|| {
            WorkbenchError::Usage(format!("{hook:?} is not a hook; use screen, router or biller"))
        })?;
        let (name, version) = match plugin.split_once('@') {
            Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
            None => (plugin, None),
        };
        let activation = binding_request(name, version, policy.as_deref(), &settings)?;
        let activation = ActivationRequest { position: activation.position.or(position), ..activation };
        let message = destination.map(|destination| {
            vec![ExplainRequest { origin: from_account.unwrap_or_default(), source, destination, text }]
        });
        let request = PolicyTryRequest { messages: message, last, message: None, activation };
        api.run(describe, |hooks| hooks.try_policy(hook, &request))
    }
}

/// The results for people: one message in detail, several in a table.
fn describe(result: &PolicyTryView) -> String {
    let mut text = match result.messages.as_slice() {
        [one] => describe_one(one),
        all => table(
            &["DIFFERENT", "MESSAGE", "TRIED", "LIVE", "COST", "PRICE", "CPU"],
            &all.iter().map(row).collect::<Vec<_>>(),
        ),
    };
    for unknown in &result.unknown {
        let _ = writeln!(
            text,
            "the policy names {} {}, which does not exist",
            unknown.kind.name(),
            value_text(&unknown.name)
        );
    }
    let count = result.messages.len();
    let _ = writeln!(text, "{} of {count} decisions differ from the live ones", result.different);
    if !result.complete {
        text.push_str("the time was up before all messages were tried; try fewer\n");
    }
    text
}

fn message(tried: &TriedMessageView) -> String {
    let TriedMessageView { origin, source, destination, .. } = tried;
    let source = if source.is_empty() { "-" } else { source };
    format!("{}: {} to {}", value_text(origin), value_text(source), value_text(destination))
}

fn decision(decision: &TriedDecisionView) -> String {
    let reason = decision.fault.as_ref().or(decision.note.as_ref());
    let reason = reason.map(|reason| format!(" ({})", value_text(reason))).unwrap_or_default();
    format!("{}{reason}", value_text(&decision.decision))
}

/// The cost of the leg that is tried first.
fn cost(decision: &TriedDecisionView) -> String {
    let first = decision.legs.iter().min_by_key(|leg| leg.rank);
    first.map_or_else(|| "-".to_owned(), |leg| amount(leg.cost.into()))
}

fn price(decision: &TriedDecisionView) -> String {
    match &decision.price {
        None => "-".to_owned(),
        Some(price) => match &price.account {
            None => "free".to_owned(),
            Some(account) => format!("{} from {}", amount(price.amount), value_text(account)),
        },
    }
}

/// Millionths as currency units.
fn amount(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn cpu(decision: &TriedDecisionView) -> String {
    format!("{} µs", decision.cpu_ns.div_ceil(1_000))
}

fn row(tried: &TriedMessageView) -> Vec<String> {
    let mark = if tried.different { "yes" } else { "no" };
    vec![
        mark.to_owned(),
        message(tried),
        decision(&tried.tried),
        decision(&tried.live),
        cost(&tried.tried),
        price(&tried.tried),
        cpu(&tried.tried),
    ]
}

fn describe_one(tried: &TriedMessageView) -> String {
    let mut rows = vec![("message", message(tried))];
    for (title, decided) in [("tried", &tried.tried), ("live", &tried.live)] {
        rows.push((title, decision(decided)));
        rows.push(("  by", value_text(&decided.by)));
        rows.push(("  cost", cost(decided)));
        rows.push(("  price", price(decided)));
        for call in &decided.host_calls {
            let key = call.key.as_ref().map(|key| format!(" {}", value_text(key))).unwrap_or_default();
            let call_name = format!("{} {}{key}", call.call, value_text(&call.name));
            rows.push(("  host", format!("{call_name}: {}", value_text(&call.answer))));
        }
        rows.push(("  cpu", cpu(decided)));
    }
    if let Some(inexact) = &tried.inexact {
        rows.push(("inexact", format!("{inexact} was not recorded")));
    }
    list(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{PluginVersionName, TriedHostCallView, TriedLegView};

    fn decided(peer: &str, cost: u32) -> TriedDecisionView {
        TriedDecisionView {
            by: Some("least-cost 0123456789ab".to_owned()),
            decision: format!("forward {peer}"),
            note: Some("cheapest".to_owned()),
            legs: vec![TriedLegView { peer: peer.to_owned(), rank: 0, weight: 1, cost }],
            price: None,
            fault: None,
            host_calls: vec![TriedHostCallView {
                call: "peer".to_owned(),
                name: peer.to_owned(),
                key: None,
                answer: "1 link, 0 queued".to_owned(),
            }],
            cpu_ns: 12_001,
        }
    }

    fn tried(messages: Vec<TriedMessageView>) -> PolicyTryView {
        let name = PluginVersionName { plugin: "least-cost".to_owned(), version: "0123456789ab".to_owned() };
        PolicyTryView {
            hook: Hook::Router,
            plugins: vec![name.clone()],
            live: vec![name],
            unknown: Vec::new(),
            different: messages.iter().filter(|message| message.different).count() as u64,
            messages,
            complete: true,
        }
    }

    fn example(different: bool) -> TriedMessageView {
        TriedMessageView {
            id: None,
            origin: "shop".to_owned(),
            source: String::new(),
            destination: "8613".to_owned(),
            tried: decided("north", 12_000),
            live: decided(if different { "south" } else { "north" }, 12_000),
            different,
            inexact: None,
        }
    }

    #[test]
    fn one_message_is_shown_in_detail() {
        let expected = "\
message  shop: - to 8613
tried    forward north (cheapest)
  by     least-cost 0123456789ab
  cost   0.012
  price  -
  host   peer north: 1 link, 0 queued
  cpu    13 µs
live     forward south (cheapest)
  by     least-cost 0123456789ab
  cost   0.012
  price  -
  host   peer south: 1 link, 0 queued
  cpu    13 µs
1 of 1 decisions differ from the live ones
";
        assert_eq!(describe(&tried(vec![example(true)])), expected);
    }

    #[test]
    fn several_messages_are_a_table() {
        let expected = "\
DIFFERENT  MESSAGE          TRIED                     LIVE                      COST   PRICE  CPU
yes        shop: - to 8613  forward north (cheapest)  forward south (cheapest)  0.012  -      13 µs
no         shop: - to 8613  forward north (cheapest)  forward north (cheapest)  0.012  -      13 µs
1 of 2 decisions differ from the live ones
";
        assert_eq!(describe(&tried(vec![example(true), example(false)])), expected);
    }

    #[test]
    fn amounts_are_in_currency_units() {
        assert_eq!([0, 1, 12_000, 5_000_000].map(amount), ["0", "0.000001", "0.012", "5"]);
    }
}
