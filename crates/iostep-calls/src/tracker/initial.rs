//! What was there before: concluded from what calls returned, or seen by the recorder.
//!
//! A name says something about the beginning only until the recording changes it, and a directory
//! that was renamed takes its untouched names along. So this follows a tree of inodes: each entry of
//! a directory is either not touched yet, and then what a call tells of it was so from the beginning,
//! or it holds an inode, which knows whether and where it was at the beginning.

mod conclude;
mod errors;
mod told;
mod tree;

pub(super) use conclude::{Conclusions, Ended};
pub(super) use tree::InodeId;
