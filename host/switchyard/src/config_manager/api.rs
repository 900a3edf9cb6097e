//! Implements the configuration API.

use super::{
    ChangeOrigin, ConfigManager, State, change_views, field_errors, invalid_document, version_store_problem,
};
use crate::config::{ManagementMode, keys};
use admin::{ChangeOptions, ConfigurationEdit, PendingConfiguration, Problem, ProblemKind};
use api::{
    ConfigDifferenceView, ConfigVersionSummaryView, ConfigVersionView, ConfigurationChangeResult,
    ConfigurationCheck, CurrentConfiguration, ManagedBy,
};
use configuration::{ConfigVersion, ConfigVersionSummary};
use serde_json::Value;

fn summary(summary: ConfigVersionSummary) -> ConfigVersionSummaryView {
    let ConfigVersionSummary { version, at, by, why, changes, .. } = summary;
    ConfigVersionSummaryView { version, at, by, why, changes }
}

impl ConfigManager {
    fn version(&self, version: u64) -> Result<ConfigVersion, Problem> {
        let found = self.versions.get(version).map_err(|error| version_store_problem(&error))?;
        found.ok_or_else(|| {
            let what = format!(
                "version {version} does not exist or was deleted; GET /v1/configuration/versions lists all versions"
            );
            Problem::new(ProblemKind::NotFound, what)
        })
    }

    /// The document that results from a requested change.
    fn resolve(&self, state: &State, change: ConfigurationEdit) -> Result<Value, Problem> {
        Ok(match change {
            ConfigurationEdit::Document(document) => document,
            ConfigurationEdit::Patch(patch) => configuration::merge(keys(), &state.document, &patch),
            ConfigurationEdit::Version(version) => {
                let mut document = self.version(version)?.document;
                super::keep_file_only_keys(&mut document, &state.document);
                document
            }
        })
    }

    fn current(&self) -> CurrentConfiguration {
        let state = self.state.lock();
        let mut document = state.document.clone();
        configuration::hide(keys(), &mut document);
        let pending_changes = configuration::diff(keys(), &self.startup_document, &state.document);
        CurrentConfiguration {
            version: state.summary.version,
            at: state.summary.at,
            by: state.summary.by.clone(),
            why: state.summary.why.clone(),
            mode: match self.mode {
                ManagementMode::Api => ManagedBy::Api,
                ManagementMode::File => ManagedBy::File,
            },
            pending: state.unconfirmed.as_ref().map(super::UnconfirmedVersion::view),
            restart: change_views(pending_changes).1,
            document,
        }
    }

    fn pending_changes(&self) -> PendingConfiguration {
        let state = self.state.lock();
        let unconfirmed = state.unconfirmed.as_ref();
        let changes = configuration::diff(keys(), &self.startup_document, &state.document);
        PendingConfiguration {
            unconfirmed: unconfirmed
                .map(|unconfirmed| (unconfirmed.version, state.summary.at, unconfirmed.reverts_at)),
            restart: changes
                .iter()
                .filter(|change| configuration::effect_of(keys(), change).needs_restart())
                .count(),
        }
    }

    fn check(&self, change: ConfigurationEdit) -> Result<ConfigurationCheck, Problem> {
        let state = self.state.lock();
        let mut document = self.resolve(&state, change)?;
        let mut problems = self.restore_secrets(&state, &mut document);
        if let Err(found) = self.read(&state, &document) {
            // A placeholder without a secret is reported once.
            let known: Vec<_> = problems.iter().map(|problem| problem.pointer.clone()).collect();
            problems.extend(found.into_iter().filter(|problem| !known.contains(&problem.pointer)));
        }
        let (changes, restart) = change_views(configuration::diff(keys(), &state.document, &document));
        Ok(ConfigurationCheck {
            valid: problems.is_empty(),
            problems: field_errors(problems),
            changes,
            restart,
        })
    }

    fn change(
        &self,
        change: ConfigurationEdit,
        order: ChangeOptions,
    ) -> Result<ConfigurationChangeResult, Problem> {
        if self.mode == ManagementMode::File {
            let what = format!(
                "the configuration is managed by the file {}: change it there, and send SIGHUP",
                self.file.display()
            );
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        let mut state = self.state.lock();
        if order.expected != state.summary.version {
            let what = format!(
                "version {} by {} is active now; read it and repeat the change",
                state.summary.version, state.summary.by
            );
            return Err(Problem::new(ProblemKind::PreconditionFailed, what));
        }
        if let Some(unconfirmed) = &state.unconfirmed {
            let what = format!(
                "version {} waits to be confirmed: POST /v1/configuration/confirm or /v1/configuration/revert first",
                unconfirmed.version
            );
            return Err(Problem::new(ProblemKind::Conflict, what));
        }
        let mut document = self.resolve(&state, change)?;
        let mut problems = self.restore_secrets(&state, &mut document);
        let config = match self.read(&state, &document) {
            Ok(config) if problems.is_empty() => config,
            Ok(_) => return Err(invalid_document(problems)),
            Err(found) => {
                let known: Vec<_> = problems.iter().map(|problem| problem.pointer.clone()).collect();
                problems.extend(found.into_iter().filter(|problem| !known.contains(&problem.pointer)));
                return Err(invalid_document(problems));
            }
        };
        let ChangeOptions { by, why, confirm_within, .. } = order;
        let origin = ChangeOrigin { by: by.to_string(), why, confirm_within };
        self.apply_document(&mut state, document, config, origin)
    }

    fn differences(&self, from: u64, to: u64) -> Result<Vec<ConfigDifferenceView>, Problem> {
        let (from, to) = (self.version(from)?, self.version(to)?);
        let mut changes = configuration::diff(keys(), &from.document, &to.document);
        configuration::hide_changes(keys(), &mut changes);
        let differences = changes.into_iter().map(|change| ConfigDifferenceView {
            pointer: change.pointer(),
            before: change.before,
            after: change.after,
        });
        Ok(differences.collect())
    }

    fn confirm(&self, version: u64, by: &str) -> Result<(), Problem> {
        let mut state = self.state.lock();
        match &state.unconfirmed {
            Some(unconfirmed) if unconfirmed.version == version => {
                self.versions.confirm().map_err(|error| version_store_problem(&error))?;
                state.unconfirmed = None;
                tracing::info!(version, by, "configuration confirmed");
                Ok(())
            }
            Some(unconfirmed) => {
                let what = format!("version {} waits to be confirmed, not {version}", unconfirmed.version);
                Err(Problem::new(ProblemKind::Conflict, what))
            }
            None => Err(Problem::new(ProblemKind::Conflict, "no version waits to be confirmed")),
        }
    }
}

impl admin::Configuration for ConfigManager {
    fn configuration(&self) -> Result<CurrentConfiguration, Problem> {
        Ok(self.current())
    }

    fn pending_configuration(&self) -> PendingConfiguration {
        self.pending_changes()
    }

    fn check_configuration(&self, change: ConfigurationEdit) -> Result<ConfigurationCheck, Problem> {
        self.check(change)
    }

    fn change_configuration(
        &self,
        change: ConfigurationEdit,
        order: ChangeOptions,
    ) -> Result<ConfigurationChangeResult, Problem> {
        self.change(change, order)
    }

    fn configuration_versions(
        &self,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<ConfigVersionSummaryView>, Problem> {
        let found = self.versions.list(before, most).map_err(|error| version_store_problem(&error))?;
        Ok(found.into_iter().map(summary).collect())
    }

    fn configuration_version(&self, version: u64) -> Result<ConfigVersionView, Problem> {
        let ConfigVersion { summary: found, mut document } = self.version(version)?;
        configuration::hide(keys(), &mut document);
        Ok(ConfigVersionView { summary: summary(found), document })
    }

    fn configuration_differences(&self, from: u64, to: u64) -> Result<Vec<ConfigDifferenceView>, Problem> {
        self.differences(from, to)
    }

    fn confirm_configuration(&self, version: u64, by: &str) -> Result<(), Problem> {
        self.confirm(version, by)
    }

    fn revert_configuration(&self, by: &str) -> Result<ConfigurationChangeResult, Problem> {
        let mut state = self.state.lock();
        self.revert(&mut state, by, "reverted before it was confirmed".to_owned())
    }

    fn configuration_schema(&self) -> Value {
        configuration::schema(keys())
    }

    fn configuration_file(&self) -> Result<String, Problem> {
        let document = self.current().document;
        configuration::to_toml(&document)
            .map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))
    }
}
