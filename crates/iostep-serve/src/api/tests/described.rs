//! Whether an answer is what the API's description says of it: this status, these fields and no others.

use serde_json::Value;

use crate::api::openapi;

/// What of a schema is looked at.
const KEYWORDS: [&str; 10] = [
    "type",
    "enum",
    "pattern",
    "minimum",
    "items",
    "minItems",
    "maxItems",
    "required",
    "properties",
    "description",
];

/// Fails unless an answer is described.
pub fn check(method: &str, path: &str, status: u16, answer: &Value) {
    let description = openapi::description();
    let path = path.split('?').next().unwrap_or_default();
    let paths = description["paths"].as_object().expect("paths");
    let Some((_, methods)) = paths.iter().find(|(it, _)| is_at(it, path)) else {
        // It is none of the API's.
        return;
    };
    let place = format!("{method} {path}: {status}");
    let operation = &methods[method.to_lowercase()];
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "{place} is not described");
    let response = resolved(&description, response);
    let schema = &response["content"]["application/json"]["schema"];
    if schema.is_object() {
        is_of(&description, schema, answer, &place);
    }
}

/// True for a path, or one of those that a path with a name in it stands for.
fn is_at(described: &str, path: &str) -> bool {
    match described.split_once('{') {
        Some((before, _)) => path
            .strip_prefix(before)
            .is_some_and(|name| !name.is_empty() && !name.contains('/')),
        None => described == path,
    }
}

fn resolved<'a>(description: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let found = description.pointer(reference.trim_start_matches('#'));
            resolved(description, found.expect("what is referred to"))
        }
        None => value,
    }
}

fn is_of(description: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = resolved(description, schema);
    for keyword in schema.as_object().expect("a schema").keys() {
        assert!(
            KEYWORDS.contains(&&keyword[..]),
            "{place}: {keyword} is not looked at"
        );
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let is_kind = kinds.iter().any(|kind| is_kind(kind.as_str(), value));
    assert!(is_kind, "{place}: {value} is none of {kinds:?}");
    if let Some(choice) = schema["enum"].as_array() {
        assert!(
            choice.contains(value),
            "{place}: {value} is none of {choice:?}"
        );
    }
    if let Some(least) = schema["minimum"].as_i64() {
        assert!(value.as_i64() >= Some(least), "{place}: {value}");
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
        let digits = pattern.strip_prefix("^[0-9a-f]{").expect("digits");
        let count: usize = digits.trim_end_matches("}$").parse().expect("a number");
        let is_digit = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
        assert!(
            text.len() == count && text.bytes().all(is_digit),
            "{place}: {text}"
        );
    }
    if let Some(items) = value.as_array() {
        are_items_of(description, schema, items, place);
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object())
    {
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name");
            assert!(fields.contains_key(name), "{place}: no {name}");
        }
        for (name, field) in fields {
            let property = properties.get(name);
            let property = property.unwrap_or_else(|| panic!("{place}: {name} is not described"));
            is_of(description, property, field, &format!("{place}/{name}"));
        }
    }
}

fn are_items_of(description: &Value, schema: &Value, items: &[Value], place: &str) {
    let count = items.len() as u64;
    let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
    assert!(least.is_none_or(|it| count >= it), "{place}: {count}");
    assert!(most.is_none_or(|it| count <= it), "{place}: {count}");
    for (at, item) in items.iter().enumerate() {
        is_of(
            description,
            &schema["items"],
            item,
            &format!("{place}/{at}"),
        );
    }
}

fn is_kind(kind: Option<&str>, value: &Value) -> bool {
    match kind {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        other => panic!("{other:?} is no kind"),
    }
}

#[test]
fn what_is_not_described_is_found() {
    let nonce = |length: usize| serde_json::json!({ "nonce": "a".repeat(length), "seconds": 120 });
    let whole = nonce(80);
    check("GET", "/api/v1/nonce", 200, &whole);
    let fails = |path: &str, status: u16, answer: &Value| {
        let checked = std::panic::catch_unwind(|| check("GET", path, status, answer));
        assert!(checked.is_err(), "{path} {status} {answer}");
    };
    fails("/api/v1/nonce", 418, &whole);
    fails("/api/v1/nonce", 200, &nonce(79));
    let mut more = whole.clone();
    more["owner"] = "Alice".into();
    fails("/api/v1/nonce", 200, &more);
    fails(
        "/api/v1/nonce",
        200,
        &serde_json::json!({ "nonce": whole["nonce"] }),
    );
    fails(
        "/api/v1/nonce",
        200,
        &serde_json::json!({ "nonce": whole["nonce"], "seconds": -1 }),
    );
    fails(
        "/api/v1/tests",
        200,
        &serde_json::json!({ "tests": [{ "test": 1, "results": 1 }] }),
    );
}
