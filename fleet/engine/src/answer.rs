//! The answer as JSON lines.

use std::io::Write;

use anyhow::Context;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::DataFrame;
use serde_json::{Number, Value};

/// Writes `{"columns": [...]}`, an array for each row, and `{"rows": N}`.
///
/// Errors: the query fails, or the answer cannot be written.
pub async fn write(frame: DataFrame, mut out: impl Write) -> anyhow::Result<()> {
    let fields = frame.schema().fields().iter();
    let columns: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
    line(&mut out, &serde_json::json!({ "columns": columns }))?;
    let mut rows: u64 = 0;
    for batch in frame.collect().await.context("the query")? {
        for row in values(&batch)? {
            line(&mut out, &Value::Array(row))?;
        }
        rows += batch.num_rows() as u64;
    }
    line(&mut out, &serde_json::json!({ "rows": rows }))?;
    crate::flush(&mut out)
}

fn line(out: &mut impl Write, value: &Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(value).context("JSON")?;
    text.push(b'\n');
    out.write_all(&text).map_err(anyhow::Error::from)
}

fn values(batch: &RecordBatch) -> anyhow::Result<Vec<Vec<Value>>> {
    let options = FormatOptions::default();
    let mut rows = vec![Vec::with_capacity(batch.num_columns()); batch.num_rows()];
    for array in batch.columns() {
        let formatter = ArrayFormatter::try_new(array, &options)?;
        for (place, row) in rows.iter_mut().enumerate() {
            let text = || formatter.value(place).try_to_string();
            row.push(match array.data_type() {
                DataType::Null => Value::Null,
                _ if array.is_null(place) => Value::Null,
                DataType::Boolean => Value::Bool(text()? == "true"),
                kind if kind.is_numeric() => number(&text()?),
                _ => Value::String(text()?),
            });
        }
    }
    Ok(rows)
}

/// A number; null for what JSON has none for, as infinity, or a text for what no number of 64 bits is.
fn number(text: &str) -> Value {
    let whole = text.parse::<i64>().map(Number::from).ok();
    let float = || text.parse::<f64>().ok();
    match (whole, float()) {
        (Some(whole), _) => Value::Number(whole),
        (None, Some(float)) => Number::from_f64(float).map_or(Value::Null, Value::Number),
        (None, None) => Value::String(text.to_owned()),
    }
}
