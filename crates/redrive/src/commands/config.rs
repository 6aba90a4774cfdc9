//! `redrive config`: what is in force, where it came from, and whether it can be used.

use serde_json::json;

use crate::config::{self, Environment, Flags, Loaded, Origin, SETTINGS};
use crate::exit::{Exit, ExitError};
use crate::output::{Cell, Colour, Output, Table, notice};

const EXAMPLES: &str = "\
Examples:
  redrive config                                # the settings of `redrive serve`
  redrive config --config redrive.toml          # with a file; exit code 78 if it is not valid
  redrive config --listen 0.0.0.0:8620 --json   # for programs
  redrive config --example > redrive.toml       # a file to start from";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "example")]
    json: bool,
    /// Print a configuration file with every setting at its default
    #[arg(long)]
    example: bool,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let output = Output::standard();
    if args.example {
        output.text(&config::example())?;
        return Ok(Exit::Done);
    }
    let loaded = config::load(&args.flags, &Environment::of_this_process());
    if args.json {
        output.json(&serde_json::to_vec_pretty(&document(&loaded))?)?;
    } else {
        output.table(&table(&loaded))?;
    }
    usable(&loaded)?;
    Ok(Exit::Done)
}

/// Says what is odd about a configuration, and fails with everything that is wrong with it.
pub(crate) fn usable(loaded: &Loaded) -> anyhow::Result<()> {
    for warning in &loaded.warnings {
        notice(format!("warning: {warning}"));
    }
    if loaded.problems.is_empty() {
        return Ok(());
    }
    let problems: String = loaded.problems.iter().map(|problem| format!("\n  {problem}")).collect();
    Err(ExitError::of(Exit::BadConfiguration, format!("the configuration is not valid:{problems}")))
}

fn table(loaded: &Loaded) -> Table {
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for (setting, origin) in SETTINGS.iter().zip(&loaded.origins) {
        let from = match origin {
            Origin::Default => Cell::coloured("default", Colour::Faint),
            origin => origin.to_string().into(),
        };
        table.row([setting.key.into(), setting.readable(&loaded.config).into(), from]);
    }
    let from = match &loaded.traces {
        Origin::Default => Cell::coloured("default", Colour::Faint),
        origin => origin.to_string().into(),
    };
    table.row(["traces".into(), loaded.config.traces_receiver().into(), from]);
    table
}

fn document(loaded: &Loaded) -> serde_json::Value {
    let settings: Vec<_> = SETTINGS
        .iter()
        .zip(&loaded.origins)
        .map(|(setting, origin)| {
            json!({
                "key": setting.key,
                "value": setting.to_json(&loaded.config),
                "from": origin.to_json(),
                "variable": setting.variable,
                "flag": format!("--{}", setting.flag),
                "meaning": setting.meaning,
            })
        })
        .collect();
    let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
    json!({
        "valid": problems.is_empty(),
        "settings": settings,
        "openFiles": loaded.open_files,
        "traces": { "from": loaded.traces.to_json(), "value": loaded.config.traces_to_json() },
        "problems": problems,
        "warnings": loaded.warnings,
    })
}
