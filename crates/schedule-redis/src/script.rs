//! The scripts that run inside Redis, and their calls.
//!
//! A call names its script by hash. A server that does not have the script (after a restart or a flush of its scripts,
//! or a new node of a cluster) returns an error, and is then sent the whole text, once.

use std::sync::LazyLock;

use redis::{Cmd, Script as Hashed, ToRedisArgs};

/// A script and its hash.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: LazyLock<String>,
}

macro_rules! script {
    ($(#[$doc:meta])* $name:ident = $($part:literal)+) => {
        $(#[$doc])*
        pub(crate) static $name: Script = {
            const TEXT: &str = concat!($(include_str!(concat!("lua/", $part))),+);
            Script { text: TEXT, hash: LazyLock::new(|| Hashed::new(TEXT).get_hash().to_owned()) }
        };
    };
}

script!(ADD = "book.lua" "add.lua");
script!(REMOVE = "book.lua" "remove.lua");
script!(TAKE = "book.lua" "run.lua" "take.lua");
script!(IS_COMPLETE = "run.lua" "is_complete.lua");
script!(BEGIN = "run.lua" "begin.lua");
script!(FINISH = "run.lua" "finish.lua");
script!(EXTEND = "extend.lua");
script!(UNLOCK = "unlock.lua");

/// A call to Redis.
pub(crate) enum Call {
    /// A plain command.
    Command(Cmd),
    /// A script, on keys of one slot.
    Script { script: &'static Script, arguments: Cmd },
}

impl Call {
    /// A call of the script on these keys; arguments follow with [`Call::arg`].
    pub(crate) fn script(script: &'static Script, keys: &[String]) -> Self {
        let mut arguments = redis::cmd("EVALSHA");
        arguments.arg(script.hash.as_str()).arg(keys.len()).arg(keys);
        Call::Script { script, arguments }
    }

    pub(crate) fn command(name: &str) -> Self {
        Call::Command(redis::cmd(name))
    }

    pub(crate) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        let (Call::Command(command) | Call::Script { arguments: command, .. }) = &mut self;
        command.arg(argument);
        self
    }

    pub(crate) fn as_command(&self) -> &Cmd {
        let (Call::Command(command) | Call::Script { arguments: command, .. }) = self;
        command
    }

    /// The call with its script's whole text, for a server that does not have it; `None` for a plain command.
    pub(crate) fn with_text(&self) -> Option<Cmd> {
        let Call::Script { script, arguments } = self else { return None };
        let mut whole = redis::cmd("EVAL");
        whole.arg(script.text);
        // The arguments after the hash: the number of keys, the keys, the arguments.
        for argument in arguments.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                whole.arg(bytes);
            }
        }
        Some(whole)
    }
}
