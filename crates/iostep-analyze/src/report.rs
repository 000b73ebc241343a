//! The forms in which traces, benches and replays are shown.

pub mod advise;
pub mod bench;
pub mod document;
pub mod events;
pub mod export;
pub mod html;
pub mod lab;
mod plot;
pub mod quantity;
pub mod replay;
pub mod syscalls;
pub mod text;
pub mod trace;
