//! `switchyard cluster`: shows the nodes of the cluster, and hands over the lead.

use crate::cluster_setup::Machines;
use crate::format::{list, number, octets, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{ClusterNodeView, ClusterRole, ClusterView, EtcdMemberView, PartitionView};
use clap::{Args, Subcommand};
use client::encode_segment;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
`etcd` and `join` print what a machine of a new cluster is set up with; they ask no appliance. Any node answers `status`. `hand-over` is for the node that leads: it stops in order, another node leads within a second, and the
service manager starts this one again as a node that follows.

Examples:
  switchyard cluster etcd --this w --machine a=192.0.2.1 --machine b=192.0.2.2 --machine w=192.0.2.3
  switchyard cluster join --this b --machine a=192.0.2.1 --machine b=192.0.2.2 --machine w=192.0.2.3
  switchyard cluster join --this b --machine a=192.0.2.1 --machine b=192.0.2.2 --machine w=192.0.2.3 \\
    --etcd-ca /etc/etcd/ca.pem --etcd-certificate /etc/etcd/machine.pem --etcd-key /etc/etcd/machine.key
  switchyard cluster status
  switchyard cluster hand-over
  switchyard cluster remove b"
);

/// Arguments of `cluster`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ClusterCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Print the settings of etcd on this machine, for /etc/default/etcd. A machine with etcd only is a witness.
    Etcd(Machines),
    /// Print the section [cluster] of this node's configuration.
    Join(Machines),
    /// Show the nodes, the log and the members of etcd.
    Status,
    /// Stop this node cleanly, so that another node leads.
    HandOver,
    /// Remove a node that will not return.
    Remove {
        /// The name of the node.
        node: String,
    },
}

impl ClusterCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        let printed = match &task {
            Task::Etcd(machines) => Some(machines.etcd_settings()),
            Task::Join(machines) => Some(machines.section()),
            _ => None,
        };
        if let Some(printed) = printed {
            let output = Output::without_tables(streams, false);
            return output.finish(printed.map_err(Failure::Usage).and_then(|text| output.write(&text)));
        }
        global.run(streams, |api, output| match task {
            Task::Etcd(_) | Task::Join(_) => Ok(()),
            Task::Status => show(output, &api.read("/v1/cluster")?),
            Task::HandOver => {
                let cluster: ClusterView = api.call("POST", "/v1/cluster/hand-over", &())?;
                if output.json {
                    return output.document(&cluster);
                }
                output.line(&format!("{} stops, another node will lead", cluster.node))
            }
            Task::Remove { node } => {
                api.delete(&format!("/v1/cluster/nodes/{}", encode_segment(&node)))?;
                output.line(&format!("{node}: removed"))
            }
        })
    }
}

fn show(output: &Output, cluster: &ClusterView) -> Result<(), Failure> {
    if output.json {
        return output.document(cluster);
    }
    let leader = cluster.leader.clone().unwrap_or_else(|| "none".to_owned());
    let mut facts = vec![
        ("this node", cluster.node.clone()),
        ("leader", leader),
        ("term", number(cluster.term)),
        ("record", number(cluster.head)),
        ("record format", cluster.format.to_string()),
        ("on this disk only", if cluster.degraded { "yes: no other node keeps up" } else { "no" }.to_owned()),
    ];
    let has_partitions = cluster.partitions.len() > 1;
    if has_partitions {
        facts.insert(1, ("partition", cluster.partition.to_string()));
    }
    output.write(&list(&facts))?;
    let node = |node: &ClusterNodeView| {
        let role = match node.role {
            ClusterRole::Leader => "leader",
            ClusterRole::Follower => "follower",
        };
        vec![
            node.name.clone(),
            role.to_owned(),
            if node.alive { "yes" } else { "no" }.to_owned(),
            number(cluster.head.saturating_sub(node.durable)),
            node.version.clone(),
            node.address.clone(),
        ]
    };
    let nodes: Vec<_> = cluster.nodes.iter().map(node).collect();
    output.line("")?;
    output.table(&["NODE", "ROLE", "ALIVE", "RECORDS BEHIND", "VERSION", "ADDRESS"], &nodes)?;
    let newest = cluster.nodes.iter().map(|node| node.formats.newest).max();
    for node in &cluster.nodes {
        if let Some(lacks) = &node.lacks {
            output.line(&format!("{} lacks {lacks}", node.name))?;
        }
        if Some(node.formats.newest) < newest {
            let format = node.formats.newest;
            output.line(&format!("{} reads record formats up to {format}, others newer ones", node.name))?;
        }
    }
    if has_partitions {
        let partition = |one: &PartitionView| {
            vec![
                one.partition.to_string(),
                value_text(&one.leader),
                format!("{} of {}", one.alive, one.nodes),
                value_text(&one.address),
            ]
        };
        let partitions: Vec<_> = cluster.partitions.iter().map(partition).collect();
        output.line("")?;
        output.table(&["PARTITION", "LEADER", "ALIVE", "ADDRESS"], &partitions)?;
    }
    let member = |member: &EtcdMemberView| {
        vec![
            member.endpoint.clone(),
            if member.leader { "leader" } else { "follower" }.to_owned(),
            member.version.clone(),
            octets(member.octets),
            value_text(&member.problem),
        ]
    };
    let members: Vec<_> = cluster.etcd.iter().map(member).collect();
    output.line("")?;
    output.table(&["ETCD", "ROLE", "VERSION", "SIZE", "PROBLEM"], &members)?;
    match &cluster.etcd_error {
        Some(error) => output.line(&format!("\netcd does not answer this node: {error}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use api::{ClusterNodeView, ClusterRole, ClusterView, EtcdMemberView, PartitionView, RecordFormats};

    fn cluster() -> ClusterView {
        let node = |name: &str, role, alive, durable| ClusterNodeView {
            name: name.to_owned(),
            role,
            alive,
            address: format!("https://{name}.example"),
            version: "0.2.0".to_owned(),
            formats: RecordFormats { oldest: 1, newest: 1 },
            durable,
            lacks: (!alive).then(|| "the table blocked".to_owned()),
        };
        let etcd = EtcdMemberView {
            endpoint: "http://192.0.2.1:2379".to_owned(),
            version: "3.4.23".to_owned(),
            leader: true,
            octets: 80 << 20,
            problem: None,
        };
        ClusterView {
            node: "b".to_owned(),
            role: ClusterRole::Follower,
            partition: 0,
            partitions: Vec::new(),
            leader: Some("a".to_owned()),
            term: 3,
            head: 1_200,
            slots: 1024,
            format: 1,
            degraded: false,
            nodes: vec![
                node("a", ClusterRole::Leader, true, 1_190),
                node("b", ClusterRole::Follower, false, 100),
            ],
            etcd: vec![etcd],
            etcd_error: None,
        }
    }

    #[test]
    fn nodes_and_members_are_shown() {
        let api = FakeApi::default().with("GET /v1/cluster", 200, &cluster()).with(
            "POST /v1/cluster/hand-over",
            200,
            &cluster(),
        );
        let api = api.with("DELETE /v1/cluster/nodes/b", 204, &serde_json::Value::Null);
        let url = api.start();
        let shown = "\
this node          b
leader             a
term               3
record             1,200
record format      1
on this disk only  no

NODE  ROLE      ALIVE  RECORDS BEHIND  VERSION  ADDRESS
a     leader    yes    10              0.2.0    https://a.example
b     follower  no     1,100           0.2.0    https://b.example
b lacks the table blocked

ETCD                   ROLE    VERSION  SIZE      PROBLEM
http://192.0.2.1:2379  leader  3.4.23   80.0 MiB  -
";
        assert_eq!(run(&url, &["cluster", "status"]).out, shown);
        let mut mixed = cluster();
        mixed.nodes[0].formats.newest = 2;
        let url_of_mixed = FakeApi::default().with("GET /v1/cluster", 200, &mixed).start();
        let shown = run(&url_of_mixed, &["cluster", "status"]).out;
        assert!(shown.contains("\nb reads record formats up to 1, others newer ones\n"), "{shown}");
        assert_eq!(run(&url, &["cluster", "remove", "b"]).out, "b: removed\n");
        let partition = |partition, leader: Option<&str>| PartitionView {
            partition,
            leader: leader.map(str::to_owned),
            address: leader.map(|leader| format!("https://{leader}.example")),
            alive: 1,
            nodes: 2,
        };
        let partitions = vec![partition(0, Some("a")), partition(1, None)];
        let api = FakeApi::default().with("GET /v1/cluster", 200, &ClusterView { partitions, ..cluster() });
        let shown = run(&api.start(), &["cluster", "status"]).out;
        let table = "\
PARTITION  LEADER  ALIVE   ADDRESS
0          a       1 of 2  https://a.example
1          -       1 of 2  -
";
        assert!(shown.contains(table) && shown.contains("partition          0\n"), "{shown}");
        let done = run(&url, &["cluster", "hand-over"]);
        assert_eq!((done.code, done.out.as_str()), (0, "b stops, another node will lead\n"));
    }
}
