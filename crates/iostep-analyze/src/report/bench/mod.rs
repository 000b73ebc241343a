//! The forms in which the runs of a generator are shown.

pub mod advice;
pub mod csv;
pub mod html;
pub mod job;
pub mod text;
