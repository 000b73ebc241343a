//! What cargo knows of the workspace.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::step::{cargo, output_of};

/// `cargo metadata`, as far as it is of use here.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub target_directory: PathBuf,
}

/// A package that the lock file names.
#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// Where it comes from; `None` for the workspace's own.
    pub source: Option<String>,
    pub dependencies: Vec<Dependency>,
    pub manifest_path: PathBuf,
}

impl Package {
    /// True if it depends on `name` directly, in whatever way.
    pub fn uses(&self, name: &str) -> bool {
        self.dependencies
            .iter()
            .any(|dependency| dependency.name == name)
    }
}

/// A dependency as `Cargo.toml` states it.
#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `None`, `dev` or `build`.
    pub kind: Option<String>,
}

/// Reads the metadata of every package in the lock file.
pub fn read() -> Result<Metadata> {
    let text = output_of(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&text).context("cannot read what cargo metadata printed")
}
