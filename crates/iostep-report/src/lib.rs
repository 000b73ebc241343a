//! How something is shown, whatever it is about.
//!
//! A report is a [`document::Document`] of sections, tables, plots and the [`picture`] of a trace,
//! and becomes text or a page. [`events`] and [`export`] write a trace's rows as they are. Nothing
//! here computes what a report says.

pub mod csv;
pub mod document;
pub mod events;
pub mod export;
mod modules;
pub mod picture;
pub mod plot;
pub mod quantity;
mod script_json;
pub mod text;
