//! The forms in which a replay is shown.

pub mod comparison;
pub mod html;
pub mod text;
