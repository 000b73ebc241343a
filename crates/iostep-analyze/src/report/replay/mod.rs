//! The forms in which a replay is shown.

pub mod text;
