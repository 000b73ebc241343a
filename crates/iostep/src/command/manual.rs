//! `iostep __manual`: what a package has beside the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::version;

/// Where each shell looks for completions, below `share`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/iostep"),
    (Shell::Fish, "fish/vendor_completions.d/iostep.fish"),
    (Shell::Zsh, "zsh/site-functions/_iostep"),
];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The package's `share`; made if it is not there
    #[arg(value_name = "DIRECTORY")]
    share: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let pages = args.share.join("man/man1");
    make(&pages)?;
    clap_mangen::generate_to(shown(), &pages).with_context(|| pages.display().to_string())?;
    for (shell, name) in COMPLETIONS {
        let path = args.share.join(name);
        make(path.parent().unwrap_or(&args.share))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut shown(), "iostep", &mut text);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn make(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())
}

/// The command with what people call, and nothing of what iostep starts itself.
fn shown() -> clap::Command {
    let all = crate::Cli::command();
    let subcommands = all.get_subcommands().filter(|one| !one.is_hide_set());
    clap::Command::new("iostep")
        .version(version::NUMBER)
        .about(all.get_about().cloned().unwrap_or_default())
        .after_help(all.get_after_help().cloned().unwrap_or_default())
        .subcommand_required(true)
        .subcommands(subcommands.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_no_page_names_what_iostep_starts_itself() {
        let place = tempfile::tempdir().expect("a directory");
        let share = place.path().join("share");
        let args = Args {
            share: share.clone(),
        };
        run(&args).expect("written");
        let page = |name: &str| {
            let path = share.join(format!("man/man1/{name}.1"));
            fs::read_to_string(&path).expect(name)
        };
        for command in shown().get_subcommands() {
            let name = format!("iostep-{}", command.get_name());
            assert!(page(&name).contains(&format!(".TH {name} 1")), "{name}");
        }
        assert!(page("iostep-bench-sqlite").contains("journal"));
        let mut all = page("iostep");
        for (_, name) in COMPLETIONS {
            let text = fs::read_to_string(share.join(name)).expect(name);
            assert!(text.contains("trace"), "{name}");
            all.push_str(&text);
        }
        assert!(!all.contains("__manual") && !all.contains("sql-child"));
    }
}
