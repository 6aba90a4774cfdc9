//! `redrive servers`: the servers that have names.

use serde_json::json;

use crate::exit::Exit;
use crate::output::{Colour, Output, Table, notice};
use crate::servers::{self, EXAMPLE, NamedServer, ServersFile};

const EXAMPLES: &str = "\
Examples:
  redrive servers
  redrive servers --example > servers.toml   # to be edited, as ~/.config/redrive/servers.toml
  redrive tasks list --server staging

The names are those of ~/.config/redrive/servers.toml, or of the file that the variable
$REDRIVE_SERVERS says. The command asks no server.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print a file of servers with everything that it may have
    #[arg(long, conflicts_with = "json")]
    example: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let output = Output::standard();
    if args.example {
        output.text(EXAMPLE)?;
        return Ok(Exit::Done);
    }
    let path = servers::path()?;
    let file = ServersFile::read(&path)?;
    let named: Vec<(&String, &NamedServer)> = file.iter().flat_map(|file| &file.servers).collect();
    let default = file.as_ref().and_then(|file| file.default.as_ref());
    if args.json {
        let servers: Vec<_> = named
            .iter()
            .map(|(name, server)| {
                json!({ "name": name, "url": server.address.to_string(), "default": default == Some(name) })
            })
            .collect();
        let document = json!({ "file": path.display().to_string(), "servers": servers });
        output.json(document.to_string().as_bytes())?;
        return Ok(Exit::Done);
    }
    match (&file, named.is_empty()) {
        (None, _) => output.line(format!("no names: {} does not exist (--example prints one)", path.display()))?,
        (Some(_), true) => output.line(format!("no names: {} has none (--example prints some)", path.display()))?,
        (Some(_), false) => {
            let mut table = Table::new(&["SERVER", "URL", "DEFAULT"]).leading();
            for (name, server) in named {
                let is_default = if default == Some(name) { "yes" } else { "-" };
                table.row([name.as_str().into(), server.address.to_string().into(), is_default.into()]);
            }
            output.table(&table)?;
        }
    }
    match servers::without_flag() {
        Ok(chosen) => {
            let used = output.paint(&chosen.server.address.to_string(), Colour::Strong);
            output.line(format!("commands without --server go to {used}"))?;
        }
        Err(error) => notice(format!("warning: commands without --server fail: {error:#}")),
    }
    Ok(Exit::Done)
}
