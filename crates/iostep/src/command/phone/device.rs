//! What a phone says of itself.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use serde::Serialize;

use super::adb::{Adb, MARK, Root};
use crate::shell::quoted;

/// What matters of a phone. What it does not tell is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// As `uname -m` has it.
    pub machine: String,
    /// Release of the kernel.
    pub kernel: Option<String>,
    pub manufacturer: Option<String>,
    pub model: Option<String>,
    /// Release of Android.
    pub android: Option<String>,
    /// True if the kernel has its types (BTF), which BPF needs.
    pub has_btf: bool,
    /// User id of adb's shell.
    pub shell_uid: u32,
    /// How a command becomes root: `shell`, `su_c`, `su_0`; `null` if none does.
    #[serde(serialize_with = "serialize_root")]
    pub root: Option<Root>,
    /// Free bytes where the program lies.
    pub free_bytes: Option<u64>,
    /// Version of the iostep that is there.
    pub program: Option<String>,
    /// SHA-256 of it, in hexadecimal.
    #[serde(skip)]
    pub program_sha256: Option<String>,
}

fn serialize_root<S: serde::Serializer>(root: &Option<Root>, to: S) -> Result<S::Ok, S::Error> {
    let name = root.map(|root| match root {
        Root::Shell => "shell",
        Root::SuC => "su_c",
        Root::Su0 => "su_0",
    });
    name.serialize(to)
}

/// Asks a phone, whose program lies in `directory`. Whether it lets anybody become root is asked only
/// where that matters: su may ask its owner.
///
/// Errors: there is no adb, no phone, or more than one.
pub fn ask(adb: &Adb, directory: &str, for_root: bool) -> anyhow::Result<Device> {
    let program = quoted(&format!("{directory}/iostep"));
    let place = quoted(directory);
    // Before the first push it is not there.
    let parent = quoted(directory.rsplit_once('/').map_or("/", |(parent, _)| parent));
    // Every part may be missing, and says nothing then.
    let questions = [
        ("machine", "uname -m".to_owned()),
        ("kernel", "uname -r".to_owned()),
        ("uid", "id -u".to_owned()),
        ("manufacturer", "getprop ro.product.manufacturer".to_owned()),
        ("model", "getprop ro.product.model".to_owned()),
        ("android", "getprop ro.build.version.release".to_owned()),
        ("btf", "ls /sys/kernel/btf/vmlinux".to_owned()),
        ("su_c", "su -c 'id -u' </dev/null".to_owned()),
        ("su_0", "su 0 id -u </dev/null".to_owned()),
        (
            "free",
            format!(
                "set -- $({{ df -k {place} || df -k {parent}; }} | tail -n 1); \
                 shift $(($# - 3)); echo $1"
            ),
        ),
        ("sha256", format!("sha256sum {program}")),
        ("program", format!("{program} --version | head -n 1")),
    ];
    let script: Vec<String> = questions
        .iter()
        .filter(|(name, _)| for_root || !name.starts_with("su_"))
        .map(|(name, line)| format!("echo \"{MARK}{name}=$({{ {line}; }} 2>/dev/null)\""))
        .collect();
    let answer = adb.shell(&script.join("; "))?;
    if answer.status.is_none() {
        bail!("no phone answers: {}", answer.said);
    }
    let mut answers = answers(&answer.output);
    let mut take = |name: &str| answers.remove(name).filter(|value| !value.is_empty());
    let machine = take("machine");
    let machine = machine.ok_or_else(|| anyhow!("the phone does not say what it is (uname -m)"))?;
    let shell_uid = take("uid").and_then(|uid| uid.parse().ok());
    let shell_uid = shell_uid.ok_or_else(|| anyhow!("the phone does not say who its shell is"))?;
    let (su_c, su_0) = (take("su_c"), take("su_0"));
    let is_root = |uid: Option<String>| uid.as_deref() == Some("0");
    let root = match shell_uid {
        0 => Some(Root::Shell),
        _ if is_root(su_c) => Some(Root::SuC),
        _ if is_root(su_0) => Some(Root::Su0),
        _ => None,
    };
    let first_word = |text: String| text.split_whitespace().next().map(str::to_owned);
    Ok(Device {
        machine,
        kernel: take("kernel"),
        manufacturer: take("manufacturer"),
        model: take("model"),
        android: take("android"),
        has_btf: take("btf").is_some(),
        shell_uid,
        root,
        free_bytes: take("free").and_then(|kib| kib.parse::<u64>().ok()?.checked_mul(1024)),
        program: take("program"),
        program_sha256: take("sha256").and_then(first_word),
    })
}

/// The first line of each answer.
fn answers(text: &str) -> BTreeMap<String, String> {
    let marked = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(MARK));
    let pairs = marked.filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

impl Device {
    /// As people call it.
    pub fn name(&self) -> String {
        let names = [&self.manufacturer, &self.model];
        let name: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        match name.is_empty() {
            true => format!("a phone ({})", self.machine),
            false => name.join(" "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_what_else_a_shell_prints() {
        let text = "Welcome!\niostep-phone:machine=aarch64\r\niostep-phone:model=\nmore\n\
                    iostep-phone:kernel=6.1.99-android14=x\n";
        let answers = answers(text);
        assert_eq!(answers["machine"], "aarch64");
        assert_eq!(answers["model"], "");
        assert_eq!(answers["kernel"], "6.1.99-android14=x");
        assert_eq!(answers.len(), 3);
    }
}
