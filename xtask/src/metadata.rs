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
    /// The text that `Cargo.toml` names, from the directory where that lies.
    pub license_file: Option<PathBuf>,
    pub authors: Vec<String>,
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
    read_of("Cargo.toml")
}

/// The same of another workspace, by its manifest.
pub fn read_of(manifest: &str) -> Result<Metadata> {
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let text = output_of(cargo().args(arguments).args(["--manifest-path", manifest]))?;
    serde_json::from_str(&text).context("cannot read what cargo metadata printed")
}
