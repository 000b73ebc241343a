//! Results of many devices in one place: a store, what is checked before something gets into it, the
//! API by which it is asked, and the client that brings results.
//!
//! A result goes one way: [`upload`] reads it, takes out what is about a person or one machine, and
//! works out its figures anew; [`check`] says what cannot be true in it and what keeps it from being
//! ranked; [`store`] keeps it in SQLite, through waldio. Nothing that an upload claims is believed
//! where it can be computed.

pub mod api;
pub mod check;
pub mod client;
pub mod error;
pub mod limits;
pub mod log;
mod new_file;
pub mod nonce;
mod packing;
pub mod pages;
pub mod ranking;
pub mod server;
pub mod signature;
pub mod store;
pub mod subject;
pub mod upload;

#[cfg(test)]
mod fixture;

pub use error::{Error, Result};
