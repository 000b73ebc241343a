//! Writes the page of a synthetic trace, to look at it:
//! `cargo run --release -p iostep-analyze --example html_sample -- 5000 sample.html`.

use std::fs::File;
use std::io::{BufWriter, Write};

use iostep_analyze::stats::Summary;
use iostep_analyze::{fixture, report};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(requests), Some(path)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: html_sample REQUESTS FILE");
        std::process::exit(2);
    };
    let Ok(requests) = requests.parse() else {
        eprintln!("{requests}: not a number of requests");
        std::process::exit(2);
    };
    let trace = fixture::sqlite_on_ext4(requests);
    let mut out = BufWriter::new(File::create(path)?);
    report::html::write(&mut out, &trace, &Summary::of(&trace))?;
    out.flush()
}
