//! A latency histogram with four buckets per octave: quantiles are accurate to an eighth.

use api::LatencyView;
use std::collections::BTreeMap;

/// The bucket of a latency in milliseconds: one each below 4 ms, then four per doubling.
pub(crate) fn bucket(ms: u64) -> i64 {
    if ms < 4 {
        return i64::try_from(ms).unwrap_or(0);
    }
    let octave = 63 - ms.leading_zeros();
    let quarter = (ms >> (octave - 2)) & 3;
    (i64::from(octave) - 1) * 4 + i64::try_from(quarter).unwrap_or(0)
}

/// The lower bound and width of a bucket, in milliseconds.
fn bounds(bucket: i64) -> (f64, f64) {
    if bucket < 4 {
        return (bucket.max(0) as f64, 1.0);
    }
    let (octave, quarter) = (bucket / 4 + 1, bucket % 4);
    let width = 2f64.powi(i32::try_from(octave - 2).unwrap_or(0));
    ((4 + quarter) as f64 * width, width)
}

/// Computes quantiles from counts by bucket.
pub(crate) fn quantiles(buckets: &BTreeMap<i64, u64>) -> LatencyView {
    let count = buckets.values().sum();
    let quantile = |share: f64| {
        let fields = share * count as f64;
        let mut below = 0.0;
        for (bucket, here) in buckets {
            let here = *here as f64;
            if below + here >= fields && here > 0.0 {
                let (low, width) = bounds(*bucket);
                return low + width * (fields - below) / here;
            }
            below += here;
        }
        0.0
    };
    LatencyView { count, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
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
    fn quantiles_are_accurate() {
        let mut buckets = BTreeMap::new();
        for ms in 1..=1000u64 {
            *buckets.entry(bucket(ms)).or_default() += 1;
        }
        let latency = quantiles(&buckets);
        assert_eq!(latency.count, 1000);
        for (found, truth) in [(latency.p50, 500.0), (latency.p95, 950.0), (latency.p99, 990.0)] {
            assert!((found - truth).abs() / truth < 0.125, "{found} for {truth}");
        }
        assert_eq!(quantiles(&BTreeMap::new()), LatencyView::default());
    }
}
