//! The pages as bytes: what they say is what the API says, and no name in them is markup.

mod common;

use std::collections::BTreeSet;

use common::{Answer, HOSTILE, Running, encoded};
use iostep_serve::store::State;
use iostep_serve::subject::Product;
use serde_json::Value;

/// A tag: its name, and its attributes with their values as they stand there.
type Tag = (String, Vec<(String, String)>);

/// The tags of a page. A text may not have `<` or `>`, and a value not `"`: escaping sees to it, and
/// this fails on a page that has one.
fn tags(page: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((text, behind)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        let (mut tag, mut at) = (String::new(), behind.len());
        let mut is_quoted = false;
        for (place, letter) in behind.char_indices() {
            is_quoted ^= letter == '"';
            if letter == '>' && !is_quoted {
                at = place + 1;
                break;
            }
            tag.push(letter);
        }
        rest = &behind[at..];
        tags.push(parsed(&tag));
    }
    tags
}

fn parsed(tag: &str) -> Tag {
    let (name, mut rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
    let mut attributes: Vec<(String, String)> = Vec::new();
    while let Some((name, value)) = rest.split_once("=\"") {
        let (value, behind) = value.split_once('"').expect("an end");
        // Those without a value stand before.
        attributes.extend(
            name.split_whitespace()
                .map(|name| (name.to_owned(), value.to_owned())),
        );
        rest = behind;
    }
    attributes.extend(
        rest.split_whitespace()
            .map(|name| (name.to_owned(), String::new())),
    );
    attributes.retain(|(name, _)| name != "/");
    (name.trim_end_matches('/').to_owned(), attributes)
}

/// serde_json reads a number to the last digit but one.
fn told(number: f64) -> String {
    format!("{number:.13e}")
}

/// The numbers in a page's cells, row by row, of the table with this heading.
fn numbers(page: &str, heading: &str) -> Vec<Vec<String>> {
    // An empty table is not there.
    let Some(from) = page.find(&format!("<h2>{heading}")) else {
        return Vec::new();
    };
    let table = page[from..].split("</table>").next().expect("an end");
    let body = table.split("<tbody>").nth(1).expect("rows");
    let row = |row: &str| {
        let values = tags(row).into_iter().flat_map(|(_, attributes)| attributes);
        let values = values.filter(|(name, _)| name == "data-value");
        values
            .map(|(_, value)| told(value.parse().expect("a number")))
            .collect()
    };
    body.split("<tr>").skip(1).map(row).collect()
}

fn is_guarded(answer: &Answer) {
    let policy = answer.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
}

#[test]
fn a_ranking_has_the_figures_of_the_api() {
    let running = Running::start(|fleet| fleet.many());
    for query in [
        "test=sqlite,journal=wal",
        "test=sqlite,journal=wal&measure=transaction_p99_ns&filesystem=f2fs",
        "test=sqlite,journal=wal&kernel=6.6",
        "test=sqlite,journal=wal&android=15&part=SAMSUNG%20KLUEG8UHGC&kernel=5.15",
        "test=file,access=random-write,sync=fdatasync&measure=bytes_per_second",
    ] {
        let page = running.get(&format!("/?{query}"));
        assert_eq!(page.status, 200, "{}", page.body);
        is_guarded(&page);
        let answer = running.json(&format!("/api/v1/ranking?{query}"));
        let places = answer["places"].as_array().expect("places");
        let figures = |place: &Value, first: f64| -> Vec<String> {
            let names = ["best", "median", "worst", "installations", "results"];
            let figures = names.iter().filter_map(|name| place[name].as_f64());
            std::iter::once(first).chain(figures).map(told).collect()
        };
        let is_ranked = |place: &&Value| place["rank"].is_u64();
        let ranked = places.iter().filter(is_ranked);
        let ranked: Vec<_> = ranked
            .map(|it| figures(it, it["rank"].as_f64().expect("a rank")))
            .collect();
        let least = answer["least_installations"].as_f64().expect("a number");
        let others = places.iter().filter(|place| !is_ranked(place));
        let others: Vec<_> = others
            .map(|it| figures(it, least - it["installations"].as_f64().expect("a number")))
            .collect();
        let least_ranked = if query.contains("kernel=") { 1 } else { 5 };
        assert!(ranked.len() >= least_ranked, "{query}: {places:?}");
        assert!(!others.is_empty() || least_ranked == 1, "{query}");
        let name = answer["test"].as_str().expect("a name");
        assert_eq!(numbers(&page.body, name), ranked);
        assert_eq!(numbers(&page.body, "Not ranked yet"), others);
        let strips = tags(&page.body).into_iter().filter(|(name, attributes)| {
            name == "svg"
                && attributes
                    .iter()
                    .any(|(name, value)| name == "aria-label" && !value.is_empty())
        });
        assert_eq!(strips.count(), places.len());
    }
}

#[test]
fn a_device_and_a_comparison_have_the_figures_of_the_ranking() {
    let running = Running::start(|fleet| fleet.first(4));
    let test = "sqlite,journal=wal";
    let answer = running.json(&format!("/api/v1/ranking?test={test}"));
    let places = answer["places"].as_array().expect("places");
    let (mut devices, mut expected) = (String::new(), Vec::new());
    for place in &places[..3] {
        let text = |name: &str| place[name].as_str().unwrap_or_default().to_owned();
        let product = Product {
            vendor: text("vendor"),
            model: text("model"),
            part: text("part"),
            capacity_bytes: place["capacity_bytes"].as_u64().expect("a number"),
        };
        let names = ["best", "median", "worst", "installations", "results"];
        let figures = names.iter().filter_map(|name| place[name].as_f64());
        let figures: Vec<String> = figures.map(told).collect();
        let key = encoded(&product.key());
        let page = running.get(&format!("/device/{key}?test={test}"));
        assert_eq!(page.status, 200, "{}", page.body);
        is_guarded(&page);
        let rows = numbers(&page.body, "All tests");
        assert!(rows.contains(&figures), "{rows:?} {figures:?}");
        assert!(!numbers(&page.body, "Firmware and software").is_empty());
        devices += &format!("device={key}&");
        expected.push(figures);
    }
    let page = running.get(&format!("/compare?{devices}test={test}"));
    assert_eq!(numbers(&page.body, test), expected);
    let measured = running.json(&format!("/api/v1/results?test={test}&limit=1"));
    let id = measured["results"][0]["id"].as_str().expect("an ID");
    let whole = running.json(&format!("/api/v1/results/{id}"));
    let page = running.get(&format!("/result/{id}"));
    is_guarded(&page);
    let median = whole["summary"]["estimates"][0]["median"].as_f64();
    let rows = numbers(&page.body, "All runs together").concat();
    assert!(rows.contains(&told(median.expect("a number"))), "{rows:?}");
}

#[test]
fn no_name_is_an_element_or_an_attribute() {
    let mut product = Product::default();
    let mut bad = String::new();
    let running = Running::start(|fleet| {
        fleet.first(1);
        product = fleet.hostile();
    });
    let key = encoded(&product.key());
    let listed = running.json("/api/v1/results?limit=6");
    let results = listed["results"].as_array().expect("results");
    let ids: Vec<&str> = results.iter().filter_map(|it| it["id"].as_str()).collect();
    let other = running.json("/api/v1/ranking?test=sqlite,journal=wal");
    let second = other["places"]
        .as_array()
        .expect("places")
        .iter()
        .find_map(|place| {
            let text = |name: &str| place[name].as_str().unwrap_or_default().to_owned();
            let product = Product {
                vendor: text("vendor"),
                model: text("model"),
                part: text("part"),
                capacity_bytes: place["capacity_bytes"].as_u64()?,
            };
            (!product.part.contains('<')).then(|| encoded(&product.key()))
        });
    let second = second.expect("another device");
    let word = encoded("<script>");
    let all = encoded(HOSTILE);
    let mut paths = vec![
        "/?test=sqlite,journal=wal".to_owned(),
        format!("/?test=sqlite,journal=wal&filesystem={all}&kernel={all}&android={all}&part={all}"),
        format!("/?test={all}"),
        format!("/?{all}=1"),
        format!("/device/{key}"),
        format!("/device/{all}"),
        format!("/compare?device={key}&device={second}"),
        format!("/compare?device={all}&device={second}"),
        format!("/search?q={word}"),
        format!("/search?q={all}"),
        format!("/{all}"),
        "/methodology".to_owned(),
    ];
    paths.extend(ids.iter().map(|id| format!("/result/{id}")));
    for path in paths {
        let answer = running.get(&path);
        assert!(
            [200, 400, 404].contains(&answer.status),
            "{path}: {}",
            answer.status
        );
        is_guarded(&answer);
        assert!(!answer.body.contains('\u{202e}'), "{path}");
        has_known_parts(&path, &answer.body);
        bad += &answer.body;
    }
    assert!(bad.contains("&#60;script&#62;") || bad.contains("&lt;script&gt;"));
}

/// Fails for an element, an attribute or an address that pages without any hostile name have not.
fn has_known_parts(path: &str, body: &str) {
    let known = "a article body button circle dd details div dl dt figure footer form g h1 h2 h3 head \
        header html input label legend li line link main meta nav option p path rect script section \
        select span summary svg table tbody td text th thead title tr ul !doctype";
    let known: BTreeSet<&str> = known.split_whitespace().collect();
    let mut scripts = 0;
    for (name, attributes) in tags(body) {
        let name = name.trim_start_matches('/');
        assert!(known.contains(name), "{path}: <{name}>");
        for (attribute, value) in &attributes {
            assert!(
                !attribute.starts_with("on") && attribute != "style",
                "{path}: {attribute}"
            );
            assert!(
                attribute.chars().all(|it| it.is_ascii_lowercase()
                    || it == '-'
                    || it.is_ascii_digit()
                    || it == 'B'),
                "{path}: {attribute}"
            );
            let leads = ["href", "src", "action"].contains(&&attribute[..]);
            assert!(
                !leads || value.starts_with('/') && !value.starts_with("//"),
                "{path}: {value}"
            );
        }
        scripts += usize::from(name == "script");
    }
    assert_eq!(scripts, 2, "{path}");
}

#[test]
fn every_link_of_a_page_leads_to_a_page() {
    let running = Running::start(|fleet| {
        fleet.first(2);
        fleet.hostile();
    });
    let mut known = BTreeSet::new();
    let mut ahead = vec!["/".to_owned(), "/search?q=a".to_owned()];
    while let Some(path) = ahead.pop() {
        if known.len() > 150 || !known.insert(path.clone()) {
            continue;
        }
        let answer = running.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        if answer.header("content-type").starts_with("text/html") {
            for (_, attributes) in tags(&answer.body) {
                let links = attributes.into_iter().filter(|(name, _)| name == "href");
                ahead.extend(
                    links.map(|(_, page)| page.replace("&#38;", "&").replace("&amp;", "&")),
                );
            }
        }
    }
    let has = |start: &str| known.iter().any(|path| path.starts_with(start));
    for start in [
        "/device/",
        "/result/",
        "/methodology",
        "/iostep.css",
        "/icon.svg",
        "/api/",
    ] {
        assert!(has(start), "{start}");
    }
}

#[test]
fn what_cannot_be_asked_is_said() {
    let mut id = String::new();
    let running = Running::start(|fleet| fleet.first(2));
    let listed = running.json("/api/v1/results?limit=1");
    id += listed["results"][0]["id"].as_str().expect("an ID");
    let zeros = "0".repeat(64);
    for (path, status, words) in [
        ("/nothing".to_owned(), 404, "no such page"),
        ("/?tset=x".into(), 400, "tset: no parameter of this page"),
        ("/?test=x".into(), 404, "no valid results of x"),
        (
            "/?measure=luck".into(),
            400,
            "there is none of the name luck",
        ),
        ("/?page=0".into(), 400, "expected a number from 1 on"),
        ("/?page=-1".into(), 400, "expected a number from 1 on"),
        ("/?page=9999999".into(), 404, "page: there are 2 devices"),
        ("/?test=x&test=y".into(), 400, "it is there twice"),
        ("/compare".into(), 400, "expected 2 to 5 of them, found 0"),
        ("/compare?device=a".into(), 400, "found 1"),
        (
            "/compare?device=a&device=b".into(),
            404,
            "there is none of the name a",
        ),
        ("/device/x".into(), 404, "no such device"),
        ("/device/a~b~c~1".into(), 404, "no such device"),
        ("/device/%FF".into(), 404, "no such device"),
        ("/result/x".into(), 400, "64 digits"),
        (format!("/result/{zeros}"), 404, "no such result"),
        (format!("/result/{id}?x=1"), 400, "it knows none"),
        (
            format!("/search?q={}", "a".repeat(101)),
            400,
            "at most 100 letters",
        ),
    ] {
        let answer = running.get(&path);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.body.contains(words), "{path}: {}", answer.body);
        assert!(
            answer.header("content-type").starts_with("text/html"),
            "{path}"
        );
        is_guarded(&answer);
    }
    let json = running.get("/api/v1/nothing");
    assert_eq!(
        (json.status, json.header("content-type")),
        (404, "application/json")
    );
}

#[test]
fn a_page_that_is_known_is_not_sent_again_and_a_head_has_no_body() {
    let running = Running::start(|fleet| fleet.first(1));
    for path in [
        "/",
        "/methodology",
        "/iostep.css",
        "/iostep.js",
        "/icon.svg",
    ] {
        let first = running.get(path);
        let tag = first.header("etag");
        assert!(tag.len() > 30, "{path}");
        let again = running.ask("GET", path, &format!("if-none-match: {tag}\r\n"));
        assert_eq!((again.status, &again.body[..]), (304, ""));
        let head = running.ask("HEAD", path, "");
        assert_eq!((head.status, &head.body[..]), (200, ""));
        assert_eq!(head.header("content-length"), first.body.len().to_string());
        assert_eq!(
            running.ask("PUT", path, "content-length: 0\r\n").status,
            405
        );
    }
}

#[test]
fn a_result_says_what_became_of_it_and_why() {
    let mut first = String::new();
    let running = Running::start(|fleet| {
        fleet.first(1);
        first = fleet.of_nobody();
        fleet.decide(&first, State::Delisted, "made by hand");
    });
    let page = running.get(&format!("/result/{first}"));
    assert!(page.body.contains("delisted") && page.body.contains("made by hand"));
    let invalid = running.json("/api/v1/results?state=invalid&limit=1");
    let id = invalid["results"][0]["id"].as_str().expect("an ID");
    let page = running.get(&format!("/result/{id}"));
    assert!(page.body.contains("It does not count"), "{}", page.body);
    assert!(page.body.contains("the hypervisor took 25.0 %"));
    let empty = Running::start(|_| {});
    let page = empty.get("/");
    assert!(page.status == 200 && page.body.contains("No result is ranked yet"));
}
