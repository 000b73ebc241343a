//! The forms in which traces and benches are shown.

pub mod bench;
pub mod events;
pub mod export;
pub mod html;
pub mod quantity;
pub mod text;
