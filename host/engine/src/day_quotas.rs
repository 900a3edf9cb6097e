//! Day quotas: limits on the messages of an account, or of all accounts of a tenant's branch, that are accepted on a
//! calendar day.
//!
//! The count is written in the batch of the messages that it includes, as a row of table `pace_days`: after a crash it is
//! never lower than the number of accepted messages.

use crate::engine::Engine;
use crate::settings::DayQuotaSettings;
use calendar::CalendarPeriod;
use model::{Message, Now, PaceDay, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A day quota of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayQuotaStatus {
    /// The account or tenant.
    pub owner: Arc<str>,
    /// Messages a day.
    pub limit: u64,
    /// Messages accepted today. More than the limit if it was lowered.
    pub accepted: u64,
    /// The beginning of the next day.
    pub day_ends: Timestamp,
}

/// All day quotas, by account or tenant.
#[derive(Debug, Default)]
pub(crate) struct DayQuotas {
    quotas: BTreeMap<Arc<str>, DayQuota>,
    /// Quotas whose count has changed since the last batch.
    changed: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
struct DayQuota {
    /// `None`: the configuration no longer has the quota. Its count is kept for the day.
    settings: Option<DayQuotaSettings>,
    /// The current day of the quota.
    day: CalendarPeriod,
    /// Messages accepted on this day.
    accepted: u64,
    /// `accepted` has changed since the last batch.
    changed: bool,
}

impl DayQuota {
    /// The limit, the current day, and the messages accepted on it.
    fn today(&self, now: Now) -> Option<(u64, CalendarPeriod, u64)> {
        let Some(settings) = &self.settings else { return None };
        let day = self.day.current(now.wall.0, |time| settings.zone.day(time));
        Some((settings.amount, day, if day == self.day { self.accepted } else { 0 }))
    }

    fn has_capacity(&self, now: Now) -> bool {
        self.today(now).is_none_or(|(limit, _, accepted)| accepted < limit)
    }
}

impl DayQuotas {
    /// Applies the configured quotas. The messages accepted today also count for a changed quota.
    pub(crate) fn configure(&mut self, settings: &[DayQuotaSettings]) {
        for quota in self.quotas.values_mut() {
            quota.settings = None;
        }
        for new in settings {
            self.quotas.entry(new.owner.clone()).or_default().settings = Some(new.clone());
        }
    }

    /// Restores the count of a day. Returns false if the row belongs to a pace bucket.
    pub(crate) fn recover(&mut self, record: &PaceDay) -> bool {
        let Some(owner) = record.quota_owner() else { return false };
        let quota = self.quotas.entry(owner.into()).or_default();
        quota.day = CalendarPeriod { start: record.start.0, end: record.end.0 };
        quota.accepted = record.used;
        true
    }

    /// Whether each of these quotas has capacity for one more message.
    pub(crate) fn all_have_capacity(&self, now: Now, owners: &[Arc<str>]) -> bool {
        owners.iter().all(|owner| self.quotas.get(owner).is_none_or(|quota| quota.has_capacity(now)))
    }

    /// Counts an accepted message.
    pub(crate) fn count(&mut self, now: Now, owners: &[Arc<str>]) {
        for owner in owners {
            let Some(quota) = self.quotas.get_mut(owner) else { continue };
            let Some((_, day, accepted)) = quota.today(now) else { continue };
            (quota.day, quota.accepted) = (day, accepted + 1);
            if !std::mem::replace(&mut quota.changed, true) {
                self.changed.push(owner.clone());
            }
        }
    }

    /// The changed counts, each once.
    pub(crate) fn take_changed(&mut self) -> Vec<PaceDay> {
        let mut records = Vec::with_capacity(self.changed.len());
        for owner in std::mem::take(&mut self.changed) {
            if let Some(quota) = self.quotas.get_mut(&owner) {
                quota.changed = false;
                let day = (Timestamp(quota.day.start), Timestamp(quota.day.end));
                records.push(PaceDay::for_quota(&owner, day, quota.accepted));
            }
        }
        records
    }

    fn statuses(&self, now: Now) -> Vec<DayQuotaStatus> {
        let status = |(owner, quota): (&Arc<str>, &DayQuota)| {
            let (limit, day, accepted) = quota.today(now)?;
            Some(DayQuotaStatus { owner: owner.clone(), limit, accepted, day_ends: Timestamp(day.end) })
        };
        self.quotas.iter().filter_map(status).collect()
    }
}

impl Engine {
    /// The day quotas of the configuration, by account or tenant.
    #[must_use]
    pub fn day_quotas(&self, now: Now) -> Vec<DayQuotaStatus> {
        self.day_quotas.statuses(now)
    }

    /// Whether the day quotas of the submitter, and of the tenants above it, have room for a message.
    pub(crate) fn is_within_day_quotas(&self, now: Now, message: &Message) -> bool {
        let submitter = self.peers.get(message.origin.0 as usize);
        submitter.is_none_or(|peer| self.day_quotas.all_have_capacity(now, &peer.settings.branch.day_quotas))
    }

    /// Counts an accepted message of this submitter.
    pub(crate) fn count_for_day_quotas(&mut self, now: Now, origin: model::PeerId) {
        if let Some(peer) = self.peers.get(origin.0 as usize) {
            self.day_quotas.count(now, &peer.settings.branch.day_quotas);
        }
    }
}
