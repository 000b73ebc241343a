//! How something is shown, whatever it is about.
//!
//! A report is a [`document::Document`] of sections, tables, plots and the [`picture`] of a trace,
//! and becomes text or a page. [`events`] and [`export`] write a trace's rows as they are. Nothing
//! here computes what a report says.

pub mod csv;
pub mod document;
pub mod events;
pub mod export;
pub mod picture;
pub mod plot;
pub mod quantity;
pub mod text;
