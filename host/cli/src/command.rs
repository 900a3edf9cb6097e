//! All of the admin's commands.

use crate::doctor::Facts;
use crate::output::Streams;
use clap::Subcommand;
use std::path::Path;
use std::process::ExitCode;

/// What the daemon's program knows and its commands do not.
#[derive(Debug, Clone, Copy)]
pub struct House {
    /// The whole command line, as clap has it: for completions and man pages.
    pub command: fn() -> clap::Command,
    /// Its version.
    pub version: &'static str,
    /// Reads a configuration file over; what is wrong with it, a line each.
    pub read: fn(&Path) -> Result<Facts, String>,
}

/// The admin's commands: each is a module, and a line here.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The appliance on one screen, and what needs attention.
    Status(crate::status::StatusCommand),
    /// The appliance while you look at it: rates, times, queues by trouble, links.
    Top(crate::top::TopCommand),
    /// Find messages, show what became of one, stop one or have it tried now.
    Message(crate::message::MessageCommand),
    /// One subscriber of a GSM network: where it is, what waits for it; try its messages now, find whether it is there.
    Subscriber(crate::subscriber::SubscriberCommand),
    /// Peers: where messages go out, and how their links are.
    Peer(crate::peer::PeerCommand),
    /// Accounts: whoever submits messages.
    Account(crate::account::AccountCommand),
    /// The configuration of a running appliance: show, export, validate, apply, go back.
    Config(crate::config::ConfigCommand),
    /// Look for what is wrong with the machine, the configuration or the appliance, and say what to do.
    Doctor(crate::doctor::DoctorCommand),
    /// Take nothing new, so that what waits goes out: before an upgrade, or before the machine is taken down.
    Drain(crate::drain::DrainCommand),
    /// Queues: suspend, resume, drain, send another way, cancel, settle what is uncertain.
    Queue(crate::queue::QueueCommand),
    /// Number pools: numbers that many users share, each held by one at a time.
    Pool(crate::pool::PoolCommand),
    /// What would become of a message: each step of the decision, and the answer; nothing is sent.
    Explain(crate::explain::ExplainCommand),
    /// Messages that have ended.
    History(crate::history::HistoryCommand),
    /// Tables: rows that plugins look up.
    Table(crate::tables::TableCommand),
    /// Balances of accounts, and what is done to them.
    Ledger(crate::ledger::LedgerCommand),
    /// Which subscribers have told which senders to stop.
    OptOut(crate::opt_out::OptOutCommand),
    /// Submissions that were refused: counts since the start, and the last of each account.
    Refusals(crate::refusals::RefusalsCommand),
    /// Show or change how much is logged, until the next start.
    LogLevel(crate::log_level::LogLevelCommand),
    /// Write the whole state into one file, while traffic flows.
    Backup(crate::backup::BackupCommand),
    /// The machine below, where it is the appliance image: its system, updates, resets.
    Appliance(crate::appliance::ApplianceCommand),
    /// Log in; the commands that follow go on as this user.
    Login(crate::login::LoginCommand),
    /// Log out again.
    Logout(crate::login::LogoutCommand),
    /// Who you are to the appliance, and what you may do.
    Whoami(crate::login::WhoamiCommand),
    /// Users: people who may come in.
    User(crate::user::UserCommand),
    /// Tokens: words by which programs come in.
    Token(crate::token::TokenCommand),
    /// What was done at the admin's door, and by whom.
    Audit(crate::audit::AuditCommand),
    /// Print what completes these commands in a shell.
    Completions(crate::papers::CompletionsCommand),
    /// Write the manual pages of all commands.
    Man(crate::papers::ManCommand),
}

impl Command {
    /// Does it, speaking on the standard streams.
    #[must_use]
    pub fn run(self, house: &House) -> ExitCode {
        self.run_on(Streams::standard(), house)
    }

    pub(crate) fn run_on(self, streams: Streams, house: &House) -> ExitCode {
        match self {
            Self::Status(command) => command.run(streams),
            Self::Top(command) => command.run(streams),
            Self::Message(command) => command.run(streams),
            Self::Subscriber(command) => command.run(streams),
            Self::Peer(command) => command.run(streams),
            Self::Account(command) => command.run(streams),
            Self::Config(command) => command.run(streams),
            Self::Doctor(command) => command.run(streams, house),
            Self::Drain(command) => command.run(streams),
            Self::Queue(command) => command.run(streams),
            Self::Pool(command) => command.run(streams),
            Self::Explain(command) => command.run(streams),
            Self::History(command) => command.run(streams),
            Self::Table(command) => command.run(streams),
            Self::Ledger(command) => command.run(streams),
            Self::OptOut(command) => command.run(streams),
            Self::Refusals(command) => command.run(streams),
            Self::LogLevel(command) => command.run(streams),
            Self::Backup(command) => command.run(streams),
            Self::Appliance(command) => command.run(streams),
            Self::Login(command) => command.run(streams),
            Self::Logout(command) => command.run(streams),
            Self::Whoami(command) => command.run(streams),
            Self::User(command) => command.run(streams),
            Self::Token(command) => command.run(streams),
            Self::Audit(command) => command.run(streams),
            Self::Completions(command) => command.run(streams, house),
            Self::Man(command) => command.run(streams, house),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::stub::house;

    #[test]
    fn the_command_line_is_in_itself_consistent() {
        (house().command)().debug_assert();
    }

    /// Every command and every command of a command, with its name in full.
    fn all(command: &clap::Command, name: &str, into: &mut Vec<(String, clap::Command)>) {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let name = format!("{name} {}", inner.get_name());
            into.push((name.clone(), inner.clone()));
            all(inner, &name, into);
        }
    }

    #[test]
    fn help_says_what_is_there() {
        let mut command = (house().command)();
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
    fn every_command_says_how_it_ends_and_gives_an_example() {
        let command = (house().command)();
        for command in command.get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{}: no example: {after}", command.get_name());
            assert!(after.contains("Exit status"), "{}: no exit status: {after}", command.get_name());
        }
    }
}
