//! The navigation of the console.

use crate::request_context::RequestContext;
use api::Permission;
use maud::{Markup, html};

/// An item of the navigation: a page or a group of pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavItem {
    Overview,
    Messages,
    Queues,
    Quarantine,
    Peers,
    Gateways,
    Networks,
    Accounts,
    Tenants,
    Plugins,
    Policies,
    Tables,
    Pools,
    OptOuts,
    Ledger,
    Archive,
    Configuration,
    Users,
    Audit,
    Cluster,
    Maintenance,
    Profile,
    Help,
    /// The results of a search; not in the navigation.
    Search,
}

/// A page group, its path, its label, and the permission that it needs.
type NavEntry = (NavItem, &'static str, &'static str, Permission);

/// The groups of the navigation, each with its heading; the first has none.
const NAV_GROUPS: &[(&str, &[NavEntry])] = &[
    (
        "",
        &[
            (NavItem::Overview, "/", "Overview", Permission::Read),
            (NavItem::Messages, "/messages", "Messages", Permission::Own),
            (NavItem::Queues, "/queues", "Queues", Permission::Read),
            (NavItem::Quarantine, "/quarantine", "Quarantine", Permission::Read),
        ],
    ),
    (
        "Connections",
        &[
            (NavItem::Peers, "/peers", "Peers", Permission::Read),
            (NavItem::Accounts, "/accounts", "Accounts", Permission::Read),
            (NavItem::Tenants, "/tenants", "Tenants", Permission::Read),
            (NavItem::Gateways, "/gateways", "Gateways", Permission::Read),
            (NavItem::Networks, "/networks", "GSM networks", Permission::Read),
        ],
    ),
    (
        "Decisions",
        &[
            (NavItem::Plugins, "/plugins", "Plugins", Permission::Read),
            (NavItem::Policies, "/policies", "Policies", Permission::Read),
            (NavItem::Tables, "/tables", "Lookup tables", Permission::Read),
            (NavItem::Pools, "/pools", "Number pools", Permission::Read),
            (NavItem::OptOuts, "/opt-outs", "Opt-outs", Permission::Read),
        ],
    ),
    (
        "Records",
        &[
            (NavItem::Ledger, "/ledger", "Ledger", Permission::Read),
            (NavItem::Archive, "/archive", "Archive", Permission::Read),
            (NavItem::Audit, "/audit", "Audit", Permission::ManageUsers),
        ],
    ),
    (
        "Appliance",
        &[
            (NavItem::Configuration, "/configuration", "Configuration", Permission::Read),
            (NavItem::Users, "/users", "Users and tokens", Permission::ManageUsers),
            (NavItem::Cluster, "/cluster", "Cluster", Permission::Read),
            (NavItem::Maintenance, "/maintenance", "Maintenance", Permission::Read),
            (NavItem::Help, "/help", "Help", Permission::Own),
        ],
    ),
];

/// The pages for users of tenants. All other pages show the whole appliance and need API operations that are refused to
/// them.
const FOR_TENANTS: [NavItem; 7] = [
    NavItem::Messages,
    NavItem::Tenants,
    NavItem::Ledger,
    NavItem::Audit,
    NavItem::Users,
    NavItem::Profile,
    NavItem::Help,
];

/// Whether the user may open a page.
fn may_open(context: &RequestContext, item: NavItem, permission: Permission) -> bool {
    context.has_permission(permission) && (context.principal.tenant.is_none() || FOR_TENANTS.contains(&item))
}

/// The chapter of the manual for each group of pages: a path below `/help`.
const CHAPTERS: &[(NavItem, &str)] = &[
    (NavItem::Overview, "tutorial/console"),
    (NavItem::Messages, "guide/dlrs-and-retries"),
    (NavItem::Queues, "guide/queues"),
    (NavItem::Quarantine, "guide/queues#quarantine"),
    (NavItem::Peers, "guide/smpp"),
    (NavItem::Gateways, "guide/sgip"),
    (NavItem::Networks, "guide/gsm"),
    (NavItem::Accounts, "guide/accounts-and-binds"),
    (NavItem::Tenants, "guide/tenants"),
    (NavItem::Plugins, "guide/plugins"),
    (NavItem::Policies, "guide/plugins"),
    (NavItem::Tables, "guide/plugins"),
    (NavItem::Pools, "guide/number-pools"),
    (NavItem::OptOuts, "guide/dlrs-and-retries#opt-outs"),
    (NavItem::Ledger, "guide/billing"),
    (NavItem::Archive, "guide/archive"),
    (NavItem::Configuration, "guide/configuration"),
    (NavItem::Users, "guide/tls-and-users"),
    (NavItem::Audit, "guide/tls-and-users"),
    (NavItem::Cluster, "guide/cluster"),
    (NavItem::Maintenance, "guide/backup-and-upgrade"),
    (NavItem::Profile, "guide/tls-and-users"),
    (NavItem::Search, "tutorial/console"),
];

/// A link to the chapter of the manual about a page, for its heading.
pub(crate) fn chapter_link(item: NavItem) -> Markup {
    let chapter = CHAPTERS.iter().find(|(known, _)| *known == item);
    html! {
        @if let Some((_, chapter)) = chapter { p.chapter { a href=(format!("/help/{chapter}")) { "Help on this page" } } }
    }
}

/// Labels and paths of the pages that the user may see.
pub(crate) fn visible_pages(
    context: &RequestContext,
) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
    let entries = NAV_GROUPS.iter().flat_map(|(_, entries)| *entries);
    entries
        .filter(|(item, .., permission)| may_open(context, *item, *permission))
        .map(|(_, path, label, _)| (*label, *path))
        .chain([("Profile", "/profile"), ("Send a test message", "/messages/new")])
        .chain(context.principal.tenant.is_none().then_some(("Uncertain messages", "/uncertain")))
}

/// The navigation, without items that the user has no permission for.
pub(crate) fn nav_list(context: &RequestContext, current: NavItem) -> Markup {
    html! {
        @for (name, entries) in NAV_GROUPS {
            @let mut visible = entries.iter().filter(|(item, .., permission)| may_open(context, *item, *permission)).peekable();
            @if visible.peek().is_some() {
                @if !name.is_empty() { p { (name) } }
                ul {
                    @for (item, path, name, _) in visible {
                        li { a href=(path) aria-current=[(*item == current).then_some("page")] { (name) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manual;

    #[test]
    fn every_page_has_a_chapter_that_exists() {
        let items =
            NAV_GROUPS.iter().flat_map(|(_, entries)| *entries).map(|(item, path, ..)| (*item, *path));
        for (item, path) in
            items.chain([(NavItem::Profile, "/profile")]).filter(|(item, _)| *item != NavItem::Help)
        {
            let count = CHAPTERS.iter().filter(|(known, _)| *known == item).count();
            assert_eq!(count, 1, "{path}");
        }
        for (_, chapter) in CHAPTERS {
            let (path, anchor) = chapter.split_once('#').unwrap_or((chapter, ""));
            let page = manual::find(path).unwrap_or_else(|| panic!("the manual has no page {path}"));
            let id = format!(" id=\"{anchor}\"");
            assert!(anchor.is_empty() || manual::render(page).into_string().contains(&id), "{chapter}");
        }
    }
}
