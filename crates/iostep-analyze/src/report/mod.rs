//! The forms in which a trace is shown.

pub mod events;
pub mod quantity;
pub mod text;
