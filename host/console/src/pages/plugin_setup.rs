//! The set-up of a plugin version: its policy document, place, limits and grants, checked, tried or activated from one form.

mod binding_form;
mod fields;
mod policy_keys;

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{octets, short_version, version_tag};
use crate::layout::{csrf_field, error_notice, page, problem_list};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::pages::hook::chain_tags;
use crate::request_context::RequestContext;
use crate::table::detail_list;
use api::{
    ActivationRequest, Binding, HookStateView, Permission, PluginVersionView, PolicyTryRequest,
    PolicyTryView, TableView, TrialModeView, TrialRequest,
};
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use binding_form::{binding_values, requested_binding};
use fields::{SetupFields, grant_fields, limit_fields, place_fields};
use maud::{Markup, html};
use serde_json::{Value, json};

/// The path of the page for a version.
pub(crate) fn path(hook: &str, plugin: &str, version: &str) -> String {
    let path = format!("/plugins/{}/set-up", encode_segment(hook));
    with_query(&path, &[("plugin", plugin), ("version", version)])
}

/// The path of the page for the binding of a tenant.
pub(crate) fn tenant_path(hook: &str, binding: &Binding, tenant: &str) -> String {
    let path = format!("/plugins/{}/set-up", encode_segment(hook));
    let query = [("plugin", &*binding.plugin), ("version", &*binding.version), ("tenant", tenant)];
    with_query(&path, &query)
}

/// The subject of the page.
struct Setup {
    found: HookStateView,
    version: PluginVersionView,
    tables: Vec<TableView>,
    schema: Option<Value>,
}

impl Setup {
    async fn read(context: &RequestContext, hook: &str, form: &Form) -> Result<Self, ApiError> {
        if !context.has_permission(Permission::ManagePlugins) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "Only admins can set up plugins."));
        }
        let path = format!("/v1/hooks/{}", encode_segment(hook));
        let (found, stored, tables) = tokio::join!(
            context.get::<HookStateView>(&path),
            context.get::<Vec<PluginVersionView>>("/v1/plugins"),
            context.get_optional::<Vec<TableView>>("/v1/tables"),
        );
        let (found, stored) = (found?, stored?);
        let (plugin, version) = (form.text("plugin"), form.text("version"));
        let is_it = |one: &PluginVersionView| {
            one.hook == found.hook && one.plugin == plugin && one.version == version
        };
        let version = stored.into_iter().find(is_it).ok_or_else(|| {
            let detail = format!("No version {version} of a plugin {plugin} is stored for this hook.");
            ApiError::new(StatusCode::NOT_FOUND, detail)
        })?;
        let schema =
            if version.policy_schema { context.get_optional(&schema_path(&version)).await } else { None };
        Ok(Self { found, version, tables: tables.unwrap_or_default(), schema })
    }

    /// The binding of the plugin whose values fill the form: the live one, or the candidate, or the last former one. `tenant` is empty
    /// for the binding of all tenants.
    fn known_binding(&self, tenant: &str) -> Option<&Binding> {
        let candidate = self.found.candidate.iter().flat_map(|candidate| &candidate.record.chain);
        let history = self.found.history.iter().flatten().flat_map(|record| &record.chain);
        let mut all = self.found.live.chain.iter().chain(candidate).chain(history);
        all.find(|one| self.belongs_to(one, tenant))
    }

    fn belongs_to(&self, binding: &Binding, tenant: &str) -> bool {
        binding.plugin == self.version.plugin && binding.tenant.as_deref().unwrap_or_default() == tenant
    }

    fn is_live(&self, tenant: &str) -> bool {
        self.found.live.chain.iter().any(|one| self.belongs_to(one, tenant))
    }
}

fn schema_path(version: &PluginVersionView) -> String {
    format!(
        "/v1/plugins/{}/{}/policy-schema",
        encode_segment(&version.plugin),
        encode_segment(&version.version)
    )
}

pub(crate) async fn show(
    context: RequestContext,
    Path(hook): Path<String>,
    Query(query): QueryParams,
) -> Response {
    let query = Form::of(query);
    match Setup::read(&context, &hook, &query).await {
        Ok(setup) => {
            let tenant = query.text("tenant");
            let new = Binding {
                tenant: Some(tenant.to_owned()).filter(|tenant| !tenant.is_empty()),
                ..Binding::new(&setup.version.plugin, &setup.version.version, "")
            };
            let values = binding_values(setup.known_binding(tenant).unwrap_or(&new), &setup.found);
            render(&context, &setup, &values, None, None)
        }
        Err(error) => page(&context, "Set up a plugin", NavItem::Plugins, Err(error)),
    }
}

fn render(
    context: &RequestContext,
    setup: &Setup,
    values: &Form,
    error: Option<&ApiError>,
    checked: Option<&PolicyTryView>,
) -> Response {
    let Setup { found, version, .. } = setup;
    let hook = found.hook.name();
    let fields = SetupFields { values, error, version, found, tables: &setup.tables };
    let title = format!("Set up {} {}", version.plugin, short_version(&version.version));
    let body = html! {
        div.heading {
            h1 { "Set up " (version.plugin) " " (version_tag(&version.version)) }
            a.button.quiet href=(format!("/plugins/{hook}")) { "Back to the hook" }
        }
        @if let Some(error) = error { (error_notice(error)) (problem_list(error)) }
        @if let Some(checked) = checked { (check_result(checked)) }
        section.card {
            (detail_list(&[
                ("Hook", html! { a href=(format!("/plugins/{hook}")) { (hook) } }),
                ("Size", html! { (octets(version.size)) }),
                ("Contract", html! { (version.wit) }),
                ("Signed by", html! { (version.signed_by.as_deref().unwrap_or("not signed")) }),
                ("Now live", html! {
                    (chain_tags(&found.live.chain))
                }),
            ]))
        }
        form method="post" action=(format!("/plugins/{hook}/set-up")) {
            (csrf_field(context))
            input type="hidden" name="plugin" value=(version.plugin);
            input type="hidden" name="version" value=(version.version);
            input type="hidden" name="expected" value=(values.text("expected"));
            section.card {
                h2 { "Policy" }
                (policy_field(context, setup, values, error))
            }
            section.card { h2 { "Grants" } (grant_fields(&fields)) }
            section.card { h2 { "Place and limits" } (place_fields(&fields)) (limit_fields(&fields)) }
            section.card { h2 { "Start" } (start_fields(setup, values)) }
        }
        script src="/assets/document-editor.js" defer {}
    };
    let mut response = page(context, &title, NavItem::Plugins, Ok(body));
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

fn policy_field(context: &RequestContext, setup: &Setup, values: &Form, error: Option<&ApiError>) -> Markup {
    let hook = setup.found.hook.name();
    let tenant = values.text("tenant");
    let invalid = error.is_some_and(|error| error.problems.is_empty());
    let schema = setup.schema.as_ref().map(|_| schema_path(&setup.version));
    let check = context
        .has_permission(Permission::Operate)
        .then(|| format!("/plugins/{}/set-up/check", encode_segment(hook)));
    html! {
        div.fields {
            p.wide {
                label for="policy" { "The document" }
                textarea.code #policy name="policy" rows="18" spellcheck="false" data-schema=[schema] data-form-check=[check] aria-describedby="policy-hint" aria-invalid=[invalid.then_some("true")] { "\n" (values.multiline("policy")) }
                small #policy-hint {
                    "The plugin reads it when it starts. "
                    @if setup.is_live(tenant) { "This is the live document. " } @else if setup.known_binding(tenant).is_some() { "This is the plugin's last document. " }
                    @if setup.schema.is_some() { "Ctrl+Space completes keys and names." } @else { "This version describes no format; see the plugin's manual." }
                }
            }
        }
        @if let Some(schema) = &setup.schema { (policy_keys::list(schema)) }
    }
}

fn start_fields(setup: &Setup, values: &Form) -> Markup {
    let has_live = !setup.found.live.chain.is_empty();
    html! {
        div.fields {
            @if has_live {
                p {
                    label for="share" { "Share of a canary, in percent" }
                    input #share name="share" value=(match values.text("share") { "" => "5", share => share }) inputmode="decimal" autocomplete="off";
                }
            }
            p {
                label for="why" { "Reason" }
                input #why name="why" value=(values.text("why")) maxlength="256" autocomplete="off" aria-describedby="why-hint";
                small #why-hint { "For the audit log; may be empty." }
            }
            p.wide {
                label {
                    input type="checkbox" name="force" value="1" checked[values.has("force")];
                    " even if the policy names objects that do not exist, or a grant is missing"
                }
            }
            p.actions {
                button.primary type="submit" name="do" value="check" { "Check" }
                @if has_live {
                    button type="submit" name="do" value="shadow" { "Start as a shadow" }
                    button type="submit" name="do" value="canary" { "Start as a canary" }
                }
                button.danger type="submit" name="do" value="activate" { "Activate now" }
            }
            p.muted {
                "A check starts the plugin with this document and asks it nothing. "
                @if has_live { "A shadow is asked too, and its answers are only compared. A canary decides for its share of the destinations." }
                @else { "The hook has no plugin yet, so there is nothing to compare a candidate with." }
            }
        }
    }
}

fn check_result(checked: &PolicyTryView) -> Markup {
    html! {
        @if checked.unknown.is_empty() {
            div.notice.good role="status" { strong { "The plugin starts with this document." } p { "It is not active yet." } }
        } @else {
            div.notice.warn role="status" {
                strong { "The plugin starts, but its document names objects that do not exist" }
                p { @for unknown in &checked.unknown { (unknown.kind.name()) " " code { (unknown.name) } " " } }
            }
        }
    }
}

/// The request that a form describes, and the hook that it is for.
fn activation(found: &HookStateView, form: &Form) -> Result<ActivationRequest, ApiError> {
    let request = requested_binding(found.hook, form)?;
    Ok(ActivationRequest {
        expected: form.text("expected").parse().ok(),
        force: Some(form.has("force")),
        why: Some(form.text("why").to_owned()).filter(|why| !why.is_empty()),
        ..request
    })
}

pub(crate) async fn act(context: RequestContext, Path(hook): Path<String>, form: Form) -> Response {
    let setup = match Setup::read(&context, &hook, &form).await {
        Ok(setup) => setup,
        Err(error) => return page(&context, "Set up a plugin", NavItem::Plugins, Err(error)),
    };
    if form.text("do") == "check" {
        return match check_form(&context, &setup.found, &form).await {
            Ok(checked) => render(&context, &setup, &form, None, Some(&checked)),
            Err(error) => render(&context, &setup, &form, Some(&error), None),
        };
    }
    match start(&context, &setup.found, &form).await {
        Ok(done) => RequestContext::redirect(&format!("/plugins/{}", encode_segment(&hook)), done),
        Err(error) => render(&context, &setup, &form, Some(&error), None),
    }
}

async fn start(
    context: &RequestContext,
    found: &HookStateView,
    form: &Form,
) -> Result<&'static str, ApiError> {
    let activation = activation(found, form)?;
    let path = format!("/v1/hooks/{}", found.hook.name());
    let trial = |mode, share| json!(TrialRequest { mode, share, activation: activation.clone() });
    let (below, body, done) = match form.text("do") {
        "activate" => ("activate", json!(activation), "activated"),
        "shadow" => ("candidate", trial(TrialModeView::Shadow, None), "candidate"),
        "canary" => {
            let share = form.text("share").trim_end_matches('%').trim().parse::<f64>();
            let share =
                share.map_err(|_| ApiError::bad_request("The share of a canary is a number of percent."))?;
            ("candidate", trial(TrialModeView::Canary, Some(share)), "candidate")
        }
        _ => return Err(ApiError::bad_request("This action does not exist.")),
    };
    context.send(Method::POST, &format!("{path}/{below}"), form, Some(&body)).await?;
    Ok(done)
}

/// Starts the plugin of a form without traffic.
async fn check_form(
    context: &RequestContext,
    found: &HookStateView,
    form: &Form,
) -> Result<PolicyTryView, ApiError> {
    let activation = ActivationRequest { why: None, expected: None, ..activation(found, form)? };
    let request = PolicyTryRequest { messages: Some(Vec::new()), activation, ..PolicyTryRequest::default() };
    let path = format!("/v1/hooks/{}/try", found.hook.name());
    context.send(Method::POST, &path, form, Some(&json!(request))).await?.read()
}

/// Checks the form while it is written, for the script: the answer is that of the API.
pub(crate) async fn check(context: RequestContext, Path(hook): Path<String>, form: Form) -> Response {
    let path = format!("/v1/hooks/{}", encode_segment(&hook));
    let checked = match context.get::<HookStateView>(&path).await {
        Ok(found) => check_form(&context, &found, &form).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(checked) => Json(checked).into_response(),
        Err(error) => (error.status, Json(json!({ "detail": error.detail }))).into_response(),
    }
}
