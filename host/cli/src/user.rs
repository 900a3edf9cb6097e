//! `switchyard user`: manages users of the API.

use crate::format::{list, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use crate::password;
use crate::role_args::{Role, RoleArgs};
use api::{PasswordRequest, User, UserChangeRequest, UserRequest};
use clap::{Args, Subcommand, ValueEnum};
use client::{ApiClient, encode_segment};
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard user add ann --role operator               # prompts for the password
  switchyard user add shop-1 --role account --account shop --bodies
  switchyard user role ann admin
  switchyard user password                              # your own
  switchyard user list"
);

/// Arguments of `user`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct UserCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all users.
    List,
    /// Show one user.
    Show {
        /// The user.
        name: String,
    },
    /// Create a user.
    Add {
        /// The name: 1 to 64 of the characters a-z, A-Z, 0-9, ".", "_", "-" and "@".
        name: String,
        #[command(flatten)]
        role: RoleArgs,
        /// Create the user without a password: the user cannot log in until one is set.
        #[arg(long)]
        no_password: bool,
    },
    /// Change a user's role, or the permission to read texts of messages.
    Role {
        /// The user.
        name: String,
        /// The new role.
        role: Role,
        /// The account, for the role account.
        #[arg(long)]
        account: Option<String>,
        /// Whether the user may read texts of messages; unchanged if not given.
        #[arg(long)]
        bodies: Option<YesNo>,
    },
    /// Set a user's password, and end the user's sessions; without a name, set your own.
    Password {
        /// The user.
        name: Option<String>,
    },
    /// Remove a user, and end the user's sessions.
    Remove {
        /// The user.
        name: String,
    },
}

fn path(name: &str) -> String {
    format!("/v1/users/{}", encode_segment(name))
}

impl UserCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        match self {
            Self::List => print_users(output, &api.read::<Vec<User>>("/v1/users")?),
            Self::Show { name } => print_user(output, &api.read(&path(&name))?),
            Self::Add { name, role: RoleArgs { role, account, tenant, bodies }, no_password } => {
                let password = if no_password {
                    None
                } else {
                    Some(password::read_new_password(&format!("Password of {name}: "))?)
                };
                let request = UserRequest { name, role: role.into(), password, account, tenant, bodies };
                print_user(output, &api.call("POST", "/v1/users", &request)?)
            }
            Self::Role { name, role, account, bodies } => {
                let request = UserChangeRequest {
                    role: Some(role.into()),
                    account: account.map(Some),
                    bodies: bodies.map(|answer| matches!(answer, YesNo::Yes)),
                    ..UserChangeRequest::default()
                };
                print_user(output, &api.call("PATCH", &path(&name), &request)?)
            }
            Self::Password { name: Some(name) } => {
                let password = Some(password::read_new_password(&format!("New password of {name}: "))?);
                let request = UserChangeRequest { password, ..UserChangeRequest::default() };
                api.call::<User>("PATCH", &path(&name), &request)?;
                Ok(())
            }
            Self::Password { name: None } => {
                let old = password::read_password("Your password: ")?;
                let new = password::read_new_password("Your new password: ")?;
                Ok(api.call("POST", "/v1/whoami/password", &PasswordRequest { old, new })?)
            }
            Self::Remove { name } => {
                api.delete(&path(&name))?;
                Ok(())
            }
        }
    }
}

pub(crate) fn flag(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn print_users(output: &Output, users: &[User]) -> Result<(), Failure> {
    if output.json {
        return output.document(&users);
    }
    let rows = users.iter().map(|user| {
        vec![
            value_text(&user.name),
            value_text(&user.role),
            value_text(&user.account),
            flag(user.bodies),
            flag(user.password),
            timestamp(&user.changed),
            value_text(&user.by),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return output.line("no users: log in with the root token");
    }
    output.table(&["USER", "ROLE", "ACCOUNT", "TEXTS", "PASSWORD", "CHANGED", "BY"], &rows)
}

fn print_user(output: &Output, user: &User) -> Result<(), Failure> {
    if output.json {
        return output.document(user);
    }
    output.write(&list(&[
        ("user", value_text(&user.name)),
        ("role", value_text(&user.role)),
        ("account", value_text(&user.account)),
        ("reads texts", flag(user.bodies)),
        ("has a password", flag(user.password)),
        ("created", timestamp(&user.made)),
        ("changed", timestamp(&user.changed)),
        ("by", value_text(&user.by)),
    ]))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use api::{Role, User};
    use model::Timestamp;
    use serde_json::{Value, json};

    fn ann() -> User {
        User {
            name: "ann".to_owned(),
            role: Role::Operator,
            account: None,
            tenant: None,
            bodies: true,
            password: true,
            version: 2,
            made: Timestamp(NOW - 86_400_000),
            changed: Timestamp(NOW),
            by: "token".to_owned(),
        }
    }

    #[test]
    fn users_are_listed_created_changed_and_removed() {
        let api = FakeApi::default()
            .with("GET /v1/users", 200, &json!([ann()]))
            .with("POST /v1/users", 201, &ann())
            .with("PATCH /v1/users/ann", 200, &ann())
            .with("DELETE /v1/users/ann", 204, &Value::Null);
        let url = api.start();
        let done = run(&url, &["user", "list"]);
        let shown = "USER  ROLE      ACCOUNT  TEXTS  PASSWORD  CHANGED               BY\n\
                     ann   operator  -        yes    yes       2026-11-21 16:03:02Z  token\n";
        assert_eq!((done.code, done.out.as_str()), (0, shown), "{}", done.error);
        let done = run(&url, &["user", "add", "ann", "--role", "operator", "--bodies", "--no-password"]);
        assert_eq!(done.code, 0, "{}", done.error);
        let done = run(&url, &["user", "role", "ann", "viewer", "--bodies", "no"]);
        assert_eq!(done.code, 0, "{}", done.error);
        assert_eq!(run(&url, &["user", "remove", "ann"]).code, 0);
        let requests: Vec<(String, Value)> = api
            .requests()
            .into_iter()
            .skip(1)
            .map(|request| (request.line, serde_json::from_str(&request.body).unwrap_or_default()))
            .collect();
        let want = [
            ("POST /v1/users", json!({ "name": "ann", "role": "operator", "bodies": true })),
            ("PATCH /v1/users/ann", json!({ "role": "viewer", "bodies": false })),
            ("DELETE /v1/users/ann", Value::Null),
        ];
        assert_eq!(requests, want.map(|(what, body)| (what.to_owned(), body)));
    }

    #[test]
    fn unknown_users_and_roles_are_refused() {
        let api = FakeApi::default().with("GET /v1/users", 200, &json!([]));
        let url = api.start();
        assert_eq!(run(&url, &["user", "list"]).out, "no users: log in with the root token\n");
        assert_eq!(run(&url, &["user", "show", "carl"]).code, 1);
        assert_eq!(run(&url, &["user", "add", "carl", "--role", "king"]).code, 2);
    }
}
