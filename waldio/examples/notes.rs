//! Rust with rusqlite, waldio linked in: notes DATABASE

use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: notes DATABASE")?;
    let db = waldio::open(path)?;
    db.execute_batch("CREATE TABLE notes(text)")?;
    for note in ["milk", "bread", "salt"] {
        db.execute("INSERT INTO notes VALUES (?1)", [note])?;
    }
    let line: String = db.query_row(
        "SELECT printf('layout=%s commits=%d reason=%s', layout, commits, reason)
         FROM waldio_stat",
        [],
        |row| row.get(0),
    )?;
    println!("{line}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
