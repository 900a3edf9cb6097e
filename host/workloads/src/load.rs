//! `cargo xtask load`: measures the measuring tools themselves.

use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, Tally};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Messages to exchange.
    #[arg(long, default_value_t = 2_000_000)]
    count: u64,
    /// Connections.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Window per connection.
    #[arg(long, default_value_t = 500)]
    window: usize,
    /// Messages per second; as fast as possible by default.
    #[arg(long)]
    rate: Option<f64>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let tally = Arc::new(Tally::new(options.count as usize));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut ask = SourceOptions::new(sink.address(), "load", "secret");
    ask.connections = options.connections;
    ask.window = options.window;
    ask.rate = options.rate;
    ask.duration = Some(Duration::from_secs(60));
    let source = Source::start(&ask, &tally)?.join()?;
    let sink = sink.stop()?;
    let sums = tally.summary();
    let rate = sums.accepted as f64 / source.elapsed.as_secs_f64();
    println!("{} messages in {:.2} s: {rate:.0} a second", sums.accepted, source.elapsed.as_secs_f64());
    println!(
        "answers: p50 {:?}, p99 {:?}, longest {:?}",
        source.answers.quantile(0.5),
        source.answers.quantile(0.99),
        source.answers.max()
    );
    let each = |time: Duration| time.as_nanos() as f64 / sums.sent.max(1) as f64;
    println!(
        "processor: source {:.0} ns, sink {:.0} ns a message",
        each(source.processor),
        each(sink.processor)
    );
    println!("{sums:?}");
    anyhow::ensure!(
        sums.missing == 0 && sums.unknown == 0 && sums.inversions == 0,
        "the counts do not match"
    );
    Ok(())
}
