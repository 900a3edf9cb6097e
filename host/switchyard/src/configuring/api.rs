//! The configuration as the API asks for it.

use super::{Configuring, Origin, State, effects, misplaced, refused, shown, unreadable};
use crate::appliance::Switchyard;
use crate::config::Mode;
use admin::{
    Applied, Checked, ConfigurationWaits, Current, Difference, Kind, ManagedBy, OneVersion, Order, Problem,
    VersionSummary, Wanted,
};
use configuration::{Summary, Version};
use serde_json::Value;

fn summary(summary: Summary) -> VersionSummary {
    let Summary { version, at, by, why, changes, .. } = summary;
    VersionSummary { version, at, by, why, changes }
}

impl Configuring {
    fn version(&self, version: u64) -> Result<Version, Problem> {
        let found = self.versions.get(version).map_err(|error| unreadable(&error))?;
        found.ok_or_else(|| {
            let what = format!(
                "there is no version {version}, or no longer; GET /v1/configuration/versions lists them"
            );
            Problem::new(Kind::NotFound, what)
        })
    }

    /// The document that somebody wants, as it would be.
    fn wanted(&self, state: &State, wanted: Wanted) -> Result<Value, Problem> {
        Ok(match wanted {
            Wanted::Document(document) => document,
            Wanted::Patch(patch) => configuration::merge(&state.document, &patch),
            Wanted::Version(version) => {
                let mut document = self.version(version)?.document;
                super::keep_own(&mut document, &state.document);
                document
            }
        })
    }

    fn current(&self) -> Current {
        let state = self.state.lock();
        let mut document = state.document.clone();
        configuration::hide(&mut document);
        let waits = configuration::diff(&self.started_with, &state.document);
        Current {
            version: state.summary.version,
            at: state.summary.at,
            by: state.summary.by.clone(),
            why: state.summary.why.clone(),
            mode: match self.mode {
                Mode::Api => ManagedBy::Api,
                Mode::File => ManagedBy::File,
            },
            pending: state.waiting.as_ref().map(super::Waiting::shown),
            restart: shown(waits).1,
            document,
        }
    }

    fn waits(&self) -> ConfigurationWaits {
        let state = self.state.lock();
        let unconfirmed = state.waiting.as_ref();
        let changes = configuration::diff(&self.started_with, &state.document);
        ConfigurationWaits {
            unconfirmed: unconfirmed.map(|waiting| (waiting.version, state.summary.at, waiting.reverts_at)),
            restart: changes.iter().filter(|change| effects::of(change).restart).count(),
        }
    }

    fn check(&self, wanted: Wanted) -> Result<Checked, Problem> {
        let state = self.state.lock();
        let mut document = self.wanted(&state, wanted)?;
        let mut problems = self.complete(&state, &mut document);
        if let Err(found) = self.read(&state, &document) {
            // What could not be completed is told once.
            let known: Vec<_> = problems.iter().map(|problem| problem.pointer.clone()).collect();
            problems.extend(found.into_iter().filter(|problem| !known.contains(&problem.pointer)));
        }
        let (changes, restart) = shown(configuration::diff(&state.document, &document));
        Ok(Checked { valid: problems.is_empty(), problems: misplaced(problems), changes, restart })
    }

    fn change(&self, wanted: Wanted, order: Order) -> Result<Applied, Problem> {
        if self.mode == Mode::File {
            let what = format!(
                "the configuration is managed by the file {}: change it there, and send SIGHUP",
                self.file.display()
            );
            return Err(Problem::new(Kind::Conflict, what));
        }
        let mut state = self.state.lock();
        if order.expected != state.summary.version {
            let what = format!(
                "version {} is in force by now, brought by {}; read it, and make the change of it",
                state.summary.version, state.summary.by
            );
            return Err(Problem::new(Kind::Outdated, what));
        }
        if let Some(waiting) = &state.waiting {
            let what = format!(
                "version {} waits to be confirmed: POST /v1/configuration/confirm or /v1/configuration/revert first",
                waiting.version
            );
            return Err(Problem::new(Kind::Conflict, what));
        }
        let mut document = self.wanted(&state, wanted)?;
        let mut problems = self.complete(&state, &mut document);
        let config = match self.read(&state, &document) {
            Ok(config) if problems.is_empty() => config,
            Ok(_) => return Err(refused(problems)),
            Err(found) => {
                let known: Vec<_> = problems.iter().map(|problem| problem.pointer.clone()).collect();
                problems.extend(found.into_iter().filter(|problem| !known.contains(&problem.pointer)));
                return Err(refused(problems));
            }
        };
        let Order { by, why, confirm_within, .. } = order;
        let origin = Origin { by: by.to_string(), why, confirm_within };
        self.put_in_force(&mut state, document, config, origin)
    }

    fn differences(&self, from: u64, to: u64) -> Result<Vec<Difference>, Problem> {
        let (from, to) = (self.version(from)?, self.version(to)?);
        let mut changes = configuration::diff(&from.document, &to.document);
        configuration::hide_changes(&mut changes);
        let told = changes.into_iter().map(|change| Difference {
            pointer: change.pointer(),
            before: change.before,
            after: change.after,
        });
        Ok(told.collect())
    }

    fn confirm(&self, version: u64, by: &str) -> Result<(), Problem> {
        let mut state = self.state.lock();
        match &state.waiting {
            Some(waiting) if waiting.version == version => {
                self.versions.confirm().map_err(|error| unreadable(&error))?;
                state.waiting = None;
                tracing::info!(version, by, "configuration confirmed");
                Ok(())
            }
            Some(waiting) => {
                let what = format!("version {} waits to be confirmed, and not {version}", waiting.version);
                Err(Problem::new(Kind::Conflict, what))
            }
            None => Err(Problem::new(Kind::Conflict, "no version waits to be confirmed")),
        }
    }
}

impl admin::Configuration for Switchyard {
    fn configuration(&self) -> Result<Current, Problem> {
        Ok(self.configuring.current())
    }

    fn configuration_waits(&self) -> ConfigurationWaits {
        self.configuring.waits()
    }

    fn check_configuration(&self, wanted: Wanted) -> Result<Checked, Problem> {
        self.configuring.check(wanted)
    }

    fn change_configuration(&self, wanted: Wanted, order: Order) -> Result<Applied, Problem> {
        self.configuring.change(wanted, order)
    }

    fn configuration_versions(
        &self,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<VersionSummary>, Problem> {
        let found = self.configuring.versions.list(before, most).map_err(|error| unreadable(&error))?;
        Ok(found.into_iter().map(summary).collect())
    }

    fn configuration_version(&self, version: u64) -> Result<OneVersion, Problem> {
        let Version { summary: found, mut document } = self.configuring.version(version)?;
        configuration::hide(&mut document);
        Ok(OneVersion { summary: summary(found), document })
    }

    fn configuration_differences(&self, from: u64, to: u64) -> Result<Vec<Difference>, Problem> {
        self.configuring.differences(from, to)
    }

    fn confirm_configuration(&self, version: u64, by: &str) -> Result<(), Problem> {
        self.configuring.confirm(version, by)
    }

    fn revert_configuration(&self, by: &str) -> Result<Applied, Problem> {
        let mut state = self.configuring.state.lock();
        self.configuring.revert(&mut state, by, "taken back before it was confirmed".to_owned())
    }

    fn configuration_schema(&self) -> Value {
        configuration::schema()
    }

    fn configuration_file(&self) -> Result<String, Problem> {
        let document = self.configuring.current().document;
        configuration::to_toml(&document).map_err(|error| Problem::new(Kind::Internal, error.to_string()))
    }
}
