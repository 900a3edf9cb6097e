//! `switchyard user`: who may use the appliance's API.

use crate::leave::{Leave, Role};
use crate::output::{Failure, Output, Streams};
use crate::secret;
use crate::table::{list, moment, table, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand, ValueEnum};
use client::{Appliance, segment};
use serde_json::{Value, json};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard user add ann --role operator               # asks for her password
  switchyard user add shop-1 --role account --account shop --bodies
  switchyard user role ann admin
  switchyard user password                              # your own
  switchyard user list"
);

/// Arguments of `user`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct UserCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Answer {
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
    /// Make a user.
    Add {
        /// The name: 1 to 64 of the characters a-z, A-Z, 0-9, ".", "_", "-" and "@".
        name: String,
        #[command(flatten)]
        leave: Leave,
        /// Without a password: the user cannot log in until one is set.
        #[arg(long)]
        no_password: bool,
    },
    /// Give a user another role, or other leave to read texts of messages.
    Role {
        /// The user.
        name: String,
        /// What the user may do from now on.
        role: Role,
        /// The account, for the role account.
        #[arg(long)]
        account: Option<String>,
        /// Whether the user may read texts of messages; as before otherwise.
        #[arg(long)]
        bodies: Option<Answer>,
    },
    /// Set a user's password, and end the user's sessions; without a name: your own.
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
    format!("/v1/users/{}", segment(name))
}

impl UserCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| task.run(appliance, output))
    }
}

impl Task {
    fn run(self, appliance: &Appliance, output: &Output) -> Result<(), Failure> {
        match self {
            Self::List => all(output, &appliance.get("/v1/users")?),
            Self::Show { name } => one(output, &appliance.get(&path(&name))?),
            Self::Add { name, leave, no_password } => {
                let mut wish = leave.wish(&name);
                if !no_password {
                    wish["password"] = secret::ask_new(&format!("Password of {name}: "))?.into();
                }
                one(output, &appliance.post("/v1/users", &wish)?)
            }
            Self::Role { name, role, account, bodies } => {
                let mut wish = json!({ "role": role.name() });
                if let Some(account) = account {
                    wish["account"] = account.into();
                }
                if let Some(answer) = bodies {
                    wish["bodies"] = matches!(answer, Answer::Yes).into();
                }
                one(output, &appliance.patch(&path(&name), &wish)?)
            }
            Self::Password { name: Some(name) } => {
                let password = secret::ask_new(&format!("New password of {name}: "))?;
                appliance.patch(&path(&name), &json!({ "password": password }))?;
                Ok(())
            }
            Self::Password { name: None } => {
                let old = secret::ask("Your password: ")?;
                let new = secret::ask_new("Your new password: ")?;
                appliance.post("/v1/whoami/password", &json!({ "old": old, "new": new }))?;
                Ok(())
            }
            Self::Remove { name } => {
                appliance.delete(&path(&name))?;
                Ok(())
            }
        }
    }
}

pub(crate) fn flag(value: &Value) -> String {
    if value == true { "yes" } else { "no" }.to_owned()
}

fn all(output: &Output, users: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(users);
    }
    let rows = users.as_array().into_iter().flatten().map(|user| {
        vec![
            word(&user["name"]),
            word(&user["role"]),
            word(&user["account"]),
            flag(&user["bodies"]),
            flag(&user["password"]),
            moment(&user["changed"]),
            word(&user["by"]),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return output.line("no users: only the appliance's token comes in");
    }
    output.write(&table(&["USER", "ROLE", "ACCOUNT", "TEXTS", "PASSWORD", "CHANGED", "BY"], &rows))
}

fn one(output: &Output, user: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(user);
    }
    output.write(&list(&[
        ("user", word(&user["name"])),
        ("role", word(&user["role"])),
        ("account", word(&user["account"])),
        ("reads texts", flag(&user["bodies"])),
        ("has a password", flag(&user["password"])),
        ("made", moment(&user["made"])),
        ("changed", moment(&user["changed"])),
        ("by", word(&user["by"])),
    ]))
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};

    fn ann() -> Value {
        json!({
            "name": "ann", "role": "operator", "account": null, "bodies": true, "password": true, "version": 2,
            "made": NOW - 86_400_000, "changed": NOW, "by": "token",
        })
    }

    #[test]
    fn users_are_listed_made_changed_and_removed() {
        let stub = Stub::default()
            .with("GET /v1/users", 200, &json!([ann()]))
            .with("POST /v1/users", 201, &ann())
            .with("PATCH /v1/users/ann", 200, &ann())
            .with("DELETE /v1/users/ann", 204, &Value::Null);
        let url = stub.start();
        let done = run(&url, &["user", "list"]);
        let shown = "USER  ROLE      ACCOUNT  TEXTS  PASSWORD  CHANGED               BY\n\
                     ann   operator  -        yes    yes       2026-11-21 16:03:02Z  token\n";
        assert_eq!((done.code, done.out.as_str()), (0, shown), "{}", done.error);
        let done = run(&url, &["user", "add", "ann", "--role", "operator", "--bodies", "--no-password"]);
        assert_eq!(done.code, 0, "{}", done.error);
        let done = run(&url, &["user", "role", "ann", "viewer", "--bodies", "no"]);
        assert_eq!(done.code, 0, "{}", done.error);
        assert_eq!(run(&url, &["user", "remove", "ann"]).code, 0);
        let asked: Vec<(String, Value)> = stub
            .asked()
            .into_iter()
            .skip(1)
            .map(|asked| (asked.what, serde_json::from_str(&asked.body).unwrap_or_default()))
            .collect();
        let want = [
            ("POST /v1/users", json!({ "name": "ann", "role": "operator", "bodies": true })),
            ("PATCH /v1/users/ann", json!({ "role": "viewer", "bodies": false })),
            ("DELETE /v1/users/ann", Value::Null),
        ];
        assert_eq!(asked, want.map(|(what, body)| (what.to_owned(), body)));
    }

    #[test]
    fn who_is_not_there_is_refused_and_no_users_are_told() {
        let stub = Stub::default().with("GET /v1/users", 200, &json!([]));
        let url = stub.start();
        assert_eq!(run(&url, &["user", "list"]).out, "no users: only the appliance's token comes in\n");
        assert_eq!(run(&url, &["user", "show", "carl"]).code, 1);
        assert_eq!(run(&url, &["user", "add", "carl", "--role", "king"]).code, 2);
    }
}
