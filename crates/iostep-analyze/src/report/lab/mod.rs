//! The results of a lab as text and as a page.

pub mod html;
pub(crate) mod number;
pub mod text;
