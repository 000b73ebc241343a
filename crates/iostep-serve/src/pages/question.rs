//! What is asked of a page: the end of its path, and its parameters.

use axum::extract::Query;
use axum::http::{StatusCode, Uri};

use crate::api::Failure;

/// Parameters that may be there several times.
const REPEATED: &str = "device";

/// What somebody asks.
#[derive(Debug)]
pub struct Question {
    /// What the path names.
    pub name: String,
    parameters: Vec<(String, String)>,
}

impl Question {
    /// Errors: there is a parameter that the page does not know, or one twice.
    pub fn read(name: String, uri: &Uri, known: &[&str]) -> Result<Question, Failure> {
        let parsed = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(parameters) = parsed.map_err(|error| bad(error.body_text()))?;
        for (number, (name, _)) in parameters.iter().enumerate() {
            if !known.contains(&&name[..]) {
                let known = match known {
                    [] => "none".to_owned(),
                    known => known.join(", "),
                };
                return Err(bad(format!(
                    "{name}: no parameter of this page; it knows {known}"
                )));
            }
            let again = parameters[..number].iter().any(|(other, _)| other == name);
            if again && name != REPEATED {
                return Err(bad(format!("{name}: it is there twice")));
            }
        }
        Ok(Question { name, parameters })
    }

    /// A parameter; an empty one is none, as forms send what is not chosen.
    pub fn one(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let given = self.parameters.iter();
        let named = given.filter(move |(it, value)| it == name && !value.is_empty());
        named.map(|(_, value)| &value[..])
    }

    /// A number from 1 on.
    ///
    /// Errors: it is something else.
    pub fn number(&self, name: &str) -> Result<Option<u32>, Failure> {
        let parse = |text: &str| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| bad(format!("{name}: expected a number from 1 on")))
        };
        self.one(name).map(parse).transpose()
    }
}

/// What cannot be asked.
pub fn bad(text: impl Into<String>) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, "query", text)
}

/// What there is nothing of.
pub fn missing(text: impl Into<String>) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "missing", text)
}
