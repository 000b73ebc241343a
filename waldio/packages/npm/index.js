// waldio, a write-ahead log in aligned blocks, for better-sqlite3 and node:sqlite.
'use strict';

const fs = require('node:fs');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

// The process itself knows; files of the system may be another C library's.
function family() {
  const { report } = process;
  const { excludeNetwork } = report;
  report.excludeNetwork = true; // It would look up names.
  const { header } = report.getReport();
  report.excludeNetwork = excludeNetwork;
  return header.glibcVersionRuntime ? 'glibc' : 'musl';
}

const platform = `${process.platform}-${process.arch}-${family()}`;

/** The library for this process, for what takes an extension by its path. */
const path = join(__dirname, 'lib', platform, 'waldio.so');

/**
 * Opens a database file, or makes it, in journal_mode=waldio.
 *
 * better-sqlite3 takes no URI, so with it waldio becomes the default VFS: of whatever it opens later
 * in this process, too. Where waldio cannot help, the log is SQLite's own, and column `reason` of the
 * table waldio_stat says why.
 *
 * @param Database the class of better-sqlite3, or DatabaseSync of node:sqlite
 * @param {string} file the database
 * @param {object} [options] those of the class
 * @returns an object of the class
 * @throws where this package has no library for the platform, or SQLite refuses it
 */
function open(Database, file, options = {}) {
  if (file === '' || file === ':memory:') {
    throw new TypeError(`'${file}' is no file: there is no log in memory`);
  }
  if (!fs.existsSync(path)) {
    const there = fs.readdirSync(join(__dirname, 'lib')).join(', ');
    throw new Error(`sqlite-waldio has no library for ${platform}; it has ${there}`);
  }
  const isBetter = 'pragma' in Database.prototype;
  const loader = new Database(':memory:', isBetter ? {} : { allowExtension: true });
  try {
    loader.loadExtension(path, ...(isBetter ? ['sqlite3_waldio_default_init'] : []));
  } finally {
    loader.close();
  }
  const db = new Database(isBetter ? file : `${pathToFileURL(file).href}?vfs=waldio`, options);
  try {
    db.prepare('PRAGMA journal_mode = waldio').get();
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

module.exports = { open, path };
