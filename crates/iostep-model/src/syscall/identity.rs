//! How a recording names threads, processes, open files and paths.

use serde::{Deserialize, Serialize};

/// A thread of a recording, numbered from 1 as they appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// A process of a recording, numbered from 1 as they appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// An open file description (open(2)), numbered from 1 in the order they were opened. Descriptors
/// that dup or fork made of it are the same; its number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandleId(pub u32);

/// A path in [`super::Recording::paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathId(pub u32);
