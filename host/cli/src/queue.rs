//! `switchyard queue`: the queues, and an admin's actions on them.

mod render;

use crate::format::plural;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::paged_list::{fetch_pages, remark_missing};
use api::{
    AllQueuesView, PaceBucketView, QueueActionKindView as Kind, QueueActionPreview, QueueActionRequest,
    QueueActionScopeView, QueueActionView, QueueView, SettleUncertainRequest, UncertainRemedy,
};
use clap::{Args, Subcommand};
use client::ApiClient;
use model::parse_duration;
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard queue list
  switchyard queue list --partition all
  switchyard queue suspend --peer upstream --why 'maintenance at the peer'
  switchyard queue resume --peer upstream
  switchyard queue reroute --peer upstream --to spare
  switchyard queue cancel --account acme --prefix 4179 --older-than 2h --undo-within 10m
  switchyard queue undo 4
  switchyard queue settle --peer upstream --send-again"
);

/// Arguments of `queue`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct QueueCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

/// The scope of a queue action: messages that match all given criteria.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ScopeArgs {
    /// Messages that wait for this peer.
    #[arg(long)]
    peer: Option<String>,
    /// Messages that this account submitted.
    #[arg(long)]
    account: Option<String>,
    /// Messages whose destination begins with this prefix.
    #[arg(long)]
    prefix: Option<String>,
    /// Messages accepted at least this long ago: 30s, 5m, 1h, 2d.
    #[arg(long, value_name = "TIME")]
    older_than: Option<String>,
}

impl From<ScopeArgs> for QueueActionScopeView {
    fn from(ScopeArgs { peer, account, prefix, older_than }: ScopeArgs) -> Self {
        Self { peer, account, prefix, older_than }
    }
}

#[derive(Debug, Args)]
struct ActionArgs {
    /// The reason.
    #[arg(long, default_value = "")]
    why: String,
    /// Do not preview the action, and do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all queues, with the reasons why they are blocked.
    List,
    /// Hold waiting and new messages until they are resumed.
    Suspend {
        #[command(flatten)]
        scope_args: ScopeArgs,
        #[command(flatten)]
        action_args: ActionArgs,
    },
    /// End the suspensions and drains with exactly this scope.
    Resume {
        #[command(flatten)]
        scope_args: ScopeArgs,
    },
    /// Accept no new messages for a peer, and send the waiting ones.
    Drain {
        /// The peer.
        #[arg(long)]
        peer: String,
        #[command(flatten)]
        action_args: ActionArgs,
    },
    /// Reroute waiting and new messages to another peer.
    Reroute {
        #[command(flatten)]
        scope_args: ScopeArgs,
        /// The other peer.
        #[arg(long)]
        to: String,
        #[command(flatten)]
        action_args: ActionArgs,
    },
    /// Cancel the messages that wait now. They are held first; while they are held, you can undo the action.
    Cancel {
        #[command(flatten)]
        scope_args: ScopeArgs,
        /// How long you can undo the action, at most 1d.
        #[arg(long, value_name = "TIME", default_value = "1m")]
        undo_within: String,
        #[command(flatten)]
        action_args: ActionArgs,
    },
    /// Cancel the messages that wait now, and drop DLRs that wait for submitters.
    Purge {
        #[command(flatten)]
        scope_args: ScopeArgs,
        /// How long you can undo the action, at most 1d.
        #[arg(long, value_name = "TIME", default_value = "1m")]
        undo_within: String,
        #[command(flatten)]
        action_args: ActionArgs,
    },
    /// List the pace buckets: their tokens, and the number of messages that wait for each.
    PaceBuckets,
    /// Show the active queue actions, newest first.
    Actions {
        /// Show finished and undone queue actions as well.
        #[arg(long)]
        all: bool,
    },
    /// Undo queue actions: the messages that they hold are released.
    Undo {
        /// The numbers of the queue actions.
        #[arg(required = true)]
        actions: Vec<u32>,
    },
    /// List messages that were submitted to a peer and never answered.
    Uncertain {
        /// Only messages of this peer.
        #[arg(long)]
        peer: Option<String>,
        /// Maximum number of entries.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Settle uncertain messages, by peer or by id.
    #[command(group = clap::ArgGroup::new("remedy").required(true).args(["send_again", "give_up"]))]
    Settle {
        /// All uncertain messages of this peer.
        #[arg(long, required_unless_present = "ids", conflicts_with = "ids")]
        peer: Option<String>,
        /// Their ids.
        ids: Vec<String>,
        /// Send them again; they may arrive twice.
        #[arg(long)]
        send_again: bool,
        /// Finish them with state unknown; they may have arrived.
        #[arg(long)]
        give_up: bool,
    },
}

impl QueueCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        let action = |action: Kind, scope: QueueActionScopeView| QueueActionRequest {
            action,
            scope,
            to: None,
            why: None,
            undo_within: None,
        };
        match self {
            Self::List if api.asks_all_partitions() => {
                let all: AllQueuesView = api.read("/v1/queues")?;
                render::print_all_queues(output, &all)?;
                remark_missing(output, &all.missing);
                Ok(())
            }
            Self::List => render::print_queues(output, &api.read::<Vec<QueueView>>("/v1/queues")?),
            Self::PaceBuckets => {
                render::print_pace_buckets(output, &api.read::<Vec<PaceBucketView>>("/v1/pace-buckets")?)
            }
            Self::Suspend { scope_args, action_args } => {
                start_action(api, output, action(Kind::Suspend, scope_args.into()), action_args)
            }
            Self::Resume { scope_args } => resume(api, output, scope_args.into()),
            Self::Drain { peer, action_args } => {
                let scope = QueueActionScopeView { peer: Some(peer), ..QueueActionScopeView::default() };
                start_action(api, output, action(Kind::Drain, scope), action_args)
            }
            Self::Reroute { scope_args, to, action_args } => {
                let request = action(Kind::Reroute, scope_args.into());
                start_action(api, output, QueueActionRequest { to: Some(to), ..request }, action_args)
            }
            Self::Cancel { scope_args, undo_within, action_args } => {
                let undo_within = Some(undo_within);
                let request = action(Kind::Cancel, scope_args.into());
                start_action(api, output, QueueActionRequest { undo_within, ..request }, action_args)
            }
            Self::Purge { scope_args, undo_within, action_args } => {
                let undo_within = Some(undo_within);
                let request = action(Kind::Purge, scope_args.into());
                start_action(api, output, QueueActionRequest { undo_within, ..request }, action_args)
            }
            Self::Actions { all } => {
                let mut actions: Vec<QueueActionView> = api.read("/v1/queue-actions")?;
                actions.retain(|action| all || action.state.is_active());
                render::print_actions(output, &actions)
            }
            Self::Undo { actions } => actions.into_iter().try_for_each(|id| undo(api, output, id)),
            Self::Uncertain { peer, limit } => {
                let query: Vec<(&str, String)> = peer.map(|peer| ("peer", peer)).into_iter().collect();
                render::print_uncertain(output, &fetch_pages(api, "/v1/uncertain", &query, limit)?)
            }
            Self::Settle { peer, ids, send_again, .. } => {
                let remedy = if send_again { UncertainRemedy::SendAgain } else { UncertainRemedy::GiveUp };
                let ids = peer.is_none().then_some(ids);
                let request = SettleUncertainRequest { remedy, peer, ids };
                render::print_settled(output, &api.call("POST", "/v1/uncertain/settle", &request)?)
            }
        }
    }
}

/// Previews a queue action, asks for confirmation and starts it.
fn start_action(
    api: &ApiClient,
    output: &Output,
    mut request: QueueActionRequest,
    action_args: ActionArgs,
) -> Result<(), Failure> {
    request.why = Some(action_args.why).filter(|why| !why.is_empty());
    if !action_args.yes {
        let preview: QueueActionPreview = api.call("POST", "/v1/queue-actions/preview", &request)?;
        output.remark(&render::preview_text(&request, &preview));
        confirm(output)?;
    }
    render::print_action(output, &api.call("POST", "/v1/queue-actions", &request)?)
}

/// Ends or undoes a queue action.
fn undo(api: &ApiClient, output: &Output, id: u32) -> Result<(), Failure> {
    let path = format!("/v1/queue-actions/{id}");
    render::print_action(output, &api.typed(&path, api.delete(&path)?)?)
}

/// Asks for confirmation.
fn confirm(output: &Output) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        let what = "standard input is not a terminal: use --yes to skip the confirmation";
        return Err(Failure::Usage(what.to_owned()));
    }
    output.remark("continue? [y/N]");
    let mut answer = String::new();
    // An error counts as "no".
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::Refused("nothing was done".to_owned()))
}

/// A scope in normal form, so that scopes can be compared.
fn normalized(mut scope: QueueActionScopeView) -> QueueActionScopeView {
    if let Some(age) = scope.older_than.as_deref().and_then(parse_duration) {
        // The appliance rounds up to whole seconds.
        scope.older_than = Some(age.as_millis().div_ceil(1000).to_string());
    }
    if let Some(prefix) = &scope.prefix {
        scope.prefix = Some(prefix.trim_start_matches('+').to_owned());
    }
    scope
}

/// Ends the suspensions and drains with exactly this scope.
fn resume(api: &ApiClient, output: &Output, scope: QueueActionScopeView) -> Result<(), Failure> {
    let scope = normalized(scope);
    let mut actions: Vec<QueueActionView> = api.read("/v1/queue-actions")?;
    actions.retain(|action| {
        action.state.is_active()
            && matches!(action.action, Kind::Suspend | Kind::Drain)
            && normalized(action.scope.clone()) == scope
    });
    if actions.is_empty() {
        let what = "no suspension and no drain has exactly this scope; see `switchyard queue actions`";
        return Err(Failure::Refused(what.to_owned()));
    }
    for action in &actions {
        undo(api, output, action.id)?;
    }
    if !output.json {
        output.line(&format!("{} undone", plural(actions.len() as u64, "queue action", "queue actions")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures::queue;
    use api::{
        AllQueuesView, MessageStateView, MissingPartitionView, PaceBucketView, PartitionRow,
        QueueActionPreview, QueueActionScopeView, QueueActionStateView as State, QueueActionView, QueueView,
        SettleUncertainResult, UncertainPageView, UncertainView,
    };
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn action(id: u32, action: Kind, state: State) -> QueueActionView {
        QueueActionView {
            id,
            action,
            scope: QueueActionScopeView {
                peer: Some("upstream".to_owned()),
                ..QueueActionScopeView::default()
            },
            to: None,
            by: "ada".to_owned(),
            why: "cable\u{1b}[31m cut".to_owned(),
            at: NOW,
            state,
            undo_until: None,
            affected: 0,
            held: 1_200,
        }
    }

    #[test]
    fn a_queue_action_is_started_and_shown() {
        let api =
            FakeApi::default().with("POST /v1/queue-actions", 201, &action(4, Kind::Suspend, State::Active));
        let url = api.start();
        let done = run(&url, &["queue", "suspend", "--peer", "upstream", "--why", "cable cut", "--yes"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("queue_action", done.out);
        let requests = api.requests();
        let body: Value = serde_json::from_str(&requests[0].body).unwrap();
        assert_eq!(body, json!({ "action": "suspend", "scope": { "peer": "upstream" }, "why": "cable cut" }));
    }

    #[test]
    fn without_a_terminal_and_without_yes_no_action_starts() {
        let preview = QueueActionPreview {
            messages: 3,
            by_state: BTreeMap::from([("queued".to_owned(), 2), ("deferred".to_owned(), 1)]),
            sample: Vec::new(),
            complete: true,
        };
        let api = FakeApi::default().with("POST /v1/queue-actions/preview", 200, &preview);
        let url = api.start();
        let done = run(&url, &["queue", "cancel", "--account", "acme", "--older-than", "2h"]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(done.error.contains("3 messages") && done.error.contains("--yes"), "{}", done.error);
        let requests: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
        assert_eq!(requests, ["POST /v1/queue-actions/preview"]);
    }

    #[test]
    fn the_queues_of_all_partitions_name_theirs_and_a_missing_one_is_named() {
        let one = |partition| PartitionRow { partition, row: QueueView { queued: 7, ..queue("upstream") } };
        let missing = MissingPartitionView { partition: 2, reason: "no node leads it".to_owned() };
        let all = AllQueuesView { queues: vec![one(0), one(1)], missing: vec![missing] };
        let api = FakeApi::default().with("GET /v1/queues", 200, &all);
        let url = api.start();
        let done = run(&url, &["queue", "list", "--partition", "all"]);
        assert_eq!(done.code, 0, "{}", done.error);
        let lines: Vec<&str> = done.out.lines().collect();
        assert!(lines[0].starts_with("PARTITION  PEER") && lines.len() == 3, "{}", done.out);
        assert!(lines[1].starts_with("0          upstream") && lines[2].starts_with("1          upstream"));
        assert_eq!(done.error, "switchyard: partition 2 is missing: no node leads it\n");
    }

    #[test]
    fn lists_are_tables() {
        let queues = [QueueView {
            queued: 1_200,
            suspended: 7,
            paced: 0,
            deferred: 3,
            in_flight: 5,
            uncertain: 2,
            awaiting_dlr: 40,
            oldest: Some(NOW - 61_000),
            links: 2,
            blocked_by: "suspended by ada: cable cut (queue action 4)".to_owned(),
            ..queue("upstream")
        }];
        let uncertain = UncertainPageView {
            messages: vec![UncertainView {
                id: "1000000007".to_owned(),
                peer: "upstream".to_owned(),
                account: "acme".to_owned(),
                source: "10655".to_owned(),
                destination: "8613*******00".to_owned(),
                at: NOW - 61_000,
                since: Some(NOW - 60_000),
                until: Some(NOW + 60_000),
                state: MessageStateView::Uncertain,
                attempts: 1,
                length: 12,
            }],
            next: None,
        };
        let api = FakeApi::default()
            .with("GET /v1/queues", 200, &queues)
            .with(
                "GET /v1/queue-actions",
                200,
                &[action(4, Kind::Suspend, State::Active), action(3, Kind::Cancel, State::Done)],
            )
            .with("GET /v1/uncertain?limit=100&peer=upstream", 200, &uncertain)
            .with(
                "GET /v1/pace-buckets",
                200,
                &[PaceBucketView {
                    name: "brand-b1".to_owned(),
                    by_plugin: true,
                    amount: 2_000,
                    counts: "segments".to_owned(),
                    tokens: 0,
                    day_ends: Some(NOW + 60_000),
                    waiting: 12,
                    next_token: Some(NOW + 60_000),
                }],
            )
            .with("POST /v1/uncertain/settle", 200, &SettleUncertainResult { settled: 2, skipped: 1 });
        let url = api.start();
        let mut text = String::new();
        for line in [
            &["queue", "list"][..],
            &["queue", "pace-buckets"],
            &["queue", "actions"],
            &["queue", "actions", "--all"],
            &["queue", "uncertain", "--peer", "upstream"],
            &["queue", "settle", "--peer", "upstream", "--give-up"],
        ] {
            let done = run(&url, line);
            assert_eq!((done.code, done.error.as_str()), (0, ""), "{line:?}");
            text.push_str(&format!("$ switchyard {}\n{}\n", line.join(" "), done.out));
        }
        insta::assert_snapshot!("queue_lists", text);
    }

    #[test]
    fn resume_ends_actions_with_exactly_its_scope() {
        let api = FakeApi::default()
            .with(
                "GET /v1/queue-actions",
                200,
                &[action(4, Kind::Suspend, State::Active), action(3, Kind::Suspend, State::Undone)],
            )
            .with("DELETE /v1/queue-actions/4", 200, &action(4, Kind::Suspend, State::Undone));
        let url = api.start();
        let done = run(&url, &["queue", "resume", "--peer", "upstream"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        assert!(done.out.ends_with("1 queue action undone\n"), "{}", done.out);
        let done = run(&url, &["queue", "resume", "--peer", "upstream", "--prefix", "41"]);
        assert_eq!(done.code, 1, "{done:?}");
        let done = run(&url, &["queue", "resume"]);
        assert_eq!(done.code, 2, "{done:?}");
    }
}
