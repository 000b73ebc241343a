"""An application with a timeline: rows, pictures, settings. The lab `replay` has it recorded.

usage: timeline.py DIRECTORY

Begins when a line comes on standard input, so that a recorder can be attached before.
"""

import os
import random
import sqlite3
import sys
import threading

REFRESHES = 12
NEW_ROWS = 8
READ_ROWS = 4
OLD_ROWS = 2
PICTURES = 3
# Of a thumbnail and of a picture on a small screen.
PICTURE_BYTES = (6_000, 60_000)


def open_database(directory):
    os.makedirs(directory, exist_ok=True)
    # Without an isolation level each statement is a transaction, as most of an application's are.
    database = sqlite3.connect(os.path.join(directory, "timeline.db"), isolation_level=None)
    database.execute("PRAGMA journal_mode = TRUNCATE")
    database.execute(
        "CREATE TABLE status (id INTEGER PRIMARY KEY, author TEXT, content TEXT, created INTEGER,"
        " read INTEGER DEFAULT 0)"
    )
    database.execute("CREATE INDEX status_created ON status (created DESC)")
    return database


def store_pictures(directory, refresh, numbers):
    """What a thread for the network writes: nobody waits for it to be durable."""
    os.makedirs(directory, exist_ok=True)
    for picture in range(PICTURES):
        path = os.path.join(directory, f"{refresh:02}-{picture}.jpg")
        with open(path, "wb") as file:
            file.write(numbers.randbytes(numbers.randint(*PICTURE_BYTES)))


def store_settings(directory, refresh):
    """As SharedPreferences does: the old file is there until the new one is durable."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "timeline.xml")
    with open(path + ".new", "w") as file:
        file.write(f'<map><long name="last_refresh" value="{refresh}" /></map>\n' * 20)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def refresh_timeline(database, refresh, numbers):
    for row in range(NEW_ROWS):
        author = f"author{numbers.randint(1, 40)}"
        content = numbers.randbytes(numbers.randint(20, 70)).hex()
        created = refresh * 1_000 + row
        database.execute(
            "INSERT INTO status (author, content, created) VALUES (?, ?, ?)",
            (author, content, created),
        )
    newest = database.execute("SELECT id, content FROM status ORDER BY created DESC LIMIT 20")
    for row, _ in newest.fetchall()[:READ_ROWS]:
        database.execute("UPDATE status SET read = 1 WHERE id = ?", (row,))
    for _ in range(OLD_ROWS):
        database.execute("DELETE FROM status WHERE id = (SELECT min(id) FROM status)")


def main():
    directory = sys.argv[1]
    # The same calls each time it is recorded.
    numbers = random.Random(13)
    sys.stdin.readline()
    database = open_database(os.path.join(directory, "databases"))
    for refresh in range(REFRESHES):
        cache = os.path.join(directory, "cache")
        pictures = random.Random(refresh)
        network = threading.Thread(target=store_pictures, args=(cache, refresh, pictures))
        network.start()
        refresh_timeline(database, refresh, numbers)
        network.join()
        store_settings(os.path.join(directory, "shared_prefs"), refresh)
    database.close()


main()
