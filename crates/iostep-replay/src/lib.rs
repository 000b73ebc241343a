//! Performs the calls of a recording again, inside one directory.
//!
//! The data's way: a [`iostep_model::syscall::Recording`] becomes a [`plan::Plan`], which says for
//! each thread which calls it makes and which calls of others each must wait for.

pub mod plan;
