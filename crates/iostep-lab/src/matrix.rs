//! Files of TOML whose blocks are tables, and whose lists are crossed: job files and labs.
//!
//! ```toml
//! [defaults]
//! size = "1MiB"
//!
//! [[job]]
//! access = ["write", "random-write"]
//! sync = ["fsync", "fdatasync"]
//! ```
//!
//! What a key means is not known here: each becomes an argument, `--size=1MiB`, and `true` the
//! flag without a value.

use iostep_model::printable::excerpt;
use toml::{Table, Value};

/// More cells than anybody waits for.
pub const MAX_CELLS: usize = 100_000;
/// More text than anybody writes by hand.
pub const MAX_BYTES: usize = 1 << 20;
const MAX_NAME: usize = 64;

/// What is wrong with a file, and what would be right.
pub type Problem = (String, &'static str);

/// The blocks of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// The tables in their order, with the defaults that they do not set.
    pub blocks: Vec<Table>,
    /// Everything else at the top level.
    pub rest: Table,
}

/// A key with one of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// As in the file: the long flag without its dashes.
    pub key: String,
    /// The value as people read it.
    pub text: String,
    /// The argument that it makes; `None` for a flag that is not given.
    pub argument: Option<String>,
    /// True if the file has a list for this key.
    pub varies: bool,
}

/// Reads the `[[block]]` tables and `[defaults]` of a text.
///
/// Errors: what is wrong, for a text that is too long, no TOML, or without a block.
pub fn blocks(text: &str, block: &str) -> Result<Blocks, Problem> {
    if text.len() > MAX_BYTES {
        let what = format!("longer than {MAX_BYTES} bytes");
        return Err((what, "write it by hand"));
    }
    let mut rest: Table = text
        .parse()
        .map_err(|error: toml::de::Error| (first_line(&error, text), "correct the TOML"))?;
    let blocks = merged(&mut rest, "defaults", block)?;
    if blocks.is_empty() {
        let hint = "write at least one block in double brackets, as [[job]] or [[cells]]";
        return Err((format!("no {block}"), hint));
    }
    Ok(Blocks { blocks, rest })
}

/// Takes the `[[block]]` tables out of a file, each with what `[defaults]` has and it has not.
///
/// Errors: either is something else.
pub fn merged(rest: &mut Table, defaults: &str, block: &str) -> Result<Vec<Table>, Problem> {
    let defaults = match rest.remove(defaults) {
        None => Table::new(),
        Some(Value::Table(table)) => table,
        Some(_) => return Err((format!("{defaults}: no table"), "write it in brackets")),
    };
    let found = match rest.remove(block) {
        None => Vec::new(),
        Some(Value::Array(found)) => found,
        Some(_) => return Err((format!("no {block}"), "write double brackets")),
    };
    let tables = (1..).zip(found).map(|(number, found)| match found {
        Value::Table(table) => {
            let mut all = defaults.clone();
            // A key of the block takes the place that its default has.
            all.extend(table);
            Ok(all)
        }
        _ => Err((
            format!("{block} {number}: no table"),
            "write double brackets",
        )),
    });
    tables.collect()
}

/// Takes a key that holds a text out of a block.
///
/// Errors: it holds something else.
pub fn take_text(block: &mut Table, key: &str) -> Result<Option<String>, Problem> {
    match block.remove(key) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err((format!("{key}: no text"), "write it in quotes")),
        None => Ok(None),
    }
}

/// Every combination of a block's values; the last list varies fastest.
///
/// Errors: a key that is no flag, a value that is no argument, and more than `room` combinations.
pub fn combinations(block: Table, room: usize) -> Result<Vec<Vec<Choice>>, Problem> {
    let keys = block
        .into_iter()
        .map(|(name, value)| choices(name, value))
        .collect::<Result<Vec<_>, _>>()?;
    let count = keys
        .iter()
        .try_fold(1usize, |count, choices| count.checked_mul(choices.len()))
        .filter(|count| *count <= room)
        .ok_or_else(|| {
            let what = format!("more than {MAX_CELLS} cells with those before");
            (what, "shorten a list, or split the file")
        })?;
    Ok((0..count)
        .map(|number| combination(&keys, number))
        .collect())
}

/// The combination with this number, whose digits are positions in the lists.
fn combination(keys: &[Vec<Choice>], mut number: usize) -> Vec<Choice> {
    let mut chosen: Vec<Choice> = keys
        .iter()
        .rev()
        .map(|choices| {
            let position = number % choices.len();
            number /= choices.len();
            choices[position].clone()
        })
        .collect();
    chosen.reverse();
    chosen
}

fn choices(key: String, value: Value) -> Result<Vec<Choice>, Problem> {
    let is_flag = key.starts_with(|c: char| c.is_ascii_lowercase())
        && key
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_flag {
        let what = format!("{}: no name of a flag", shown(&key));
        return Err((what, "write the long flag without its dashes"));
    }
    let (values, varies) = match value {
        Value::Array(values) => (values, true),
        value => (vec![value], false),
    };
    if values.is_empty() {
        return Err((format!("{key}: an empty list"), "give it a value"));
    }
    let choice = |value: &Value| {
        let (text, argument) = argument(&key, value)?;
        Ok(Choice {
            key: key.clone(),
            text,
            argument,
            varies,
        })
    };
    values.iter().map(choice).collect()
}

/// A value as shown, and as the argument that it makes.
fn argument(key: &str, value: &Value) -> Result<(String, Option<String>), Problem> {
    let text = match value {
        Value::Boolean(given) => {
            return Ok((given.to_string(), given.then(|| format!("--{key}"))));
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            let what = format!("{key}: no text, number, true or false");
            return Err((what, "write one of these, or a list of them"));
        }
    };
    if text.contains('\0') {
        return Err((format!("{key}: a zero byte"), "take it out"));
    }
    let argument = format!("--{key}={text}");
    Ok((text, Some(argument)))
}

/// Checks a name that becomes part of file names.
///
/// Errors: it cannot.
pub fn check_name(name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_plain = name.chars().all(allowed) && !name.starts_with(['.', '-']);
    if is_plain && (1..=MAX_NAME).contains(&name.len()) {
        return Ok(());
    }
    let what = format!("name: {:?} cannot be part of a file name", shown(name));
    Err((what, "use up to 64 letters, digits, and - _ . inside"))
}

/// The beginning of a text from outside, as a part of a line.
pub fn shown(text: &str) -> String {
    excerpt(text, MAX_NAME)
}

/// The parser's reason with the line, without the picture of the place.
fn first_line(error: &toml::de::Error, text: &str) -> String {
    let reason = error.message().lines().next().unwrap_or_default();
    let Some(span) = error.span() else {
        return shown(reason);
    };
    let before = text.as_bytes().get(..span.start).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("line {line}: {}", shown(reason))
}
