//! Long random sequences of events over HTTP and the Redis protocol, compared with a model step by step, and SIGKILL in
//! between. `SWITCHYARD_SEED` repeats a run.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::Stop;
use behaviour_tests::load::pools::{Answer, Client};
use behaviour_tests::pools::{Event, Language, Letter, Model, Office, Told, Wish, older_state};
use behaviour_tests::random::Random;
use behaviour_tests::{Stage, until};
use std::time::Duration;

const NUMBERS: [&str; 14] = [
    "123456",
    "123457",
    "13800138000",
    "13800138001",
    "+4930123456",
    "+4930123457",
    "+49891",
    "*7#",
    "#31#",
    "0",
    "8613800138000",
    "8613800138001",
    "9999999999999999",
    "1234567890123456",
];
/// A lease that does not end while the test runs.
const LONG: u64 = 3_600_000;

/// A pool, what it must be, and those who use it.
struct Play {
    office: Office,
    client: Client,
    pool: String,
    model: Model,
    random: Random,
    /// Tickets that were good once.
    stale: Vec<(String, u64)>,
    /// What has been tried, for whoever looks into a failure.
    crashes: usize,
    doubtful: usize,
    done: usize,
    lapses: usize,
}

impl Play {
    fn begin(stage: &Stage, seed: u64) -> Result<Self> {
        let office = Office::open(stage, "")?;
        // Whoever looks first is to find it.
        office.appliance()?.ask("PUT", "/v1/pools/play", b"")?;
        Ok(Self {
            client: office.client()?,
            office,
            pool: "play".to_owned(),
            model: Model::new(true),
            random: Random::new(seed),
            stale: Vec::new(),
            crashes: 0,
            doubtful: 0,
            done: 0,
            lapses: 0,
        })
    }

    /// Whether there was a crash, an event in doubt after one, and a lease that ended.
    fn has_seen_all(&self) -> bool {
        self.crashes > 0 && self.doubtful > 0 && self.lapses > 0
    }

    fn number(&mut self) -> String {
        let place = self.random.between(0, NUMBERS.len() as u64);
        NUMBERS[place as usize].to_owned()
    }

    fn one_of(&mut self, states: &[&str]) -> Option<String> {
        let fits: Vec<_> = states.iter().flat_map(|state| self.model.in_state(state)).collect();
        self.random.one(&fits).cloned()
    }

    /// Something to ask, mostly something that can be done as things stand.
    fn wish(&mut self, model: &Model) -> Wish {
        let standing = std::mem::replace(&mut self.model, model.clone());
        let wish = self.choose();
        self.model = standing;
        wish
    }

    fn choose(&mut self) -> Wish {
        let number = self.number();
        let busy = self.one_of(&["busy+up", "busy+down"]).unwrap_or_else(|| number.clone());
        match self.random.between(0, 100) {
            0..30 => self.call(None),
            30..36 => self.call(Some(number)),
            36..56 => Wish::Event(Event::Hangup, busy),
            56..60 => Wish::Event(Event::Hangup, number),
            60..70 => Wish::Event(Event::Add, number),
            70..82 => {
                let down = self.one_of(&["idle+down", "busy+down"]).unwrap_or(number);
                Wish::Event(Event::Reg, down)
            }
            82..84 => Wish::Event(Event::Reg, number),
            84..90 => Wish::Event(Event::Unreg, number),
            90..93 => Wish::Event(Event::Del, number),
            choice => {
                let good = self.model.ticket(&busy).map(|ticket| (busy, ticket));
                let bad = self.random.one(&self.stale).cloned();
                let (number, ticket) = match (good, bad) {
                    (Some(good), _) if choice < 98 => good,
                    (_, Some(bad)) => bad,
                    _ => (number, 0),
                };
                if choice % 2 == 0 {
                    Wish::HangupOf(number, ticket)
                } else {
                    let lease = self.random.chance(50).then_some(LONG);
                    Wish::Renew(number, ticket, lease)
                }
            }
        }
    }

    fn call(&mut self, number: Option<String>) -> Wish {
        let holder = if self.random.chance(40) {
            format!("agent-{}", self.random.between(0, 9))
        } else {
            String::new()
        };
        let lease = self.random.chance(20).then_some(LONG);
        Wish::Call { number, holder, callee: String::new(), lease }
    }

    /// Several wishes, each made in view of what those before it do.
    fn wishes(&mut self, most: u64) -> Vec<Wish> {
        let mut ahead = self.model.clone();
        (0..self.random.between(1, most))
            .map(|_| {
                let wish = self.wish(&ahead);
                ahead.apply(&wish, "", None);
                wish
            })
            .collect()
    }

    fn check(&mut self, wish: &Wish, by: &str, told: &Told) -> Result<()> {
        self.model.check(wish, by, told)?;
        self.done += 1;
        if let (Some(number), Some(ticket)) = (&told.number, told.ticket) {
            self.stale.push((number.clone(), ticket));
            let surplus = self.stale.len().saturating_sub(50);
            self.stale.drain(..surplus);
        }
        Ok(())
    }

    /// The wishes with a language of the Redis protocol for each.
    fn letter(&mut self, wishes: &[Wish]) -> Letter {
        let random = &mut self.random;
        let languages = wishes
            .iter()
            .map(|wish| (wish, if random.chance(60) { Language::Script } else { Language::Plain }));
        Letter::new(&self.pool, languages)
    }

    fn by_redis(&mut self) -> Result<()> {
        let wishes = self.wishes(25);
        let letter = self.letter(&wishes);
        letter.send(&mut self.client)?;
        for (index, wish) in wishes.iter().enumerate() {
            let answer = self.client.answer()?;
            let told = letter.heard(index, wish, &answer)?;
            self.check(wish, Language::Script.by(), &told)?;
        }
        Ok(())
    }

    fn by_http(&mut self) -> Result<()> {
        let wishes = self.wishes(25);
        let told = self.office.post(&self.pool, &wishes)?;
        wishes.iter().zip(&told).try_for_each(|(wish, told)| self.check(wish, Language::Http.by(), told))
    }

    fn by_http_singly(&mut self) -> Result<()> {
        let wish = self.wish(&self.model.clone());
        let told = self.office.post_one(&self.pool, &wish)?;
        self.check(&wish, Language::Http.by(), &told)
    }

    /// Everything that is to be seen is as it must be.
    fn look(&mut self) -> Result<()> {
        let (seen, must) = (self.office.view(&self.pool)?, self.model.view());
        ensure!(seen == must, "seen {seen:#?}\nmust {must:#?}");
        // Who called by the script was told no ticket.
        let busy = [self.model.in_state("busy+up"), self.model.in_state("busy+down")].concat();
        if let Some(number) = self.random.one(&busy).filter(|number| self.model.ticket(number).is_none()) {
            let ticket = self.office.ticket(&self.pool, number)?;
            self.model.ticketed(number, ticket)?;
        }
        Ok(())
    }

    /// Two short leases, of which the later one ends first; perhaps with a crash while they run.
    fn leases(&mut self, crash: bool) -> Result<()> {
        let lease =
            |lease| Wish::Call { number: None, holder: "short".to_owned(), callee: String::new(), lease };
        let wishes = [lease(Some(120)), lease(Some(LONG)), lease(Some(40))];
        let told = self.office.post(&self.pool, &wishes)?;
        for (wish, told) in wishes.iter().zip(&told) {
            // The first may end while we are still looking at the answers: nothing is asked of the pool until both have.
            self.check(wish, Language::Http.by(), told)?;
        }
        if crash {
            self.office.crash()?;
            self.client = self.office.client()?;
            self.crashes += 1;
        }
        for told in [&told[2], &told[0]] {
            let Some(number) = &told.number else { continue };
            let key = format!("{{{}}}:numstate", self.pool);
            until("the lease ends", || {
                let state = self.client.ask(&["HGET", &key, number])?;
                ensure!(matches!(&state, Answer::Text(_)), "{number}: {state:?}");
                Ok(state == Answer::Text(older_state("idle+up")))
            })?;
            self.model.lapse(number);
            self.lapses += 1;
        }
        Ok(())
    }

    /// SIGKILL while something is on its way. What was answered must have been done, of the rest the first so many.
    fn crash_by_redis(&mut self) -> Result<()> {
        let wishes = self.wishes(60);
        let letter = self.letter(&wishes);
        letter.send(&mut self.client)?;
        let mut answered = 0;
        for _ in 0..self.random.between(0, wishes.len() as u64 + 1) {
            let answer = self.client.answer()?;
            let told = letter.heard(answered, &wishes[answered], &answer)?;
            self.check(&wishes[answered], Language::Script.by(), &told)?;
            answered += 1;
        }
        if self.random.chance(50) {
            self.some_time();
        }
        let blueprint = self.office.kill()?;
        // What was on its way to us.
        while answered < wishes.len()
            && let Ok(answer) = self.client.answer()
        {
            let told = letter.heard(answered, &wishes[answered], &answer)?;
            self.check(&wishes[answered], Language::Script.by(), &told)?;
            answered += 1;
        }
        self.office.start(&blueprint)?;
        self.client = self.office.client()?;
        self.resolve(&wishes[answered..], Language::Script.by(), 1)
    }

    /// The same by HTTP, where a request is done as a whole or not at all.
    fn crash_by_http(&mut self) -> Result<()> {
        let wishes = self.wishes(60);
        let request = self.office.post_later(&self.pool, &wishes)?;
        self.some_time();
        let blueprint = self.office.kill()?;
        let told = request.answer(&wishes)?;
        self.office.start(&blueprint)?;
        self.client = self.office.client()?;
        match told {
            Some(told) => wishes
                .iter()
                .zip(&told)
                .try_for_each(|(wish, told)| self.check(wish, Language::Http.by(), told)),
            None => self.resolve(&wishes, Language::Http.by(), wishes.len()),
        }
    }

    /// A moment for the kill to fall into.
    fn some_time(&mut self) {
        Stop::default().pause(Duration::from_micros(self.random.between(0, 12_000)));
    }

    /// Finds out which of these were done, always so many together.
    fn resolve(&mut self, wishes: &[Wish], by: &str, together: usize) -> Result<()> {
        self.crashes += 1;
        self.doubtful += wishes.len();
        let seen = self.office.view(&self.pool)?;
        let mut candidate = self.model.clone();
        let mut tried = vec![candidate.view()];
        let mut parts = wishes.chunks(together.max(1));
        while tried.last() != Some(&seen) {
            let part = parts.next().with_context(|| {
                format!("after the crash nothing explains {seen:#?}\nnot even {tried:#?}\nby {wishes:#?}")
            })?;
            for wish in part {
                candidate.apply(wish, by, None);
            }
            tried.push(candidate.view());
        }
        self.model = candidate;
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        match self.random.between(0, 100) {
            0..40 => self.by_redis(),
            40..62 => self.by_http(),
            62..72 => self.by_http_singly(),
            72..82 => self.look(),
            82..86 => self.leases(false),
            86..88 => self.leases(true),
            88..96 => self.crash_by_redis(),
            _ => self.crash_by_http(),
        }
    }

    fn end(mut self) -> Result<()> {
        self.look()?;
        let (history, must) = (self.office.history(&self.pool)?, self.model.journal());
        let differs = history.iter().zip(must).position(|(one, other)| one != other);
        ensure!(
            history.len() == must.len() && differs.is_none(),
            "{} entries, {} there must be; the first that differs is {differs:?}: {:?}",
            history.len(),
            must.len(),
            differs.map(|at| (&history[at], &must[at]))
        );
        ensure!(self.has_seen_all(), "too few steps to prove anything");
        Ok(())
    }
}

fn seed() -> Result<u64> {
    match std::env::var("SWITCHYARD_SEED") {
        Ok(text) => text.parse().with_context(|| format!("SWITCHYARD_SEED is {text:?}")),
        Err(_) => Ok(Random::any_seed()),
    }
}

const STEPS: usize = 250;

#[test]
fn long_random_sequences_over_http_and_redis_with_crashes_are_as_the_table_says() -> Result<()> {
    let (stage, seed) = (Stage::new()?, seed()?);
    let play = || -> Result<()> {
        let mut play = Play::begin(&stage, seed)?;
        let mut steps = 0;
        // What is left to chance may be long in coming.
        while steps < STEPS || (!play.has_seen_all() && steps < 8 * STEPS) {
            play.step().with_context(|| format!("step {steps}"))?;
            steps += 1;
        }
        play.end()
    };
    play().with_context(|| format!("SWITCHYARD_SEED={seed} repeats it"))
}
