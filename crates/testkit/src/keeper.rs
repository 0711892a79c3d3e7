//! Cleans up after a test process however it ends: by a panic, by `exit`, or by a signal that cannot be caught.
//!
//! A small shell waits on a pipe whose other end only this process holds. When the process is gone, or the [`Keeper`]
//! is dropped, the shell reads the end of the pipe and runs the commands. Statics are never dropped in Rust, so a
//! cluster shared by all tests of a binary could not be stopped otherwise without unsafe code.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Runs its command when it is dropped or its process ends.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Keeper {
    /// `script` is for `sh`, with `arguments` as `$1`, `$2`, …
    pub fn new(script: &str, arguments: &[&str]) -> io::Result<Keeper> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("cat >/dev/null\n{script}"))
            .arg("keeper")
            .args(arguments)
            // A group of its own: an interrupt from the terminal ends the tests, not what cleans up after them.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Keeper { child, pipe })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_command_runs_when_the_keeper_is_dropped() {
        let file = std::env::temp_dir().join(format!("pgherd-keeper-{}", std::process::id()));
        std::fs::write(&file, "x").unwrap();
        let keeper = Keeper::new("rm -f \"$1\"", &[&file.to_string_lossy()]).unwrap();
        assert!(file.exists());
        drop(keeper);
        assert!(!file.exists());
    }
}
