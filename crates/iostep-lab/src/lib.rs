//! iostep-lab.
