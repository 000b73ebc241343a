//! iostep-load.
