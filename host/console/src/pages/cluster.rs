//! The cluster: nodes, log, members of etcd, and the hand-over of the lead.

use crate::api_caller::ApiError;
use crate::form::Form;
use crate::format::{count, octets, state_badge};
use crate::layout::{action_button, error_notice, page};
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use api::{ClusterNodeView, ClusterRole, ClusterView, EtcdMemberView, PartitionView, Permission};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};

pub(crate) async fn show(context: RequestContext) -> Response {
    render(&context, None).await
}

async fn render(context: &RequestContext, error: Option<&ApiError>) -> Response {
    let body = page_body(context, error).await;
    let mut response = page(context, "Cluster", NavItem::Cluster, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

async fn page_body(context: &RequestContext, error: Option<&ApiError>) -> Result<Markup, ApiError> {
    let cluster = match context.get::<ClusterView>("/v1/cluster").await {
        Ok(cluster) => cluster,
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            return Ok(html! {
                h1 { "Cluster" }
                section.card { div.empty { h2 { "This appliance is not in a cluster" } p { "With a second machine and a section " code { "[cluster]" } " in the configuration, another appliance takes over if this one fails." } } }
            });
        }
        Err(error) => return Err(error),
    };
    let nodes: Vec<_> = cluster.nodes.iter().map(|node| node_row(node, cluster.head)).collect();
    let members: Vec<_> = cluster.etcd.iter().map(member_row).collect();
    let partitions: Vec<_> = cluster.partitions.iter().map(partition_row).collect();
    let none = html! { p { "No node was found yet." } };
    Ok(html! {
        h1 { "Cluster" }
        @if let Some(error) = error { (error_notice(error)) }
        section.card {
            (detail_list(&[
                ("This node", html! { (cluster.node) }),
                ("Leader", html! { (cluster.leader.as_deref().unwrap_or("—")) }),
                ("Term", html! { (count(cluster.term)) }),
                ("Records of the log", html! { (count(cluster.head)) }),
                ("Record format", html! { (cluster.format) }),
                ("Older records", html! {
                    @if cluster.degraded { (state_badge("uncertain")) " on this disk only: no other node keeps up" }
                    @else { "on more than one disk" }
                }),
            ]))
            @if context.has_permission(Permission::Configure) && cluster.role == ClusterRole::Leader {
                p { "A hand-over shuts this node down cleanly, and another node takes the lead. The console is then at its address." }
                div.actions { (action_button(context, "/cluster", "Hand the lead over", "danger", &[("do", "hand-over")])) }
            }
        }
        section.card {
            h2 { "Nodes" }
            (table("Nodes of the cluster", &["Node", "Role", "State", "Records behind", "Version", "Address"], &nodes, &none))
        }
        @if cluster.partitions.len() > 1 {
            section.card {
                h2 { "Partitions" }
                p { "This page shows partition " (cluster.partition) ". Each partition has its own accounts, and a leader of its own." }
                (table("Partitions of the cluster", &["Partition", "Leader", "Nodes alive", "Address"], &partitions, &none))
            }
        }
        section.card {
            h2 { "etcd" }
            @if let Some(error) = &cluster.etcd_error { p { (state_badge("down")) " " (error) } }
            (table("Members of etcd", &["Address", "Role", "State", "Version", "Size"], &members, &none))
        }
    })
}

fn node_row(node: &ClusterNodeView, head: u64) -> Vec<Markup> {
    let role = match node.role {
        ClusterRole::Leader => "leader",
        ClusterRole::Follower => "follower",
    };
    vec![
        html! { (node.name) },
        html! { (role) },
        html! {
            (state_badge(if node.alive { "ready" } else { "down" }))
            @if let Some(lacks) = &node.lacks { " it lacks " (lacks) }
        },
        html! { (count(head.saturating_sub(node.durable))) },
        html! { (node.version) },
        html! { (node.address) },
    ]
}

fn partition_row(partition: &PartitionView) -> Vec<Markup> {
    vec![
        html! { (partition.partition) },
        html! {
            @match &partition.leader {
                Some(leader) => (leader),
                None => { (state_badge("down")) " none" }
            }
        },
        html! { (partition.alive) " of " (partition.nodes) },
        html! { (partition.address.as_deref().unwrap_or("—")) },
    ]
}

fn member_row(member: &EtcdMemberView) -> Vec<Markup> {
    vec![
        html! { (member.endpoint) },
        html! { (if member.leader { "leader" } else { "follower" }) },
        html! {
            @match &member.problem {
                Some(problem) => { (state_badge("down")) " " (problem) }
                None => { (state_badge("ready")) }
            }
        },
        html! { (member.version) },
        html! { (octets(member.octets)) },
    ]
}

pub(crate) async fn change(context: RequestContext, form: Form) -> Response {
    let result = match form.text("do") {
        "hand-over" => context.send(Method::POST, "/v1/cluster/hand-over", &form, None).await.map(drop),
        _ => Err(ApiError::bad_request("This action does not exist.")),
    };
    match result {
        Ok(()) => RequestContext::redirect("/cluster", "handed-over"),
        Err(error) => render(&context, Some(&error)).await,
    }
}
