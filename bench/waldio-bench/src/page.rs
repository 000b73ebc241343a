//! The page with the results: text by hand, tables in between by the bench.

use anyhow::{Result, bail};

const BEGIN: &str = "<!-- bench/waldio: ";
const END: &str = "<!-- end -->";

/// Puts a text between the marks of a name, and leaves all else alone.
pub fn replace(page: &str, name: &str, text: &str) -> Result<String> {
    let mark = format!("{BEGIN}{name} -->\n");
    let Some((before, rest)) = page.split_once(&mark) else {
        bail!("the page has no line {:?}", mark.trim_end());
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("no {END:?} after {:?}", mark.trim_end());
    };
    Ok(format!("{before}{mark}\n{text}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n<!-- bench/waldio: a -->\nold\n<!-- end -->\nmore\n<!-- bench/waldio: b -->\n<!-- end -->\n";

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = replace(PAGE, "a", "new\n").expect("a mark");
        assert_eq!(
            page,
            PAGE.replace("\nold\n", "\n\nnew\n\n"),
            "and the other one stays"
        );
        assert_eq!(replace(&page, "a", "new\n").expect("a mark"), page);
    }

    #[test]
    fn a_page_without_the_mark_or_its_end_is_refused() {
        assert!(replace(PAGE, "c", "").is_err());
        assert!(replace("<!-- bench/waldio: a -->\n", "a", "").is_err());
    }
}
