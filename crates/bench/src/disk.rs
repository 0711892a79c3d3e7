//! How long the disk takes to make something durable, which is what commits wait for.

use crate::report::median;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// PostgreSQL's block of WAL, and a part of a segment.
const BLOCK_BYTES: usize = 8192;
const FILE_BLOCKS: usize = 2048;
const DURATION: Duration = Duration::from_secs(1);

/// The median of fdatasync, PostgreSQL's `wal_sync_method` on Linux, after writing one block over a file that has its
/// blocks already; microseconds.
pub fn sync_us(directory: &Path) -> Result<f64, String> {
    let path = directory.join("sync.tmp");
    let measured =
        measure(&path).map_err(|error| format!("could not measure fdatasync on \"{}\": {error}", path.display()));
    let _ = std::fs::remove_file(&path);
    measured
}

fn measure(path: &Path) -> std::io::Result<f64> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    let block = [0x5a_u8; BLOCK_BYTES];
    for _ in 0..FILE_BLOCKS {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let started = Instant::now();
    let mut times = Vec::new();
    let mut number = 0;
    while started.elapsed() < DURATION {
        if number % FILE_BLOCKS == 0 {
            file.seek(SeekFrom::Start(0))?;
        }
        number += 1;
        file.write_all(&block)?;
        let begin = Instant::now();
        file.sync_data()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&times))
}
