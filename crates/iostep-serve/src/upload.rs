//! What somebody sent, as a result that may be kept.

use std::path::Path;

use iostep_analyze::bench::{Summary, strip};
use iostep_model::bench::{Document, Step};
use iostep_model::error::Error::Corrupt;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::check::{self, Reason};
use crate::subject::{self, Device};

/// More runs than any result has.
const MOST_RUNS: usize = 100;
/// A day.
const MOST_SECONDS: usize = 86_400;
/// More faults than this help nobody.
const MOST_FAULTS: usize = 20;
/// How far a figure may be from the same one computed here, as a share: text of a number is rounded.
const ROUNDING: f64 = 1e-9;

/// What is kept of a result is no longer than this.
pub const MOST_BODY_BYTES: usize = 16 << 20;

/// The name of a result: SHA-256 of what is kept of it.
pub type Id = [u8; 32];

/// A result that may be kept.
#[derive(Clone, Debug)]
pub struct Upload {
    pub id: Id,
    /// JSON of what is kept.
    pub body: Vec<u8>,
    /// The name of its test.
    pub test: String,
    /// The kind of its filesystem; empty for a device.
    pub filesystem: String,
    pub device: Device,
    /// Its figures over all complete runs.
    pub figures: Vec<Figure>,
    /// Why it is not ranked; nothing if it is.
    pub reasons: Vec<Reason>,
}

/// A measure's median over the runs, with the ends of its 95 % interval where there are several.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, which ends in its unit.
    pub measure: String,
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

/// Why something is no result that may be kept: a line for each fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", reasons.join("; "))]
pub struct Refusal {
    pub reasons: Vec<String>,
}

impl Refusal {
    fn one(reason: impl ToString) -> Refusal {
        Refusal {
            reasons: vec![reason.to_string()],
        }
    }
}

impl Upload {
    /// Reads a file of `iostep bench -o`, or the `result` in it. What the summary of such a file says
    /// has to be what its runs say.
    ///
    /// Errors: what is wrong with it.
    pub fn read(text: &[u8]) -> Result<Upload, Refusal> {
        let mut document = parse(text, "the upload")?;
        let refused = |mut reasons: Vec<String>| {
            reasons.truncate(MOST_FAULTS);
            Err(Refusal { reasons })
        };
        let faults = check::faults(&document);
        if !faults.is_empty() {
            return refused(faults);
        }
        strip(&mut document);
        let summary = Summary::of(&document);
        let mut body = Vec::with_capacity(text.len());
        serde_json::to_writer(&mut body, &document).map_err(Refusal::one)?;
        // What is nothing else has no summary either.
        if body != text {
            let contradictions = contradictions(text, &summary)?;
            if !contradictions.is_empty() {
                return refused(contradictions);
            }
        }
        if body.len() > MOST_BODY_BYTES {
            return Err(Refusal::one(format!("more than {MOST_BODY_BYTES} bytes")));
        }
        let filesystem = document.environment.filesystem.as_ref();
        Ok(Upload {
            id: Sha256::digest(&body).into(),
            test: subject::test(&document.job),
            filesystem: filesystem.map(|it| it.kind.clone()).unwrap_or_default(),
            device: Device::of(&document),
            figures: figures(&summary),
            reasons: check::against(&document, &summary),
            body,
        })
    }
}

/// What of a result is sent: all that is kept of it, as JSON.
///
/// Errors: it is no result of `iostep bench`.
pub fn to_send(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut document = parse(text, "the result")?;
    strip(&mut document);
    serde_json::to_vec(&document).map_err(Refusal::one)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |estimate: &iostep_analyze::bench::Estimate| Figure {
        measure: estimate.measure.to_string(),
        value: estimate.median,
        interval: estimate.interval.map(|it| (it.low, it.high)),
    };
    let estimates = summary.estimates.iter();
    // SQLite keeps no other numbers, and one that it refused would spoil the commit of others too.
    let finite = estimates.filter(|estimate| estimate.median.is_finite());
    finite.map(figure).collect()
}

/// A result of a size that results have.
fn parse(text: &[u8], name: &str) -> Result<Document, Refusal> {
    let document = Document::parse(Path::new(name), text).map_err(|error| match error {
        Corrupt { .. } => Refusal::one(format!("this is no result of iostep bench: {error}")),
        error => Refusal::one(error),
    })?;
    let limit = |what: &str, most: usize| Err(Refusal::one(format!("more than {most} {what}")));
    if document.runs.len() > MOST_RUNS {
        return limit("runs", MOST_RUNS);
    }
    for run in &document.runs {
        if run.latencies.len() > Step::ALL.len() {
            return limit("kinds of latencies in a run", Step::ALL.len());
        }
        if run.seconds.len() > MOST_SECONDS {
            return limit("seconds in a run", MOST_SECONDS);
        }
    }
    Ok(document)
}

/// What a result stands beside in the file of `iostep bench -o`.
#[derive(Deserialize)]
struct Beside {
    summary: Option<Claims>,
}

/// What an upload's summary says.
#[derive(Deserialize)]
struct Claims {
    #[serde(default)]
    estimates: Vec<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    measure: String,
    median: Option<f64>,
}

/// What an upload's own summary says and its runs do not.
///
/// Errors: it is no summary.
fn contradictions(text: &[u8], summary: &Summary) -> Result<Vec<String>, Refusal> {
    let beside: Beside = serde_json::from_slice(text)
        .map_err(|error| Refusal::one(format!("this is no result of iostep bench: {error}")))?;
    let claims = beside.summary.iter().flat_map(|it| &it.estimates);
    let wrong = claims.filter_map(|claim| {
        let mut own = summary.estimates.iter();
        // A measure of another version cannot be computed here.
        let own = own.find(|own| own.measure.to_string() == claim.measure)?;
        let claimed = claim.median?;
        let is_same = (claimed - own.median).abs() <= own.median.abs() * ROUNDING;
        (!is_same).then(|| {
            format!(
                "its summary says {} of {claimed}, and its runs {}",
                claim.measure, own.median
            )
        })
    });
    Ok(wrong.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use iostep_model::bench::Job;
    use serde_json::{Value, json};

    fn refusal(text: &[u8]) -> String {
        let refusal = Upload::read(text).expect_err("it is refused");
        assert_eq!(refusal.reasons.len(), 1, "{refusal:?}");
        refusal.reasons.into_iter().next().unwrap_or_default()
    }

    fn file(document: &Document) -> Value {
        json!({ "result": document, "summary": Summary::of(document) })
    }

    #[test]
    fn a_file_and_the_result_in_it_are_one_and_what_is_kept_reads_as_itself() {
        let document = fixture::file(3);
        let whole = Upload::read(file(&document).to_string().as_bytes()).expect("a result");
        let bare = serde_json::to_vec_pretty(&document).expect("JSON");
        let bare = Upload::read(&bare).expect("a result");
        assert_eq!(whole.id, bare.id);
        let again = Upload::read(&whole.body).expect("a result");
        assert_eq!((again.id, &again.body), (whole.id, &whole.body));
        assert_eq!(whole.reasons, []);
        assert_eq!(whole.filesystem, "ext4");
        let rate = &whole.figures[0];
        assert_eq!(rate.measure, "operations_per_second");
        let own = Summary::of(&document);
        assert_eq!(rate.value, own.estimates[0].median);
        assert!(rate.interval.is_some());
    }

    #[test]
    fn a_figure_that_is_no_number_is_none() {
        let mut summary = Summary::of(&fixture::file(3));
        let all = figures(&summary).len();
        summary.estimates[0].median = f64::NAN;
        assert_eq!(figures(&summary).len(), all - 1);
    }

    #[test]
    fn what_has_no_place_in_a_result_is_not_kept() {
        let mut json = file(&fixture::file(1));
        json["result"]["environment"]["hostname"] = "alices-laptop".into();
        json["result"]["environment"]["disks"][0]["serial"] = "S3RIAL".into();
        json["owner"] = "Alice".into();
        let upload = Upload::read(json.to_string().as_bytes()).expect("a result");
        let sent = to_send(json.to_string().as_bytes()).expect("a result");
        assert_eq!(sent, upload.body);
        let kept = String::from_utf8(upload.body).expect("UTF-8");
        for word in ["alice", "Alice", "S3RIAL", "/mnt"] {
            assert!(!kept.contains(word), "{word}: {kept}");
        }
    }

    #[test]
    fn a_summary_that_its_runs_do_not_bear_out_is_refused() {
        let mut json = file(&fixture::file(3));
        let median = json["summary"]["estimates"][0]["median"].as_f64();
        json["summary"]["estimates"][0]["median"] = (2.0 * median.expect("a number")).into();
        let reason = refusal(json.to_string().as_bytes());
        assert!(
            reason.starts_with("its summary says operations_per_second of"),
            "{reason}"
        );
        // A figure that only another version knows.
        let mut json = file(&fixture::file(3));
        json["summary"]["estimates"][0]["measure"] = "luck".into();
        assert!(Upload::read(json.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn what_is_no_result_or_one_of_the_future_says_so() {
        assert!(refusal(b"hi").starts_with("this is no result of iostep bench:"));
        assert!(refusal(b"{}").contains("schema_version: missing"));
        // The fields of a result in their order, without their names.
        let fields = serde_json::to_value(fixture::file(1)).expect("JSON");
        let list = fields.as_object().expect("fields").values();
        let list = Value::from_iter(list.cloned()).to_string();
        assert!(refusal(list.as_bytes()).contains("expected an object"));
        assert!(refusal(&[b'['; 100_000]).starts_with("this is no result"));
        let mut json = file(&fixture::file(1));
        json["result"]["schema_version"] = 99.into();
        let reason = refusal(json.to_string().as_bytes());
        assert!(reason.contains("result schema 99"), "{reason}");
        let whole = file(&fixture::file(1)).to_string();
        let cut = &whole.as_bytes()[..whole.len() / 2];
        assert!(refusal(cut).contains("EOF"), "{}", refusal(cut));
    }

    #[test]
    fn more_histograms_than_there_are_steps_are_refused() {
        let mut json = file(&fixture::file(1));
        let latency = json["result"]["runs"][0]["latencies"][0].clone();
        json["result"]["runs"][0]["latencies"] = vec![latency; 11].into();
        let reason = refusal(json.to_string().as_bytes());
        assert_eq!(reason, "more than 10 kinds of latencies in a run");
        let mut json = file(&fixture::file(1));
        let run = json["result"]["runs"][0].clone();
        json["result"]["runs"] = vec![run; MOST_RUNS + 1].into();
        assert_eq!(refusal(json.to_string().as_bytes()), "more than 100 runs");
    }

    /// Every place of a value, with all elements of a list as one.
    fn places(value: &Value, place: &str, found: &mut std::collections::BTreeMap<String, String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
            Value::Array(items) => {
                let items = items.iter().take(3).enumerate();
                items.map(|(at, it)| (at.to_string(), it)).collect()
            }
            _ => Vec::new(),
        };
        for (key, child) in children {
            let key = key.replace('~', "~0").replace('/', "~1");
            let place = format!("{place}/{key}");
            let kind = place.replace(|it: char| it.is_ascii_digit(), "");
            found.entry(kind).or_insert_with(|| place.clone());
            places(child, &place, found);
        }
    }

    #[test]
    fn no_value_at_any_place_breaks_more_than_its_own_upload() {
        for document in [fixture::file(2), fixture::sqlite(2)] {
            let whole = file(&document);
            let mut found = std::collections::BTreeMap::new();
            places(&whole, "", &mut found);
            assert!(found.len() > 100, "{}", found.len());
            for place in found.values() {
                for text in [
                    "-1",
                    "0",
                    "1.5",
                    "4294967295",
                    "18446744073709551615",
                    "18446744073709551616",
                    "1e308",
                    "-1e308",
                    "null",
                    "\"x\"",
                    "[]",
                    "{}",
                ] {
                    let mut changed = whole.clone();
                    let there = changed.pointer_mut(place).expect("a place");
                    *there = serde_json::from_str(text).expect("JSON");
                    // It may be taken; a figure that is kept is a number.
                    if let Ok(upload) = Upload::read(changed.to_string().as_bytes()) {
                        let mut figures = upload.figures.iter();
                        assert!(figures.all(|it| it.value.is_finite()), "{place}: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused() {
        let whole = file(&fixture::file(1)).to_string();
        for number in ["NaN", "Infinity", "1e999", "-1e999", "01", "+1", "0x1"] {
            let elapsed = "\"elapsed_ns\":";
            let at = whole.find(elapsed).expect("a field") + elapsed.len();
            let text = format!("{}{number} ,\"x\":{}", &whole[..at], &whole[at..]);
            assert!(Upload::read(text.as_bytes()).is_err(), "{number}");
        }
        let twice = whole.replacen("\"result\":", "\"result\":null,\"result\":", 1);
        assert!(
            refusal(twice.as_bytes()).contains("duplicate field"),
            "{twice}"
        );
        let latin = [
            &whole.as_bytes()[..1],
            b"\"x\":\"\xff\",",
            &whole.as_bytes()[1..],
        ]
        .concat();
        assert!(Upload::read(&latin).is_err());
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            // What is no part of a result is passed without a stack.
            let beside = format!("{{\"x\":{deep},{}", &whole[1..]);
            assert!(Upload::read(beside.as_bytes()).is_ok(), "{open}");
            for part in ["result", "job", "runs", "summary"] {
                let only = format!("{{\"{part}\":{deep}}}");
                assert!(Upload::read(only.as_bytes()).is_err(), "{part}: {open}");
            }
        }
    }

    #[test]
    fn numbers_of_a_job_that_no_machine_has_do_not_overflow() {
        let mut document = fixture::file(1);
        let Job::File(job) = &mut document.job else {
            panic!("a job of files")
        };
        job.transfer = iostep_model::bench::Transfer::Direct;
        job.engine = iostep_model::bench::Engine::Uring;
        (job.depth, job.threads, job.record_bytes) = (u32::MAX, u32::MAX, u64::MAX);
        let text = file(&document).to_string();
        assert!(Upload::read(text.as_bytes()).is_err());
    }
}
