//! iostep-fs.
