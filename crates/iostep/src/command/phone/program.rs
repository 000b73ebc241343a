//! The static iostep for a phone: whether it is one, and its way there.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow};
use iostep_model::hex;
use sha2::{Digest, Sha256};

use super::PhoneArgs;
use super::adb::Adb;
use super::device::Device;
use crate::error::bad_input;
use crate::shell::line;
use crate::terminal::working;

/// Bytes of an ELF header that tell the processor.
const HEADER_BYTES: usize = 20;
/// `e_machine` by `uname -m` (elf(5), `<elf.h>`).
const MACHINES: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];

/// Sees to it that the phone has the program.
///
/// Errors: none is there and none was named; the one that was named is for other phones, or cannot
/// be pushed.
pub fn provide(adb: &Adb, args: &PhoneArgs, device: &Device) -> anyhow::Result<()> {
    let Some(path) = &args.program else {
        return match device.program {
            Some(_) => Ok(()),
            None => Err(bad_input(anyhow!(
                "{}: no iostep in {}; name one with --program, as what make dist-arm64 builds",
                device.name(),
                args.directory
            ))),
        };
    };
    let sha256 = check(path, &device.machine).map_err(bad_input)?;
    if device.program.is_some() && device.program_sha256.as_ref() == Some(&sha256) {
        return Ok(());
    }
    let bar = working(format!("pushing {}", path.display()));
    let program = format!("{}/iostep", args.directory);
    let part = format!("{program}.part");
    let pushed = push(adb, path, &args.directory, &part, &program);
    bar.finish_and_clear();
    pushed.inspect_err(|_| {
        // A phone that is away keeps it; the next push replaces it.
        let _ = adb.shell_soon(&line(["rm", "-f", &part]));
    })
}

fn push(adb: &Adb, from: &Path, directory: &str, part: &str, to: &str) -> anyhow::Result<()> {
    run(adb, &line(["mkdir", "-p", directory]))?;
    // No name is an option.
    let from = from.canonicalize().context("the program")?;
    adb.push(&from, part)?;
    let made = [line(["chmod", "755", part]), line(["mv", part, to])];
    run(adb, &made.join(" && "))
}

fn run(adb: &Adb, line: &str) -> anyhow::Result<()> {
    let answer = adb.shell(line)?;
    match answer.succeeded() {
        true => Ok(()),
        false => Err(anyhow!("on the phone: {}", answer.said)),
    }
}

/// SHA-256 of a program for this machine, in hexadecimal.
///
/// Errors: it cannot be read, or is none for it.
fn check(path: &Path, machine: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let metadata = path.metadata();
    if !metadata.is_ok_and(|found| found.is_file()) {
        return Err(anyhow!("{shown}: cannot open a file of that name"));
    }
    let mut file = File::open(path).with_context(|| format!("{shown}: cannot open"))?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)
        .with_context(|| format!("{shown}: cannot read"))?;
    match machine_of(&content) {
        None => Err(anyhow!("{shown}: no program for Linux")),
        Some(its) if its != machine => Err(anyhow!(
            "{shown}: a program for {its}, and the phone is {machine}"
        )),
        Some(_) => Ok(hex::encode(&Sha256::digest(&content))),
    }
}

/// The processor of an ELF program, as `uname -m` has it, or its number; `None` for no ELF file of 64
/// bits, little-endian.
fn machine_of(content: &[u8]) -> Option<String> {
    let header = content.get(..HEADER_BYTES)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = u16::from_le_bytes([header[18], header[19]]);
    let known = MACHINES.iter().find(|(machine, _)| *machine == number);
    Some(known.map_or_else(
        || format!("machine {number}"),
        |(_, name)| (*name).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_its_processor() {
        let this = std::fs::read("/proc/self/exe").expect("this program");
        assert_eq!(machine_of(&this).as_deref(), Some(std::env::consts::ARCH));
        let mut other = this[..64].to_vec();
        (other[18], other[19]) = (40, 0);
        assert_eq!(machine_of(&other).as_deref(), Some("machine 40"));
        assert_eq!(machine_of(b"#!/bin/sh\necho hello, world\n"), None);
        assert_eq!(machine_of(b"\x7fELF"), None);
    }
}
