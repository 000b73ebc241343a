//! iostep-trace.
