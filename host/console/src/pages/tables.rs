//! Lookup tables: list, lookup, upload and removal.

use crate::api_caller::{ApiError, ApiRequest, encode_segment, with_query};
use crate::form::Form;
use crate::format::{count, octets};
use crate::layout::{action_button, csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, Pagination, detail_list, numeric_table};
use api::{Permission, TableKind, TableLookUpView, TableView};
use axum::body::Bytes;
use axum::extract::{Multipart, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

const KINDS: [TableKind; 2] = [TableKind::Prefix, TableKind::Exact];

/// The kind of lookup of a table, for people.
fn kind_text(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Prefix => "longest prefix match",
        TableKind::Exact => "exact match",
    }
}

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &Form::of(query), None).await
}

async fn render(context: &RequestContext, query: &Form, error: Option<&ApiError>) -> Response {
    let body = page_body(context, query, error).await;
    let mut response = page(context, "Lookup tables", NavItem::Tables, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

async fn page_body(
    context: &RequestContext,
    query: &Form,
    error: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let tables: Vec<TableView> = context.get("/v1/tables").await?;
    let configures = context.has_permission(Permission::Configure);
    let shown = Pagination::new(tables.len(), query.text("page"));
    let rows: Vec<_> = tables[shown.from..shown.upto]
        .iter()
        .map(|one| {
            let name = one.name.as_str();
            let mut row = vec![
                html! { a href=(with_query("/tables", &[("table", name)])) { (name) } },
                html! { (kind_text(one.kind)) },
                html! { (count(one.rows)) },
                html! { (octets(one.octets)) },
            ];
            if configures {
                row.push(action_button(context, "/tables", "Remove", "danger", &[("table", name)]));
            }
            row
        })
        .collect();
    let mut heads = vec![
        Column::Text("Table"),
        Column::Text("Searched"),
        Column::Number("Keys"),
        Column::Number("Memory"),
    ];
    if configures {
        heads.push(Column::Text("Remove"));
    }
    let empty = html! {
        h2 { "No tables yet" }
        p { "A table holds values that plugins look up by key: prefixes with prices, ported numbers, blocked senders." }
    };
    Ok(html! {
        h1 { "Lookup tables" }
        @if let Some(error) = error { (error_notice(error)) }
        section.card { (numeric_table("Tables", &heads, &rows, &empty)) }
        (shown.links("/tables", &[]))
        @if !tables.is_empty() { (look_up(context, &tables, query).await) }
        @if configures { (fill_form(context)) }
    })
}

async fn look_up(context: &RequestContext, tables: &[TableView], query: &Form) -> Markup {
    let (name, key) = (query.text("table"), query.text("key"));
    let found = match (name, key) {
        ("", _) | (_, "") => None,
        _ => Some(
            context
                .get::<TableLookUpView>(&with_query(
                    &format!("/v1/tables/{}", encode_segment(name)),
                    &[("key", key)],
                ))
                .await,
        ),
    };
    html! {
        section.card #look-up {
            h2 { "Lookup" }
            form.fields method="get" action="/tables" role="search" aria-label="Lookup" {
                p { label for="table" { "Table" } select #table name="table" { @for one in tables.iter().take(crate::table::MAX_ROWS) { option value=(one.name) selected[one.name == name] { (one.name) } } } }
                p { label for="key" { "Key" } input #key name="key" value=(key) required autocomplete="off" spellcheck="false"; }
                p.actions { button type="submit" { "Look up" } }
            }
            @match found {
                None => {}
                Some(Err(error)) => { (error_notice(&error)) }
                Some(Ok(answer)) => {
                    (detail_list(&[
                        ("Exact match", html! { (answer.exact.as_deref().unwrap_or("nothing")) }),
                        ("Longest prefix match", html! {
                            @match &answer.longest {
                                Some(longest) => {
                                    (longest.value) " "
                                    span.muted { "(" (key.chars().take(usize::try_from(longest.length).unwrap_or(0)).collect::<String>()) ")" }
                                }
                                None => { "nothing" }
                            }
                        }),
                    ]))
                }
            }
        }
    }
}

fn fill_form(context: &RequestContext) -> Markup {
    html! {
        section.card {
            h2 { "Fill a table" }
            form.fields method="post" action="/tables/fill" enctype="multipart/form-data" {
                // The CSRF token is the first field, so that it arrives before the rows.
                (csrf_field(context))
                p { label for="name" { "Name" } input #name name="name" required maxlength="64" autocomplete="off" spellcheck="false"; }
                p { label for="kind" { "Searched" } select #kind name="kind" { @for kind in KINDS { option value=(kind.name()) { (kind_text(kind)) } } } }
                p { label for="rows" { "Rows" } input #rows name="rows" type="file" accept=".csv,text/csv,text/plain" required aria-describedby="rows-hint"; small #rows-hint { "A file with a key and its value on each line: 4917,north" } }
                p.actions { button.primary type="submit" { "Fill" } }
                p.muted { "The rows replace all existing rows. For larger files, use " code { "curl" } " at " code { "/v1/tables" } "." }
            }
        }
    }
}

pub(crate) async fn fill(context: RequestContext, fields: Multipart) -> Response {
    let result = match read(fields).await {
        Ok(TableUpload { csrf, name, kind, rows }) => {
            let path = with_query(&format!("/v1/tables/{}", encode_segment(&name)), &[("kind", &kind)]);
            let sent =
                ApiRequest { csrf: &csrf, body: rows.into(), media_type: "text/csv", headers: Vec::new() };
            context.api_caller.call(Method::PUT, &path, sent).await.map(|_| name)
        }
        Err(error) => Err(error),
    };
    match result {
        Ok(name) => RequestContext::redirect(&with_query("/tables", &[("table", &name)]), "filled"),
        Err(error) => render(&context, &Form::default(), Some(&error)).await,
    }
}

/// The fields of the upload form.
#[derive(Default)]
struct TableUpload {
    csrf: String,
    name: String,
    kind: String,
    rows: Bytes,
}

async fn read(mut fields: Multipart) -> Result<TableUpload, ApiError> {
    let mut upload = TableUpload::default();
    while let Some(field) = fields.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        match name.as_str() {
            "csrf" => upload.csrf = field.text().await?,
            "name" => upload.name = field.text().await?.trim().to_owned(),
            "kind" => upload.kind = field.text().await?,
            "rows" => upload.rows = field.bytes().await?,
            _ => {}
        }
    }
    match upload.name.as_str() {
        "" => Err(ApiError::bad_request("Give the name of the table.")),
        _ => Ok(upload),
    }
}

pub(crate) async fn remove(context: RequestContext, form: Form) -> Response {
    let path = format!("/v1/tables/{}", encode_segment(form.text("table")));
    match context.send(Method::DELETE, &path, &form, None).await {
        Ok(_) => RequestContext::redirect("/tables", "removed"),
        Err(error) => render(&context, &Form::default(), Some(&error)).await,
    }
}
