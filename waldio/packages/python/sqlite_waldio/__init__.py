"""waldio, a write-ahead log in aligned blocks, for Python's sqlite3, pysqlite3 and apsw."""

import os
import sqlite3
from urllib.parse import quote

__all__ = ["connect", "load", "path"]

#: The library, for what takes an extension by its path.
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "waldio.so")

_WHAT_CAN = (
    "What can: Debian's and Ubuntu's python3; pysqlite3-binary, by"
    " sqlite_waldio.connect(database, module=pysqlite3); apsw"
)


def load(connection):
    """Make the VFS "waldio" known to the SQLite that `connection` uses, for all databases that
    are opened later in this process by "file:...?vfs=waldio". Afterwards `connection` can load no
    further extension.

    `connection` is one of sqlite3, of pysqlite3 or of apsw. RuntimeError says why its SQLite
    cannot have waldio, and what can.
    """
    try:
        connection.enable_load_extension(True)
    except AttributeError:
        raise RuntimeError(
            f"the SQLite module of {type(connection).__module__} was built without loading of"
            f" extensions. {_WHAT_CAN}"
        ) from None
    try:
        connection.load_extension(path)
    except Exception as error:
        raise RuntimeError(f"SQLite does not load {path}: {error}. {_WHAT_CAN}") from error
    finally:
        connection.enable_load_extension(False)


def connect(database, *, module=sqlite3, **arguments):
    """Open a database file, or make it, in journal_mode=waldio; returns what `module.connect`
    does, which takes `arguments`. `module` is sqlite3 or one with its interface.

    Where waldio cannot help, the log is SQLite's own, and column `reason` of the table
    waldio_stat says why. Errors: those of `load` and of `module`; ValueError for a database that
    is no file.
    """
    name = os.fspath(database)
    if name in ("", ":memory:", b"", b":memory:"):
        raise ValueError(f"{name!r} is no file: there is no log in memory")
    loader = module.connect(":memory:")
    try:
        load(loader)
    finally:
        loader.close()
    uri = f"file://{quote(os.fsencode(os.path.abspath(name)))}?vfs=waldio"
    connection = module.connect(uri, uri=True, **arguments)
    try:
        connection.execute("PRAGMA journal_mode = waldio")
    except BaseException:
        connection.close()
        raise
    return connection
