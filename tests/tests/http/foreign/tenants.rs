//! The API as users of a tenant, with each role, by PyPI `schemathesis`: no answer contains data of another branch.

use super::openapi::{Run, run_schemathesis};
use crate::tenants::TwoBranches;
use anyhow::{Context, Result};

#[test]
fn random_requests_with_each_role_of_a_tenant_show_nothing_of_another_branch() -> Result<()> {
    let mut branches = TwoBranches::start()?;
    let words = branches.foreign_words().join(",");
    for role in ["account", "viewer", "operator", "admin"] {
        // The admin comes last: its random requests may delete the tokens of its branch.
        let token = branches.token("random", role, "northern-shop", true)?;
        let run = Run { configuration: "tenants.toml", token: &token, foreign_words: &words };
        let folder = branches.folder().to_owned();
        run_schemathesis(&mut branches.appliance, &folder, &run).with_context(|| format!("as {role}"))?;
        branches.ensure_foreign_is_unchanged().with_context(|| format!("as {role}"))?;
    }
    Ok(())
}
