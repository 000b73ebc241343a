//! Addresses of kernel symbols, from `/proc/kallsyms`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use iostep_model::rights::way_to_capabilities;

use crate::error::{Error, Result};
use crate::rights::{TRACE, missing_rights};

const PATH: &str = "/proc/kallsyms";
const RESTRICTION: &str = "/proc/sys/kernel/kptr_restrict";

/// The addresses of the symbols that were asked for. A static function may exist several times.
#[derive(Debug, Default)]
pub struct Symbols {
    addresses: HashMap<&'static str, Vec<u64>>,
}

impl Symbols {
    /// Reads the addresses of `names`.
    ///
    /// Errors: `Io`; `Unsupported` where the kernel hides addresses (`kernel.kptr_restrict`).
    pub fn read(names: &[&'static str]) -> Result<Symbols> {
        let mut wanted: HashMap<&[u8], &'static str> = HashMap::new();
        wanted.extend(names.iter().map(|name| (name.as_bytes(), *name)));
        let file = File::open(PATH).map_err(Error::io(PATH, "open"))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        let mut symbols = Symbols::default();
        loop {
            line.clear();
            let length = reader
                .read_until(b'\n', &mut line)
                .map_err(Error::io(PATH, "read"))?;
            if length == 0 {
                break;
            }
            symbols.take(&line, &wanted);
        }
        if symbols.addresses.values().flatten().any(|a| *a == 0) {
            let reason = format!("the kernel hides its addresses: {}", why_hidden());
            return Err(Error::unsupported(PATH, reason));
        }
        Ok(symbols)
    }

    fn take(&mut self, line: &[u8], wanted: &HashMap<&[u8], &'static str>) {
        let mut words = line.split(|b| b.is_ascii_whitespace());
        let (Some(address), Some(_kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let Some(name) = wanted.get(name) else { return };
        let address = std::str::from_utf8(address)
            .ok()
            .and_then(|text| u64::from_str_radix(text, 16).ok());
        if let Some(address) = address {
            self.addresses.entry(name).or_default().push(address);
        }
    }

    /// Every address of a symbol.
    pub fn all(&self, name: &str) -> &[u64] {
        self.addresses.get(name).map_or(&[], Vec::as_slice)
    }

    /// A symbol's address, 0 if the kernel has none.
    pub fn one(&self, name: &str) -> u64 {
        self.all(name).first().copied().unwrap_or(0)
    }
}

/// Why whoever reads the addresses gets zeros, and what to do (Linux, lib/vsprintf.c).
fn why_hidden() -> String {
    if let Some(missing) = missing_rights(&TRACE) {
        return format!("{missing} missing; {}", way_to_capabilities());
    }
    let restriction = std::fs::read_to_string(RESTRICTION).unwrap_or_default();
    match restriction.trim() {
        "0" | "1" => {
            "the capabilities of this process are those of a user namespace; run it outside \
                      of that, as root"
                .into()
        }
        _ => "set kernel.kptr_restrict to at most 1, with sysctl(8)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_function_can_have_several_addresses() {
        let wanted = HashMap::from([(&b"twice"[..], "twice")]);
        let mut symbols = Symbols::default();
        for line in [
            &b"ffffffff81000010 t twice\n"[..],
            b"ffffffff81000020 t twice\t[module]\n",
            b"ffffffff81000030 t other\n",
            b"not a line\n",
            b"\n",
        ] {
            symbols.take(line, &wanted);
        }
        assert_eq!(
            symbols.all("twice"),
            [0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020]
        );
        assert_eq!(symbols.one("other"), 0);
    }
}
