//! Pace buckets, in the admin API and in the metrics.

use crate::core_handle::CoreHandle;
use crate::problems::shutting_down_problem;
use admin::Problem;
use admin::metrics::{self, MetricsPage};
use engine::PaceBucketStatus;

impl admin::PaceBuckets for CoreHandle {
    fn pace_buckets(&self) -> Result<Vec<api::PaceBucketView>, Problem> {
        let buckets = self.query(engine::Engine::pace_buckets).ok_or_else(shutting_down_problem)?;
        Ok(buckets.iter().map(view).collect())
    }
}

fn view(bucket: &PaceBucketStatus) -> api::PaceBucketView {
    api::PaceBucketView {
        name: bucket.name.to_string(),
        by_plugin: bucket.by_plugin,
        amount: bucket.amount,
        counts: bucket.counts.name().to_owned(),
        tokens: bucket.tokens,
        day_ends: bucket.day_ends.map(|at| at.0),
        waiting: bucket.waiting,
        next_token: bucket.next_token.map(|at| at.0),
    }
}

pub(crate) fn write_pace_metrics(core: &CoreHandle, page: &mut MetricsPage) {
    let Some(buckets) = core.query(engine::Engine::pace_buckets) else { return };
    // Plugins may define thousands, with new names every day.
    for bucket in buckets.iter().filter(|bucket| !bucket.by_plugin) {
        page.put(&metrics::PACE_WAITING, &[&bucket.name], bucket.waiting as f64);
        page.put(&metrics::PACE_TOKENS, &[&bucket.name], bucket.tokens as f64);
    }
}
