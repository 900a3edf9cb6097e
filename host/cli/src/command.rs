//! The command line of the admin's commands.

use crate::context::CliContext;
use crate::output::Streams;
use clap::Subcommand;
use std::process::ExitCode;

/// The admin's commands, one module each.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Show the appliance on one screen, and what needs attention.
    Status(crate::status::StatusCommand),
    /// Watch the appliance: rates, latencies, queues by trouble, links.
    Top(crate::top::TopCommand),
    /// Print messages and findings as they occur: new messages, changes of their states, findings that need attention.
    Tail(crate::tail::TailCommand),
    /// Find messages, show or trace one, cancel or retry messages.
    Message(crate::message::MessageCommand),
    /// Show one subscriber of a GSM network, retry its messages, or send it a silent short message.
    Subscriber(crate::subscriber::SubscriberCommand),
    /// Manage peers, and show the state of their links and queues.
    Peer(crate::peer::PeerCommand),
    /// Manage accounts, which submit messages.
    Account(crate::account::AccountCommand),
    /// Manage the configuration of a running appliance: show, export, validate, apply, roll back.
    Config(crate::config::ConfigCommand),
    /// Check the machine, the configuration and the appliance for problems, and print remedies.
    Doctor(crate::doctor::DoctorCommand),
    /// Accept no new messages while waiting messages are sent: before an upgrade or a shutdown.
    Drain(crate::drain::DrainCommand),
    /// Show the nodes of the cluster, and hand over the lead.
    Cluster(crate::cluster::ClusterCommand),
    /// Manage queues: suspend, resume, drain, reroute, cancel; settle uncertain messages.
    Queue(crate::queue::QueueCommand),
    /// Manage the quarantine: list, release and purge messages that a screen keeps.
    Quarantine(crate::quarantine::QuarantineCommand),
    /// Manage number pools: numbers that many users share, each leased by one user at a time.
    Pool(crate::pool::PoolCommand),
    /// Show how a message would be routed: each step of the decision, and the answer; nothing is sent.
    Explain(crate::explain::ExplainCommand),
    /// List finished messages.
    History(crate::history::HistoryCommand),
    /// Manage lookup tables, which plugins read.
    Table(crate::table::TableCommand),
    /// Show and change the balances of ledger accounts.
    Ledger(crate::ledger::LedgerCommand),
    /// Manage opt-outs: subscribers that receive nothing from a sender.
    OptOut(crate::opt_out::OptOutCommand),
    /// Erase all data of one number: the contents of its finished messages, and the number in them. This cannot be undone.
    Erase(crate::erase::EraseCommand),
    /// Show refused submissions: counts since the start, and the most recent ones of each account.
    Refusals(crate::refusals::RefusalsCommand),
    /// Show or change the log level until the next start.
    LogLevel(crate::log_level::LogLevelCommand),
    /// Write the whole state into one file while traffic flows.
    Backup(crate::backup::BackupCommand),
    /// Manage the appliance image: its system, updates and resets.
    Appliance(crate::appliance::ApplianceCommand),
    /// Log in; later commands run as this user.
    Login(crate::login::LoginCommand),
    /// Log out.
    Logout(crate::login::LogoutCommand),
    /// Manage names for several appliances, and choose the one that commands use.
    Context(crate::contexts::ContextCommand),
    /// Show your user name, role and permissions.
    Whoami(crate::login::WhoamiCommand),
    /// Manage users.
    User(crate::user::UserCommand),
    /// Manage API tokens, with which programs authenticate.
    Token(crate::token::TokenCommand),
    /// List tenants.
    Tenant(crate::tenant::TenantCommand),
    /// Show the audit log: changes, refused requests and reads of message texts.
    Audit(crate::audit::AuditCommand),
    /// Print a completion script for a shell.
    Completions(crate::completions::CompletionsCommand),
    /// Write the manual pages of all commands.
    Man(crate::completions::ManCommand),
}

impl CliCommand {
    /// Runs the command on the standard streams.
    #[must_use]
    pub fn run(self, context: &CliContext) -> ExitCode {
        self.run_on(Streams::standard(), context)
    }

    pub(crate) fn run_on(self, streams: Streams, context: &CliContext) -> ExitCode {
        match self {
            Self::Status(command) => command.run(streams),
            Self::Top(command) => command.run(streams),
            Self::Tail(command) => command.run(streams),
            Self::Message(command) => command.run(streams),
            Self::Subscriber(command) => command.run(streams),
            Self::Peer(command) => command.run(streams),
            Self::Account(command) => command.run(streams),
            Self::Config(command) => command.run(streams),
            Self::Doctor(command) => command.run(streams, context),
            Self::Drain(command) => command.run(streams),
            Self::Cluster(command) => command.run(streams),
            Self::Queue(command) => command.run(streams),
            Self::Quarantine(command) => command.run(streams),
            Self::Pool(command) => command.run(streams),
            Self::Explain(command) => command.run(streams),
            Self::History(command) => command.run(streams),
            Self::Table(command) => command.run(streams),
            Self::Ledger(command) => command.run(streams),
            Self::OptOut(command) => command.run(streams),
            Self::Erase(command) => command.run(streams),
            Self::Refusals(command) => command.run(streams),
            Self::LogLevel(command) => command.run(streams),
            Self::Backup(command) => command.run(streams),
            Self::Appliance(command) => command.run(streams),
            Self::Login(command) => command.run(streams),
            Self::Logout(command) => command.run(streams),
            Self::Whoami(command) => command.run(streams),
            Self::Context(command) => command.run(streams),
            Self::User(command) => command.run(streams),
            Self::Token(command) => command.run(streams),
            Self::Tenant(command) => command.run(streams),
            Self::Audit(command) => command.run(streams),
            Self::Completions(command) => command.run(streams, context),
            Self::Man(command) => command.run(streams, context),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::context;

    #[test]
    fn the_command_line_is_consistent() {
        (context().command)().debug_assert();
    }

    /// All commands and subcommands, with their full names.
    fn all(command: &clap::Command, name: &str, into: &mut Vec<(String, clap::Command)>) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let name = format!("{name} {}", inner.get_name());
            into.push((name.clone(), inner.clone()));
            all(inner, &name, into);
        }
    }

    #[test]
    fn the_help_of_all_commands_matches_the_snapshot() {
        let mut command = (context().command)();
        command.build();
        let mut commands = Vec::new();
        all(&command, "switchyard", &mut commands);
        let mut text = command.render_long_help().to_string();
        for (name, mut command) in commands {
            text.push_str(&format!("\n==== {name} ====\n{}", command.render_long_help()));
        }
        insta::assert_snapshot!("help", text);
    }

    #[test]
    fn every_command_documents_exit_statuses_and_an_example() {
        let command = (context().command)();
        for command in command.get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{}: no example: {after}", command.get_name());
            assert!(after.contains("Exit status"), "{}: no exit status: {after}", command.get_name());
        }
    }
}
