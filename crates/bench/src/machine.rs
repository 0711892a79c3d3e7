//! What the numbers depend on: commit, versions, machine, sizes.

use std::process::Command;

/// Written above every result.
#[derive(Debug, serde::Serialize)]
pub struct Circumstances {
    pub commit: String,
    pub postgresql: String,
    pub pgbench: String,
    pub pgbouncer: Option<String>,
    pub processor: String,
    pub cores: usize,
    pub memory_mib: u64,
    pub kernel: String,
    /// The disk's fdatasync after a block of WAL; the median.
    pub sync_us: f64,
    pub shared_buffers: String,
    pub scale: u32,
    pub workers: u32,
    pub shard_count: String,
    pub seconds: u32,
    pub rounds: u32,
    pub matrix_seconds: u32,
    pub matrix_rounds: u32,
}

/// The processor's name, the cores, MiB of memory, the kernel.
pub fn machine() -> (String, usize, u64, String) {
    let proc_value = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    let memory = proc_value("/proc/meminfo", "MemTotal").unwrap_or_default();
    (
        proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        std::thread::available_parallelism().map_or(1, usize::from),
        memory.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024,
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
    )
}

/// The commit that was measured, with a mark if files differ from it.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}-changed"),
    }
}

impl Circumstances {
    pub fn line(&self) -> String {
        format!(
            "Everything on one machine: {}, {} cores, {} MiB, Linux {}; fdatasync takes {:.0} µs. PostgreSQL {}, \
             durable and with the same settings on every server, shared_buffers {}; {}{}. Scale {}, {} workers, {} \
             shards.",
            self.processor,
            self.cores,
            self.memory_mib,
            self.kernel,
            self.sync_us,
            self.postgresql,
            self.shared_buffers,
            self.pgbench,
            self.pgbouncer.as_ref().map_or(String::new(), |version| format!(
                "; {version} in front of the plain server, transaction pool, its default pool size"
            )),
            self.scale,
            self.workers,
            self.shard_count,
        )
    }
}
