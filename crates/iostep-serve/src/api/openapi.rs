//! The API's description, in OpenAPI 3.1.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::results::MOST_OF_PAGE;
use super::upload::NONCE_DIGITS;
use super::{MOST_BYTES, MOST_SENT_BYTES};
use crate::signature::{DELETE_TOKEN, KEY, KEY_BYTES, NONCE, SIGNATURE, SIGNATURE_BYTES};
use crate::store::State;

/// `GET /api/v1/openapi.json`.
pub async fn show() -> Response {
    answer::json(StatusCode::OK, &description())
}

/// All of it.
pub fn description() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "iostep results",
            "version": "1",
            "description": "Results of iostep bench from many devices. What an upload claims is \
                worked out anew; names, paths and serial numbers in it are not kept.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" }
        },
        "paths": paths(),
        "components": { "schemas": schemas(), "responses": responses() }
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn schema(name: &str) -> Value {
    reference("schemas", name)
}

fn content(description: &str, name: &str) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": schema(name) } }
    })
}

fn digits(bytes: usize) -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{}}}$", 2 * bytes) })
}

fn header(name: &str, schema: Value, description: &str) -> Value {
    json!({
        "name": name, "in": "header", "required": true,
        "schema": schema, "description": description
    })
}

fn query(name: &str, schema: Value, required: bool, description: &str) -> Value {
    json!({
        "name": name, "in": "query", "required": required,
        "schema": schema, "description": description
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn limit(usual: u32) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": MOST_OF_PAGE, "default": usual })
}

fn often() -> Value {
    content("too many requests; Retry-After says when", "Error")
}

fn unavailable() -> Value {
    content(
        "the store cannot be read for now; Retry-After says when",
        "Error",
    )
}

fn id() -> Value {
    json!({ "name": "id", "in": "path", "required": true, "schema": digits(32) })
}

fn paths() -> Value {
    let plain = json!({
        "description": "counters since the start",
        "content": { "text/plain": { "schema": text() } }
    });
    json!({
        "/healthz": { "get": {
            "operationId": "health",
            "summary": "Whether the store can be read",
            "responses": {
                "200": content("it can", "Health"),
                "500": reference("responses", "Error"),
                "503": unavailable()
            }
        } },
        "/metrics": { "get": {
            "operationId": "metrics",
            "summary": "What the server did, for Prometheus",
            "responses": { "200": plain }
        } },
        "/api/v1/openapi.json": { "get": {
            "operationId": "description",
            "summary": "This description",
            "responses": { "200": {
                "description": "it",
                "content": { "application/json": { "schema": { "type": "object" } } }
            } }
        } },
        "/api/v1/nonce": { "get": {
            "operationId": "nonce",
            "summary": "A number that one upload is signed with, soon",
            "responses": { "200": content("a new one", "Nonce") }
        } },
        "/api/v1/results": { "get": list(), "post": upload() },
        "/api/v1/results/{id}": { "get": one(), "delete": remove() },
        "/api/v1/tests": { "get": {
            "operationId": "tests",
            "summary": "The tests that there are valid results of, those of most first",
            "responses": {
                "200": content("the tests", "Tests"),
                "429": often(),
            "503": unavailable()
            }
        } },
        "/api/v1/ranking": { "get": ranking() }
    })
}

fn list() -> Value {
    let states = json!({ "type": "string", "enum": State::ALL.map(State::name) });
    let number = json!({ "type": "integer" });
    json!({
        "operationId": "list",
        "summary": "Results, the newest first",
        "parameters": [
            query("state", states, false, "those of a state"),
            query("test", text(), false, "those of a test, by its name"),
            query("filesystem", text(), false, "those on a kind of filesystem"),
            query("device", text(), false, "those of a phone's model or a storage part"),
            query("before", number, false, "the next page: next_before of the one before"),
            query("limit", limit(50), false, "how many at most")
        ],
        "responses": {
            "200": content("a page", "Page"),
            "400": reference("responses", "Error"),
            "429": often(),
            "503": unavailable()
        }
    })
}

fn upload() -> Value {
    let signed = "Ed25519 over \"iostep upload 1\\n\", the nonce's bytes, and SHA-256 of the body \
        as it is sent";
    let mut responses = json!({
        "200": content("it was there already", "Accepted"),
        "201": content("it is kept, and durable", "Accepted")
    });
    let failures = [
        ("400", "the body was cut off or is damaged"),
        ("401", "the signature or the nonce does not fit"),
        ("408", "the body took too long"),
        ("413", "the body is too long"),
        ("415", "the content encoding is not taken"),
        ("422", "it cannot be true, for the reasons that are given"),
        ("429", "too many uploads; Retry-After says when"),
        (
            "503",
            "no room is left, or too many wait; Retry-After says when",
        ),
    ];
    for (status, description) in failures {
        responses[status] = content(description, "Error");
    }
    json!({
        "operationId": "upload",
        "summary": "Brings a result",
        "description": format!(
            "A file of iostep bench -o, or the result in it; at most {MOST_SENT_BYTES} bytes, and \
             {MOST_BYTES} once it is unpacked. The same result twice is one."
        ),
        "parameters": [
            header(KEY, digits(KEY_BYTES), "the installation's public key"),
            header(NONCE, digits(NONCE_DIGITS / 2), "of /api/v1/nonce"),
            header(SIGNATURE, digits(SIGNATURE_BYTES), signed),
            {
                "name": "content-encoding", "in": "header", "required": false,
                "schema": { "type": "string", "enum": ["identity", "gzip", "zstd"] }
            }
        ],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": { "type": "object" } } }
        },
        "responses": responses
    })
}

fn one() -> Value {
    json!({
        "operationId": "result",
        "summary": "A result with its figures; a file of it is one of iostep bench -o",
        "parameters": [id()],
        "responses": {
            "200": content("the result", "Result"),
            "400": reference("responses", "Error"),
            "404": reference("responses", "Error"),
            "410": content("its sender took it back", "Error"),
            "429": often(),
            "503": unavailable()
        }
    })
}

fn remove() -> Value {
    json!({
        "operationId": "remove",
        "summary": "Takes a result back",
        "parameters": [id(), header(DELETE_TOKEN, digits(32), "delete_token of the upload")],
        "responses": {
            "200": content("it is gone", "Removed"),
            "400": reference("responses", "Error"),
            "403": content("the token is another one's", "Error"),
            "404": reference("responses", "Error"),
            "429": content("too many uploads and such; Retry-After says when", "Error"),
            "503": content("too many wait; Retry-After says when", "Error")
        }
    })
}

fn ranking() -> Value {
    let measure = json!({ "type": "string", "default": "operations_per_second" });
    json!({
        "operationId": "ranking",
        "summary": "Devices in the order of their medians; each installation counts once",
        "parameters": [
            query("test", text(), true, "the name of the test"),
            query("measure", measure, false, "as in a result's summary.estimates"),
            query("filesystem", text(), false, "what was measured on this kind alone"),
            query("kernel", text(), false, "and under this series of kernels, as 6.6"),
            query("android", text(), false, "and this release of Android"),
            query("part", text(), false, "and on this storage"),
            query("model", text(), false, "this model alone, at its place among all"),
            query("limit", limit(500), false, "how many at most"),
            query("offset", count(), false, "the next page: next_offset of the one before")
        ],
        "responses": {
            "200": content("the devices", "Ranking"),
            "400": reference("responses", "Error"),
            "429": often(),
            "503": unavailable()
        }
    })
}

fn responses() -> Value {
    json!({ "Error": content("why not", "Error") })
}

/// An object all of whose fields are always there.
fn object(fields: Value) -> Value {
    let names: Vec<&String> = fields
        .as_object()
        .into_iter()
        .flat_map(|it| it.keys())
        .collect();
    json!({ "type": "object", "required": names, "properties": fields })
}

fn schemas() -> Value {
    let count = count();
    let list_of = |name: &str| json!({ "type": "array", "items": schema(name) });
    let or_null = |kind: &str| json!({ "type": [kind, "null"] });
    let mut schemas = json!({
        "Health": object(json!({ "status": text() })),
        "Nonce": object(json!({ "nonce": digits(NONCE_DIGITS / 2), "seconds": count })),
        "Removed": object(json!({ "id": digits(32) })),
        "Reason": object(json!({ "code": text(), "text": text() })),
        "Test": object(json!({ "test": text(), "results": count })),
        "Tests": object(json!({ "tests": list_of("Test") })),
        "Page": object(json!({
            "results": list_of("Submission"),
            "next_before": or_null("integer")
        })),
        "Result": object(json!({
            "submission": schema("Submission"),
            "result": { "type": "object" },
            "summary": { "type": "object" }
        })),
        "Error": object(json!({ "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": text(),
                "message": text(),
                "reasons": { "type": "array", "items": text() }
            }
        } })),
        "State": { "type": "string", "enum": State::ALL.map(State::name) }
    });
    of_results(&mut schemas);
    schemas
}

/// Those of single results and of what is made of many.
fn of_results(schemas: &mut Value) {
    let number = json!({ "type": "number" });
    let count = count();
    let list_of = |name: &str| json!({ "type": "array", "items": schema(name) });
    let or_null = |kind: &str| json!({ "type": [kind, "null"] });
    schemas["Accepted"] = object(json!({
        "id": digits(32),
        "created": { "type": "boolean" },
        "state": schema("State"),
        "reasons": list_of("Reason"),
        "test": text(),
        "delete_token": or_null("string")
    }));
    schemas["Device"] = object(json!({
        "vendor": text(), "model": text(), "part": text(), "firmware": text(),
        "capacity_bytes": count, "android": text(), "kernel": text()
    }));
    schemas["Submission"] = object(json!({
        "number": count,
        "id": digits(32),
        "received": { "type": "integer", "description": "seconds since 1970" },
        "state": schema("State"),
        "reasons": list_of("Reason"),
        "test": text(),
        "filesystem": text(),
        "device": schema("Device")
    }));
    schemas["Place"] = object(json!({
        "rank": or_null("integer"),
        "vendor": text(), "model": text(), "part": text(), "capacity_bytes": count,
        "installations": count, "results": count,
        "best": number, "median": number, "worst": number,
        "interval": {
            "type": ["array", "null"], "items": number, "minItems": 2, "maxItems": 2,
            "description": "95 % of the median; null where there are too few to tell"
        }
    }));
    schemas["Ranking"] = object(json!({
        "test": text(),
        "measure": text(),
        "better": { "type": "string", "enum": ["higher", "lower"] },
        "filesystem": or_null("string"),
        "kernel": or_null("string"),
        "android": or_null("string"),
        "part": or_null("string"),
        "model": or_null("string"),
        "least_installations": count,
        "devices": count,
        "places": list_of("Place"),
        "next_offset": or_null("integer")
    }));
}
