//! What a server of results makes of an upload, over any bytes.

use std::path::Path;

use iostep_analyze::bench::Summary;
use iostep_model::bench::Document;
use iostep_serve::upload::{Upload, to_send};

/// Takes the bytes as a server does. What is taken is the same when it comes again.
pub fn run(bytes: &[u8]) {
    let sent = to_send(bytes);
    let Ok(upload) = Upload::read(bytes) else {
        return;
    };
    assert!(upload.figures.iter().all(|it| it.value.is_finite()));
    let sent = sent.expect("what a server takes is sent");
    assert!(
        sent == upload.body,
        "the client takes out what the server does"
    );
    let again = Upload::read(&upload.body).expect("what is kept is a result");
    assert_eq!(again.id, upload.id);
    let document = Document::parse(Path::new("kept"), &upload.body).expect("a document");
    let _ = Summary::of(&document);
}
