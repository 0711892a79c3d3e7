//! The router's process seen from outside: CPU time and memory from `/proc`, system calls through strace.

use crate::pgbench::{Length, Load, measure};
use pgherd_cluster::embedded::{ProcessId, RouterProcess};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// USER_HZ, which is 100 on every architecture that Linux has with PostgreSQL.
const TICKS_PER_SECOND: f64 = 100.0;
const ATTACH_TIMEOUT: Duration = Duration::from_secs(5);

/// The router of a cluster that runs.
#[derive(Debug, Clone, Copy)]
pub struct Router {
    process: ProcessId,
}

impl Router {
    pub fn find(cluster_dir: &Path) -> Result<Router, String> {
        match RouterProcess::find(cluster_dir).map_err(|error| error.to_string())? {
            Some(router) => Ok(Router { process: router.process }),
            None => Err(format!("no router runs for the cluster in \"{}\"", cluster_dir.display())),
        }
    }

    /// User and system time since its start, in microseconds; steps of ten milliseconds.
    pub fn cpu_us(&self) -> Result<f64, String> {
        let stat = self.proc_file("stat")?;
        ticks(&stat)
            .map(|ticks| ticks as f64 * 1e6 / TICKS_PER_SECOND)
            .ok_or_else(|| format!("could not understand /proc/{}/stat: {stat}", self.process.pid))
    }

    /// Resident memory.
    pub fn memory_bytes(&self) -> Result<u64, String> {
        let status = self.proc_file("status")?;
        kib_of(&status, "VmRSS:")
            .map(|kib| kib * 1024)
            .ok_or_else(|| format!("/proc/{}/status has no VmRSS", self.process.pid))
    }

    /// How many files it may have open.
    pub fn files_max(&self) -> Result<u64, String> {
        let limits = self.proc_file("limits")?;
        files_max(&limits).ok_or_else(|| format!("could not understand /proc/{}/limits", self.process.pid))
    }

    fn proc_file(&self, name: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{name}", self.process.pid);
        std::fs::read_to_string(&path).map_err(|error| format!("could not read {path} of the router: {error}"))
    }

    /// System calls per statement of `load`, counted by strace in runs of their own, because they are slow. Connecting
    /// and the first transaction of each client are in both of two runs and cancel out.
    pub fn system_calls(&self, port: u16, load: &Load, seconds: u32) -> Result<f64, String> {
        let short = Load { length: Length::Transactions(1), ..load.clone() };
        let long = Load { length: Length::Seconds(seconds), ..load.clone() };
        let (few, few_transactions) = self.traced(port, &short)?;
        let (many, many_transactions) = self.traced(port, &long)?;
        let statements = (many_transactions - few_transactions) * f64::from(load.work.statements());
        if statements <= 0.0 {
            return Err("no more transactions in a second than clients".to_owned());
        }
        Ok((many - few) / statements)
    }

    /// System calls and transactions while pgbench runs.
    fn traced(&self, port: u16, load: &Load) -> Result<(f64, f64), String> {
        let mut tracer = Command::new("strace")
            .args(["-q", "-f", "-c", "-U", "calls,name", "-p", &self.process.pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("could not run strace: {error}"))?;
        let started = Instant::now();
        let attached = loop {
            if self.is_traced() {
                break true;
            }
            if started.elapsed() > ATTACH_TIMEOUT || tracer.try_wait().is_ok_and(|status| status.is_some()) {
                break false;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let outcome = if attached { measure(port, load) } else { Err("strace could not attach".to_owned()) };
        // It detaches and prints what it has counted.
        if let Some(pid) = i32::try_from(tracer.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
        }
        let output = tracer.wait_with_output().map_err(|error| format!("could not wait for strace: {error}"))?;
        let summary = String::from_utf8_lossy(&output.stderr);
        match outcome {
            Ok(outcome) => Ok((calls(&summary), outcome.transactions)),
            Err(error) => Err(format!("{error}: {}", summary.trim())),
        }
    }

    fn is_traced(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.process.pid)) else { return false };
        threads.flatten().all(|thread| {
            let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
        })
    }
}

/// Whether strace can be asked.
pub fn has_strace() -> bool {
    let mut command = Command::new("strace");
    command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// utime + stime of `/proc/<pid>/stat` (proc_pid_stat(5)). The second field is the name and may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn kib_of(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn files_max(limits: &str) -> Option<u64> {
    let value = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?;
    if value == "unlimited" { Some(u64::MAX) } else { value.parse().ok() }
}

/// The sum of strace's table.
fn calls(summary: &str) -> f64 {
    summary
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, name)| name.trim() != "total")
        .filter_map(|(calls, _)| calls.parse::<f64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let stat = "4711 (pg) herd (x) S 1 4711 4711 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 123 456 789";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("4711 (pgherd) S 1"), None);
    }

    #[test]
    fn memory_and_limits_are_read() {
        assert_eq!(kib_of("Name:\tpgherd\nVmHWM:\t  9 kB\nVmRSS:\t   2048 kB\n", "VmRSS:"), Some(2048));
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(files_max(limits), Some(1024));
        assert_eq!(
            files_max("Max open files            unlimited            unlimited            files"),
            Some(u64::MAX)
        );
    }

    #[test]
    fn the_calls_of_strace_are_summed_without_the_total() {
        let summary = "strace: Process 12 attached with 3 threads\n    calls syscall\n--------- ----------------\n\
                       \x20    1200 epoll_wait\n      300 writev\n--------- ----------------\n     1500 total\n";
        assert_eq!(calls(summary), 1500.0);
    }
}
