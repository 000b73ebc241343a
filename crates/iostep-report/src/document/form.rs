//! What a reader may ask of the server that a page comes from: plain forms, which need no script.

use askama::Template;

/// A form, which asks for a page.
#[derive(Template)]
#[template(path = "form.html")]
pub struct Form {
    /// By which boxes in tables belong to it; one of a page.
    pub id: &'static str,
    /// The page that is asked for.
    pub action: String,
    pub fields: Vec<Field>,
    /// What its button says.
    pub button: &'static str,
}

/// What is asked.
pub enum Field {
    /// What stays as it is.
    Hidden { name: &'static str, value: String },
    /// One of several: the value that is sent, and the words for it.
    Choice {
        name: &'static str,
        label: &'static str,
        options: Vec<(String, String)>,
        chosen: String,
    },
}

/// A box in a table's row.
pub struct Check {
    /// The form that it belongs to.
    pub form: &'static str,
    pub name: &'static str,
    pub value: String,
    /// What it chooses, for who does not see the row.
    pub label: String,
}
