//! What keeps a cluster together beside the router: the embedded cluster of `pgherd up`.

pub mod embedded;
