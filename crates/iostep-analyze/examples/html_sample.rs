//! Writes the page of a synthetic trace, to look at it:
//! `cargo run --release -p iostep-analyze --example html_sample -- 5000 sample.html`.

use iostep_analyze::report;
use iostep_analyze::stats::Summary;
use iostep_model::fixture;

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
    std::fs::write(path, report::trace::page(&trace, &Summary::of(&trace)))
}
