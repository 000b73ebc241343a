//! Results of cells, found by what their cells are.

use iostep_model::lab::{CellResult, Environment, Measure, Medium};
use serde::Serialize;

use super::Value;

/// Some axes with their values.
pub(super) type At<'a> = [(&'a str, &'a str)];

/// All results of a lab, in the order of its cells.
#[derive(Clone, Copy)]
pub(super) struct Results<'a>(pub &'a [CellResult]);

impl<'a> Results<'a> {
    /// Those with these values.
    pub fn matching<'b>(self, at: &'b At<'b>) -> impl Iterator<Item = &'a CellResult> {
        self.0
            .iter()
            .filter(move |result| result.cell.is_at(at.iter().copied()))
    }

    /// The first with these values.
    pub fn first(self, at: &At<'_>) -> Option<&'a CellResult> {
        self.matching(at).next()
    }

    /// The values of an axis among those at `at`, in the order of the cells.
    pub fn values_of(self, axis: &str, at: &At<'_>) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for result in self.matching(at) {
            let value = result.cell.value(axis).unwrap_or_default();
            if !values.iter().any(|other| *other == *value) {
                values.push(value.into_owned());
            }
        }
        values
    }

    /// A number of the first cell with these values, and the cell.
    pub fn value(self, at: &At<'_>, measure: Measure) -> Option<(Value, &'a CellResult)> {
        let result = self.first(at)?;
        Some((Value::of(measure, result)?, result))
    }
}

/// What cells have in common whose times may be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// What the storage lies on.
    pub place: Medium,
    /// Times are those of a processor emulated in software.
    pub emulated: bool,
    /// `uname -r`.
    pub kernel: String,
    /// The device's name for itself; empty where it has none.
    pub device_model: String,
}

impl Platform {
    fn of(environment: &Environment) -> Platform {
        Platform {
            place: environment.place,
            emulated: environment.emulated,
            kernel: environment.host.kernel.clone(),
            device_model: environment.device_model.clone(),
        }
    }

    /// What the storage lay on, in words.
    pub(super) fn kind(&self) -> &'static str {
        match (self.place, self.emulated) {
            (Medium::Guest, true) => "an emulated guest",
            (Medium::Guest, false) => "a guest",
            (Medium::Loop, _) => "a loop device over a file",
            (Medium::Tmpfs, _) => "a loop device over memory",
            (Medium::Device, _) => "a device",
            (Medium::Directory, _) => "a directory",
        }
    }

    /// The same, where another one was named before.
    pub(super) fn kind_beside(&self, other: &Platform) -> &'static str {
        match self.kind() == other.kind() {
            true => "another machine",
            false => self.kind(),
        }
    }

    /// Of a cell that ran.
    pub fn of_result(result: &CellResult) -> Option<Platform> {
        result.environment.as_ref().map(Platform::of)
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kind())?;
        if !self.device_model.is_empty() {
            write!(f, " ({})", self.device_model)?;
        }
        write!(f, ", Linux {}", self.kernel)
    }
}
