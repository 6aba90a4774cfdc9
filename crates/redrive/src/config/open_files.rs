//! Limits that follow the limit of open files: every connection is one.
//!
//! A process that may open fewer files than its limits of connections add up to would run out of them under load. Sends
//! would be put off and connections of callers closed, in no particular order. So the limits are lowered instead.

use super::{Loaded, Origin, SETTINGS};

/// Files that are neither a caller's connection nor a dependency's: the store, the log, the listener, the places kept
/// for health checks, and look-ups of names that take no longer than usual.
const OTHERS: usize = 256;
/// What attempts, unused connections and callers get of the rest, in tenths. Callers get half: a send that is put off
/// is not lost, a caller that is closed does not know what to do.
const TENTHS: [usize; 3] = [4, 1, 5];
/// The fewest attempts at once, unused connections and connections of callers, whatever the limit of open files is.
const FEWEST: usize = 4;

/// Lowers the limits of connections to what `files` open files allow. Without a number there is no limit.
pub(super) fn fit(loaded: &mut Loaded, files: Option<u64>) {
    loaded.open_files = files;
    let Some(files) = files.and_then(|files| usize::try_from(files).ok()) else { return };
    let config = &mut loaded.config;
    let connections = config.engine.max_in_flight + config.transport.max_idle + config.api.max_connections;
    if connections + OTHERS <= files {
        return;
    }
    let room = files - OTHERS.min(files / 4);
    let mut lowered = Vec::new();
    let mut lower = |key: Option<&'static str>, limit: &mut usize, most: usize| {
        if most < *limit {
            lowered.extend(key.map(|key| (key, most)));
            *limit = most;
        }
    };
    let most = TENTHS.map(|tenths| (room * tenths / 10).max(FEWEST));
    lower(Some("engine.max_in_flight"), &mut config.engine.max_in_flight, most[0]);
    lower(Some("engine.lane_concurrency"), &mut config.engine.lane_concurrency, config.engine.max_in_flight);
    lower(None, &mut config.transport.max_idle, most[1]);
    lower(Some("transport.max_idle_per_origin"), &mut config.transport.max_idle_per_origin, most[1]);
    lower(Some("api.max_connections"), &mut config.api.max_connections, most[2]);
    for (setting, origin) in SETTINGS.iter().zip(&mut loaded.origins) {
        if lowered.iter().any(|(key, _)| *key == setting.key) {
            *origin = Origin::OpenFiles;
        }
    }
    let lowered: Vec<String> = lowered.iter().map(|(key, most)| format!("{key} = {most}")).collect();
    loaded.warnings.push(format!(
        "only {files} files may be open (ulimit -n, LimitNOFILE=), but {} are needed: lowered to {}",
        connections + OTHERS,
        lowered.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, Flags, load};
    use super::*;

    /// Attempts, attempts of a lane, unused connections, those of one origin, connections of callers.
    fn limits(loaded: &Loaded) -> [usize; 5] {
        let config = &loaded.config;
        let (engine, transport) = (&config.engine, &config.transport);
        [
            engine.max_in_flight,
            engine.lane_concurrency,
            transport.max_idle,
            transport.max_idle_per_origin,
            config.api.max_connections,
        ]
    }

    fn with(files: Option<u64>) -> Loaded {
        load(&Flags::default(), &Environment { open_files: files, ..Environment::default() })
    }

    #[test]
    fn limits_follow_the_limit_of_open_files() {
        let default = [4_096, 128, 2_048, 1_024, 4_096];
        for (files, expected) in [
            (None, default),
            (Some(10_496), default),
            (Some(10_495), [4_095, 128, 1_023, 1_023, 4_096]),
            (Some(1_024), [307, 128, 76, 76, 384]),
            (Some(256), [76, 76, 19, 19, 96]),
            (Some(20), [6, 6, 4, 4, 7]),
        ] {
            let loaded = with(files);
            assert_eq!(limits(&loaded), expected, "{files:?}");
            assert_eq!(loaded.problems, [], "{files:?}");
            let is_enough = expected == default;
            assert_eq!(loaded.warnings.is_empty(), is_enough, "{:?}", loaded.warnings);
            let origin = if is_enough { Origin::Default } else { Origin::OpenFiles };
            assert_eq!(loaded.origin("engine.max_in_flight"), origin, "{files:?}");
        }
    }

    #[test]
    fn what_was_lowered_is_named() {
        assert_eq!(
            with(Some(1_024)).warnings,
            ["only 1024 files may be open (ulimit -n, LimitNOFILE=), but 10496 are needed: lowered to \
              engine.max_in_flight = 307, transport.max_idle_per_origin = 76, api.max_connections = 384"]
        );
    }
}
