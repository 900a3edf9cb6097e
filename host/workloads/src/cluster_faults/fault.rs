//! Faults of the machines of a cluster.

use super::lab::{Lab, MACHINES, RECOVERY};
use anyhow::{Context as _, Result};
use api::ClusterView;
use model::Random;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use testkit::load::StopFlag;

/// Free octets on the disk that leave it below the watermark, so that submissions are refused.
const WATERMARK: u64 = 60 << 20;

/// A fault. Appliances are numbered by their machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    KillLeader,
    KillFollower,
    KillBoth,
    PauseLeader,
    PauseFollower,
    CutLeader,
    CutFollower,
    CutWitness,
    CutAppliances,
    LeaderSendsNothing,
    LeaderHearsNothing,
    KillEtcdMember,
    KillEtcdLeader,
    PauseEtcdLeader,
    KillEtcdMajority,
    ClockOfLeaderJumps,
    ClockOfFollowerJumps,
    DiskOfLeaderBelowWatermark,
    DiskOfLeaderFull,
    DiskOfFollowerFull,
    TablesOfFollowerDamaged,
    TablesOfFollowerLost,
    MemberOfEtcdDamaged,
    MemberOfEtcdLost,
    HandOver,
}

impl Fault {
    pub(super) const ALL: [Self; 25] = [
        Self::KillLeader,
        Self::KillFollower,
        Self::KillBoth,
        Self::PauseLeader,
        Self::PauseFollower,
        Self::CutLeader,
        Self::CutFollower,
        Self::CutWitness,
        Self::CutAppliances,
        Self::LeaderSendsNothing,
        Self::LeaderHearsNothing,
        Self::KillEtcdMember,
        Self::KillEtcdLeader,
        Self::PauseEtcdLeader,
        Self::KillEtcdMajority,
        Self::ClockOfLeaderJumps,
        Self::ClockOfFollowerJumps,
        Self::DiskOfLeaderBelowWatermark,
        Self::DiskOfLeaderFull,
        Self::DiskOfFollowerFull,
        Self::TablesOfFollowerDamaged,
        Self::TablesOfFollowerLost,
        Self::MemberOfEtcdDamaged,
        Self::MemberOfEtcdLost,
        Self::HandOver,
    ];

    /// A description for people.
    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::KillLeader => "leader killed (SIGKILL)",
            Self::KillFollower => "follower killed (SIGKILL)",
            Self::KillBoth => "both appliances killed (SIGKILL)",
            Self::PauseLeader => "leader stopped (SIGSTOP), goes on later",
            Self::PauseFollower => "follower stopped (SIGSTOP), goes on later",
            Self::CutLeader => "leader's machine cut off from all",
            Self::CutFollower => "follower's machine cut off from all",
            Self::CutWitness => "witness cut off from all",
            Self::CutAppliances => "cut between the two appliances only",
            Self::LeaderSendsNothing => "leader's machine reaches no other one, and hears them",
            Self::LeaderHearsNothing => "leader's machine hears no other one, and reaches them",
            Self::KillEtcdMember => "a member of etcd killed",
            Self::KillEtcdLeader => "etcd's leader killed",
            Self::PauseEtcdLeader => "etcd's leader stopped (SIGSTOP)",
            Self::KillEtcdMajority => "two members of etcd killed",
            Self::ClockOfLeaderJumps => "leader's clock jumps by up to two days",
            Self::ClockOfFollowerJumps => "follower's clock jumps by up to two days",
            Self::DiskOfLeaderBelowWatermark => "leader's disk below the watermark",
            Self::DiskOfLeaderFull => "leader's disk full",
            Self::DiskOfFollowerFull => "follower's disk full",
            Self::TablesOfFollowerDamaged => "an octet of the follower's tables flipped",
            Self::TablesOfFollowerLost => "follower killed, its disk lost",
            Self::MemberOfEtcdDamaged => "an octet of a member of etcd flipped",
            Self::MemberOfEtcdLost => "a member of etcd killed, its disk lost",
            Self::HandOver => "hand-over",
        }
    }

    /// Causes the fault, and ends it.
    pub(super) fn inject(self, lab: &mut Lab, random: &mut Random) -> Result<()> {
        let pause = StopFlag::default();
        let mut last = |from, to| pause.pause(Duration::from_millis(random.between(from, to)));
        let leader = lab.leader().context("none leads before the fault")?;
        let follower = 1 - leader;
        let witness = 2;
        match self {
            Self::KillLeader => lab.kill(leader)?,
            Self::KillFollower => lab.kill(follower)?,
            Self::KillBoth => {
                lab.kill(leader)?;
                last(0, 300);
                lab.kill(follower)?;
            }
            Self::PauseLeader | Self::PauseFollower => {
                let one = if self == Self::PauseLeader { leader } else { follower };
                lab.signal(one, Signal::STOP)?;
                // Shorter and longer than the time for which a leader may write without an append.
                last(300, 6_000);
                lab.signal(one, Signal::CONT)?;
            }
            Self::CutLeader | Self::CutFollower | Self::CutWitness => {
                let machine = match self {
                    Self::CutLeader => leader,
                    Self::CutFollower => follower,
                    _ => witness,
                };
                Lab::cut(machine, true)?;
                last(500, 8_000);
                Lab::cut(machine, false)?;
            }
            Self::CutAppliances => {
                Lab::drop_packets(leader, follower, true)?;
                Lab::drop_packets(follower, leader, true)?;
                last(500, 8_000);
                Lab::drop_packets(leader, follower, false)?;
                Lab::drop_packets(follower, leader, false)?;
            }
            Self::LeaderSendsNothing | Self::LeaderHearsNothing => {
                let sends = self == Self::LeaderSendsNothing;
                let way = |other| if sends { (leader, other) } else { (other, leader) };
                for drop in [true, false] {
                    for other in [follower, witness] {
                        let (from, to) = way(other);
                        Lab::drop_packets(from, to, drop)?;
                    }
                    if drop {
                        last(500, 8_000);
                    }
                }
            }
            Self::KillEtcdMember => lab.servers.kill(random.between(0, MACHINES.len() as u64) as usize),
            Self::KillEtcdLeader => {
                let member = etcd_leader(lab, leader)?;
                lab.servers.kill(member);
            }
            Self::PauseEtcdLeader => {
                let member = etcd_leader(lab, leader)?;
                lab.servers.pause(member, true)?;
                last(500, 6_000);
                lab.servers.pause(member, false)?;
            }
            Self::KillEtcdMajority => {
                let alive = random.between(0, MACHINES.len() as u64) as usize;
                for member in (0..MACHINES.len()).filter(|member| *member != alive) {
                    lab.servers.kill(member);
                }
                let pause = StopFlag::default();
                pause.pause(Duration::from_millis(random.between(500, 6_000)));
            }
            Self::ClockOfLeaderJumps | Self::ClockOfFollowerJumps => {
                let one = if self == Self::ClockOfLeaderJumps { leader } else { follower };
                let sign = if random.between(0, 2) == 0 { '-' } else { '+' };
                lab.set_clock(one, &format!("{sign}{}", random.between(1, 172_800)))?;
                let pause = StopFlag::default();
                pause.pause(Duration::from_millis(random.between(500, 4_000)));
                if random.between(0, 2) == 0 {
                    lab.kill(leader)?;
                    pause.pause(Duration::from_millis(random.between(500, 4_000)));
                }
                lab.set_clock(one, "+0")?;
            }
            Self::DiskOfLeaderBelowWatermark | Self::DiskOfLeaderFull | Self::DiskOfFollowerFull => {
                let (one, left) = match self {
                    Self::DiskOfLeaderBelowWatermark => (leader, WATERMARK),
                    Self::DiskOfLeaderFull => (leader, 0),
                    _ => (follower, 0),
                };
                lab.fill_disk(one, Some(left))?;
                last(1_000, 6_000);
                lab.fill_disk(one, None)?;
            }
            Self::TablesOfFollowerDamaged => {
                lab.kill(follower)?;
                lab.damage_tables(follower, random)?;
                lab.launch(follower)?;
            }
            Self::TablesOfFollowerLost => {
                lab.kill(follower)?;
                lab.lose_disk(follower)?;
            }
            Self::MemberOfEtcdDamaged => {
                let member = random.between(0, MACHINES.len() as u64) as usize;
                lab.servers.kill(member);
                lab.damage_member(member, random)?;
            }
            Self::MemberOfEtcdLost => {
                let member = random.between(0, MACHINES.len() as u64) as usize;
                lab.servers.kill(member);
                lab.servers.replace(member)?;
            }
            Self::HandOver => {
                // The leader refuses as long as the follower is incomplete: it may not have noticed yet that the fault
                // before has restarted it.
                let begun = Instant::now();
                while let Err(refusal) = hand_over(lab) {
                    if begun.elapsed() > RECOVERY {
                        return Err(refusal);
                    }
                    lab.supervise()?;
                    pause.pause(Duration::from_millis(200));
                }
            }
        }
        Ok(())
    }
}

/// The member that leads etcd, as seen by the leader of the cluster.
fn etcd_leader(lab: &Lab, leader: usize) -> Result<usize> {
    let daemon = lab.daemon(leader).context("the leader is dead")?;
    let view = daemon.read_until::<ClusterView>(Duration::from_secs(60), "/v1/cluster", |view| {
        view.etcd.iter().any(|member| member.leader)
    })?;
    view.etcd.iter().position(|member| member.leader).context("no member leads")
}

fn hand_over(lab: &Lab) -> Result<()> {
    let daemon = lab.leader().and_then(|leader| lab.daemon(leader)).context("no appliance leads")?;
    daemon.ask("POST", "/v1/cluster/hand-over", b"{}").map(drop)
}
