"""Python's sqlite3 module: notes.py WALDIO.SO DATABASE"""

import sqlite3
import sys

# Two lines make waldio known to the process. Not every build of Python can load extensions.
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(sys.argv[1])

db = sqlite3.connect(f"file:{sys.argv[2]}?vfs=waldio", uri=True)
db.execute("PRAGMA journal_mode = waldio")
db.execute("CREATE TABLE notes(text)")
for note in ["milk", "bread", "salt"]:
    with db:
        db.execute("INSERT INTO notes VALUES (?)", [note])
layout, commits, reason = db.execute("SELECT layout, commits, reason FROM waldio_stat").fetchone()
print(f"layout={layout} commits={commits} reason={reason or ''}", flush=True)
sys.stdin.read()
db.close()
