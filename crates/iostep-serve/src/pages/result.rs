//! `/result/ID`: the page of `iostep bench --html`, below what became of the result.

use std::path::Path;

use iostep_analyze::bench::Summary;
use iostep_analyze::report::bench;
use iostep_model::bench::Document as Measured;
use iostep_report::document::{Block, Detail, Document, Fact, Section};

use super::link;
use super::question::{Question, missing};
use crate::api::{self, App, Failure};
use crate::log::utc;
use crate::store::{Record, State, Submission};

pub fn show(app: &App, question: &Question) -> Result<Document, Failure> {
    let id = api::id(&question.name)?;
    let record = app.readers().submission(&id);
    let (submission, body) = match record.map_err(|error| Failure::of_store(&error))? {
        Record::Kept(submission, body) => (submission, body),
        Record::Gone => return Err(api::gone()),
        Record::Missing => return Err(missing("there is no such result")),
    };
    let measured = Measured::parse(Path::new(&submission.id), &body);
    let measured = measured.map_err(|error| Failure::internal(error.to_string()))?;
    let mut document = bench::document(&measured, &Summary::of(&measured), true);
    let state = Block::Section(state(&submission));
    document.body.blocks.insert(0, (Detail::Page, state));
    Ok(document)
}

/// What became of it, and why.
fn state(submission: &Submission) -> Section {
    let mut section = Section::new(String::new());
    let name = submission.state.name();
    section.push(Block::Facts(vec![
        Fact::of("state", name),
        Fact::of("received", utc(submission.received.unsigned_abs())),
        Fact::of("test", &submission.test[..]),
        Fact::of("result", &submission.id[..]),
    ]));
    let said = match submission.state {
        State::Valid => {
            "It counts: in rankings its installation stands with the median of its results."
        }
        State::Invalid => "It does not count, since the figures are not those of the device alone:",
        State::Quarantined => "It does not count until an operator has looked at it:",
        State::Delisted => "It does not count, since an operator found that it is wrong:",
    };
    let mut lines = vec![said.to_owned()];
    lines.extend(submission.reasons.iter().map(|reason| reason.text.clone()));
    section.push(Block::Lines(lines));
    let product = submission.device.product();
    let mut links = vec![(product.name(), link::device(&product))];
    if submission.state == State::Valid {
        let page = link::to("/", &[("test", &submission.test)]);
        links.push(("Ranking of this test".into(), page));
    }
    links.push((
        "The same as JSON".into(),
        format!("/api/v1/results/{}", submission.id),
    ));
    section.push(Block::Links(links));
    section
}
