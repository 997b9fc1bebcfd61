//! Room for the ARM Compute Library backends, `acl_neon` and `acl_cl`. Nothing is here yet.
