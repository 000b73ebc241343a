//! The reader of labs over any text.

use std::collections::HashSet;
use std::path::Path;

use iostep_lab::{matrix, plan};

/// Reads the text, and checks that each cell has a key of its own.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let lab = match plan::parse(Path::new("lab.toml"), text, &|_, _| Ok(())) {
        Ok(lab) => lab,
        Err(error) => {
            let line = error.to_string();
            assert!(
                line.starts_with("lab.toml: ") && !line.contains('\n'),
                "{line}"
            );
            return;
        }
    };
    assert!((1..=matrix::MAX_CELLS).contains(&lab.cells.len()));
    let keys: HashSet<&str> = lab.cells.iter().map(|cell| cell.key.as_str()).collect();
    assert_eq!(keys.len(), lab.cells.len());
    for cell in &lab.cells {
        assert!(cell.key.len() == 16 && cell.axes.len() >= 2);
        assert!(cell.repeat >= 1 && cell.storage.device_bytes > 0);
        let _ = plan::not_applicable(cell);
    }
}
