//! Latencies, counted in buckets of 3% width.

use std::time::Duration;

/// Buckets per power of two.
const STEPS: u64 = 32;

/// A histogram of latencies in microseconds, accurate to about 3%.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; bucket(u64::from(u32::MAX)) + 1], count: 0, max: 0 }
    }
}

/// Below `STEPS` each value has its own bucket; above, each power of two has `STEPS` buckets.
fn bucket(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let power = u64::from(micros.ilog2()) - 5;
    ((power + 1) * STEPS + (micros >> power) - STEPS) as usize
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let power = bucket / STEPS - 1;
    ((bucket % STEPS + STEPS + 1) << power) - 1
}

impl Histogram {
    /// Records one latency.
    pub fn record(&mut self, micros: u64) {
        let micros = micros.min(u64::from(u32::MAX));
        self.buckets[bucket(micros)] += 1;
        self.count += 1;
        self.max = self.max.max(micros);
    }

    /// Adds another histogram.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Number of recorded latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latency that this share (0 to 1) of the values does not exceed; zero for an empty histogram.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return Duration::from_micros(upper(index).min(self.max));
            }
        }
        self.max()
    }

    /// The longest latency.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }

    /// Number of latencies above this limit, accurate to the width of a bucket.
    pub fn above(&self, limit: Duration) -> u64 {
        let limit = bucket(limit.as_micros().min(u128::from(u32::MAX)) as u64);
        self.buckets[limit + 1..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for bucket_index in 0..600 {
            let last = upper(bucket_index);
            assert_eq!(bucket(last), bucket_index, "{last}");
            assert_eq!(bucket(last + 1), bucket_index + 1, "{last}");
        }
    }

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut histogram = Histogram::default();
        for micros in 1..=10_000 {
            histogram.record(micros);
        }
        let p99 = histogram.quantile(0.99).as_micros();
        assert!((9_900..=10_000).contains(&p99), "{p99}");
        assert_eq!(histogram.quantile(1.0), Duration::from_micros(10_000));
        assert_eq!(histogram.above(Duration::from_micros(10_000)), 0);
    }
}
