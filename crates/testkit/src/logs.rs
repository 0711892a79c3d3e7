//! What the router and the servers logged last, beside the panic of a test: their directories are gone when it ends.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

/// Of the end of each log.
const LINES_MAX: usize = 15;
/// Panics of one process that are told of: what follows one often fails for the same reason.
const PANICS_MAX: usize = 3;

static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Prints the ends of the logs below this directory when a test panics.
pub(crate) fn keep_an_eye_on(directory: &Path) {
    static HOOK: Once = Once::new();
    static PANICS: Mutex<usize> = Mutex::new(0);
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner).push(directory.to_owned());
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
            *panics += 1;
            if *panics <= PANICS_MAX {
                let directories = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
                directories.iter().for_each(|directory| eprint!("{}", ends_of_logs(directory)));
            }
        }));
    });
}

fn ends_of_logs(directory: &Path) -> String {
    let mut text = String::new();
    for log in logs_below(directory) {
        let bytes = std::fs::read(&log).unwrap_or_default();
        let content = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = content.lines().filter(|line| !line.trim().is_empty()).collect();
        if !lines.is_empty() {
            let shown = &lines[lines.len().saturating_sub(LINES_MAX)..];
            text.push_str(&format!("--- the end of {}\n{}\n", log.display(), shown.join("\n")));
        }
    }
    text
}

/// `router/router.log`, `worker-1/server.log`, `data/server.log`.
fn logs_below(directory: &Path) -> Vec<PathBuf> {
    let entries = |directory: &Path| {
        let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let is_log = |path: &PathBuf| path.extension().is_some_and(|e| e == "log");
    entries(directory).iter().flat_map(|below| entries(below)).filter(is_log).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_each_log_are_shown() {
        let directory = std::env::temp_dir().join(format!("pgherd-logs-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("router")).unwrap();
        std::fs::create_dir_all(directory.join("worker-1/data")).unwrap();
        let lines: Vec<String> = (1..=40).map(|n| format!("line {n}")).collect();
        std::fs::write(directory.join("router/router.log"), lines.join("\n")).unwrap();
        std::fs::write(directory.join("worker-1/server.log"), "only this\n").unwrap();
        std::fs::write(directory.join("worker-1/data/base"), "not this").unwrap();
        let shown = ends_of_logs(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(shown.contains("line 40") && !shown.contains("line 20\n"), "{shown}");
        assert!(shown.contains("only this") && !shown.contains("not this"), "{shown}");
    }
}
