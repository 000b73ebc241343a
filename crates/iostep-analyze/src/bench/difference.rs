//! What differs between the jobs and machines of documents.

use std::collections::BTreeMap;

use iostep_model::bench::Document;
use serde::Serialize;
use serde_json::Value;

/// Something that two documents do not have in common besides the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What, as a path into the document: `job.record_bytes`.
    pub name: String,
    /// Its value in the first document, as JSON but without the quotes of a text; `None` if it is
    /// not there.
    pub first: Option<String>,
    pub second: Option<String>,
}

/// Everything in job, environment and version that is not the same in two documents.
pub(super) fn between(first: &Document, second: &Document) -> Vec<Difference> {
    let mut documents = [first.clone(), second.clone()];
    // Older results do not say which disks: that is no difference.
    if documents.iter().any(|of| of.environment.disks.is_empty()) {
        documents
            .iter_mut()
            .for_each(|of| of.environment.disks.clear());
    }
    let mut documents = documents.map(conditions);
    let names: std::collections::BTreeSet<String> =
        documents.iter().flat_map(|of| of.keys().cloned()).collect();
    let [first, second] = &mut documents;
    let pairs = names.into_iter().map(|name| Difference {
        first: first.remove(&name),
        second: second.remove(&name),
        name,
    });
    let mut differences: Vec<Difference> = pairs.filter(|d| d.first != d.second).collect();
    // What was asked for comes first.
    differences.sort_by_key(|difference| !difference.name.starts_with("job."));
    differences
}

/// The values of a job that are not the same in all documents: the name of each without `job.`,
/// and its value in each document, `-` where it has none.
pub fn varying(documents: &[&Document]) -> Vec<(String, Vec<String>)> {
    let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, document) in documents.iter().enumerate() {
        for (name, value) in flat("", &document.job) {
            let column = columns.entry(name).or_default();
            column.resize(place, "-".into());
            column.push(value);
        }
    }
    for column in columns.values_mut() {
        column.resize(documents.len(), "-".into());
    }
    columns.retain(|_, column| column.windows(2).any(|pair| pair[0] != pair[1]));
    columns.into_iter().collect()
}

fn conditions(document: Document) -> BTreeMap<String, String> {
    let mut environment = document.environment;
    if let Some(filesystem) = &mut environment.filesystem {
        // It follows from the size and the options.
        filesystem.layout.clear();
    }
    for disk in &mut environment.disks {
        // It grows with every run.
        (disk.health_before, disk.health_after) = (None, None);
    }
    let mut found = flat("job", &document.job);
    found.append(&mut flat("environment", &environment));
    found.insert("iostep_version".into(), document.iostep_version);
    found
}

fn flat(name: &str, value: &impl Serialize) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let value = serde_json::to_value(value).expect("a document has only JSON's types");
    flatten(name.to_owned(), value, &mut found);
    found
}

fn flatten(name: String, value: Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = match name.is_empty() {
                    true => field,
                    false => format!("{name}.{field}"),
                };
                flatten(name, value, found);
            }
        }
        Value::Null => {}
        Value::Array(entries) if entries.iter().any(Value::is_object) => {
            for (place, entry) in entries.into_iter().enumerate() {
                flatten(format!("{name}.{place}"), entry, found);
            }
        }
        // Each setting by itself: two long lists hide the one that differs.
        Value::Array(entries) if entries.iter().any(|entry| setting(entry).is_some()) => {
            for (field, value) in entries.iter().filter_map(setting) {
                found.insert(format!("{name}.{field}"), value.to_owned());
            }
        }
        Value::String(text) => {
            found.insert(name, text);
        }
        value => {
            found.insert(name, value.to_string());
        }
    }
}

/// A name and its value, or a name that is there or not.
fn setting(entry: &Value) -> Option<(&str, &str)> {
    match entry {
        Value::String(name) => Some((name, "yes")),
        Value::Array(pair) => match &pair[..] {
            [Value::String(name), Value::String(value)] => Some((name, value)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;
    use iostep_model::bench::{Job, Sync};

    #[test]
    fn what_was_asked_for_comes_before_where() {
        let first = fixture::write_fdatasync(1);
        let mut second = first.clone();
        second.environment.host.kernel = "6.12.0".into();
        second.environment.device = None;
        let Job::File(job) = &mut second.job else {
            panic!("a file job")
        };
        job.sync = Sync::Fsync;
        job.measurement.limits.time_ns = Some(5);
        let found = between(&first, &second);
        let [time, sync, rest @ ..] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (time.name.as_str(), &time.first),
            ("job.limits.time_ns", &None)
        );
        assert_eq!(sync.second.as_deref(), Some("fsync"));
        assert!(rest.iter().any(|d| d.name == "environment.kernel"));
        assert!(rest.iter().all(|d| d.name.starts_with("environment.")));
        assert_eq!(between(&first, &first), []);
    }

    #[test]
    fn of_a_long_list_of_settings_only_the_one_that_differs_is_told() {
        let first = fixture::sqlite_wal(1);
        let mut second = first.clone();
        let sqlite = second.environment.sqlite.as_mut().expect("SQLite ran");
        sqlite
            .settings
            .push(("locking_mode".into(), "exclusive".into()));
        sqlite.compile_options.push("OMIT_UTF16".into());
        let found = between(&first, &second);
        let told: Vec<_> = found
            .iter()
            .map(|d| (d.name.as_str(), d.first.as_deref(), d.second.as_deref()))
            .collect();
        let expected = [
            (
                "environment.sqlite.compile_options.OMIT_UTF16",
                None,
                Some("yes"),
            ),
            (
                "environment.sqlite.settings.locking_mode",
                None,
                Some("exclusive"),
            ),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn only_what_varies_has_a_column() {
        let first = fixture::write_fdatasync(1);
        let mut second = first.clone();
        let Job::File(job) = &mut second.job else {
            panic!("a file job")
        };
        job.threads = 8;
        job.measurement.limits.time_ns = Some(5);
        let columns = varying(&[&first, &second, &first]);
        let expected = [
            ("limits.time_ns", ["-", "5", "-"]),
            ("threads", ["2", "8", "2"]),
        ];
        let expected = expected.map(|(n, v)| (n.to_owned(), v.map(str::to_owned).to_vec()));
        assert_eq!(columns, expected);
        assert_eq!(varying(&[&first]), []);
    }
}
