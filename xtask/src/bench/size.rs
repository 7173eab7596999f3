//! How large the binary is.

use std::path::Path;

use anyhow::Result;

use super::process::megabytes;
use super::report::{Row, Target, Unit};
use super::samples::Summary;
use crate::shell::target;

pub(super) fn rows() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for profile in ["release", "dist"] {
        let binary = target().join(profile).join("caliban");
        if binary.exists() {
            rows.push(row(profile, &binary)?);
        }
    }
    Ok(rows)
}

fn row(profile: &str, binary: &Path) -> Result<Row> {
    let size = megabytes(std::fs::metadata(binary)?.len());
    let name = format!("binary of the {profile} profile, stripped");
    let row = Row::new(name, Unit::Megabytes, Summary::exact(size));
    Ok(if profile == "dist" {
        row.target(Target::AtMost(30.0))
    } else {
        row
    })
}
