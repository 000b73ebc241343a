//! The forms in which a trace is shown.

pub mod events;
pub mod export;
pub mod html;
pub mod quantity;
pub mod text;
