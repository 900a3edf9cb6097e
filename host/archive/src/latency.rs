//! A histogram of times with four buckets to the octave: what is read from it is at most an eighth off.

/// The bucket of a time in milliseconds: one each below 4 ms, then four to each doubling.
pub(crate) fn bucket(ms: u64) -> i64 {
    if ms < 4 {
        return i64::try_from(ms).unwrap_or(0);
    }
    let octave = 63 - ms.leading_zeros();
    let quarter = (ms >> (octave - 2)) & 3;
    (i64::from(octave) - 1) * 4 + i64::try_from(quarter).unwrap_or(0)
}

/// Smallest time of a bucket and its width, in milliseconds.
fn bounds(bucket: i64) -> (f64, f64) {
    if bucket < 4 {
        return (bucket.max(0) as f64, 1.0);
    }
    let (octave, quarter) = (bucket / 4 + 1, bucket % 4);
    let width = 2f64.powi(i32::try_from(octave - 2).unwrap_or(0));
    ((4 + quarter) as f64 * width, width)
}

/// Times of many messages.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Half of them were faster, in milliseconds.
    pub p50: f64,
    /// 95 in a hundred were faster.
    pub p95: f64,
    /// 99 in a hundred were faster.
    pub p99: f64,
}

impl Latency {
    /// From counts by bucket.
    pub(crate) fn from_buckets(buckets: &std::collections::BTreeMap<i64, u64>) -> Self {
        let count = buckets.values().sum();
        let quantile = |share: f64| {
            let wanted = share * count as f64;
            let mut below = 0.0;
            for (bucket, here) in buckets {
                let here = *here as f64;
                if below + here >= wanted && here > 0.0 {
                    let (low, width) = bounds(*bucket);
                    return low + width * (wanted - below) / here;
                }
                below += here;
            }
            0.0
        };
        Self { count, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn buckets_are_a_staircase_without_gaps() {
        let mut last = 0;
        for ms in 0..100_000u64 {
            let here = bucket(ms);
            assert!(here == last || here == last + 1, "{ms} ms");
            let (low, width) = bounds(here);
            assert!(low <= ms as f64 && (ms as f64) < low + width, "{ms} ms in {low}+{width}");
            assert!(width <= 1.0 || width / low <= 0.25, "{ms} ms");
            last = here;
        }
        assert!(bucket(u64::MAX) < 256);
    }

    #[test]
    fn quantiles_are_near_the_truth() {
        let mut buckets = BTreeMap::new();
        for ms in 1..=1000u64 {
            *buckets.entry(bucket(ms)).or_default() += 1;
        }
        let latency = Latency::from_buckets(&buckets);
        assert_eq!(latency.count, 1000);
        for (found, truth) in [(latency.p50, 500.0), (latency.p95, 950.0), (latency.p99, 990.0)] {
            assert!((found - truth).abs() / truth < 0.125, "{found} for {truth}");
        }
        assert_eq!(Latency::from_buckets(&BTreeMap::new()), Latency::default());
    }
}
