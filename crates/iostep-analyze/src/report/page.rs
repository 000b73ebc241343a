//! What is asked of every page.

/// Every element that is opened is closed, in order, and no attribute is left open.
pub fn well_formed(page: &str) {
    const VOID: [&str; 3] = ["meta", "line", "input"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!doctype html>").expect("a doctype");
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let (tag, after) = rest.split_once('>').expect("the end of a tag");
        rest = after;
        assert!(!tag.contains('<'), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next();
        let name = name.expect("a name");
        match tag.strip_prefix('/') {
            Some(_) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if VOID.contains(&name) || tag.ends_with('/') => {}
            None => open.push(name),
        }
        // What is inside of these is no markup.
        if let Some("style" | "script") = open.last().copied() {
            rest = &rest[rest.find("</").expect("the end of it")..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// The figure under this heading.
pub fn figure<'a>(page: &'a str, title: &str) -> &'a str {
    let start = page.find(&format!("<h3>{title}</h3>")).expect("the figure");
    let text = &page[start..];
    &text[..text.find("</figure>").expect("its end")]
}
