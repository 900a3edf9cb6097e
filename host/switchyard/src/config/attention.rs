//! `[attention]`: thresholds of `GET /v1/attention`.

use admin::AttentionLimits;
use configuration::Section;

pub(crate) fn attention(section: &Section<'_>) -> AttentionLimits {
    let usual = AttentionLimits::default();
    let limits = AttentionLimits {
        queue_age: section.duration("queue-age", usual.queue_age),
        unbound_account: section.duration("unbound-account", usual.unbound_account),
        archive_backlog: section.number("archive-backlog", usual.archive_backlog, 0..=super::MAX_INTEGER),
        plugin_event: section.duration("plugin-event", usual.plugin_event),
    };
    section.finish();
    limits
}
