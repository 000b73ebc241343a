//! iostep-analyze.
