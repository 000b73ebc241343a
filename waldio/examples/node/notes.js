// Node with better-sqlite3: notes.js WALDIO.SO DATABASE
'use strict';

const fs = require('node:fs');
const Database = require('better-sqlite3');

const [extension, path] = process.argv.slice(2);
// better-sqlite3 takes no URI, so waldio becomes the default VFS of whatever is opened later.
new Database(':memory:').loadExtension(extension, 'sqlite3_waldio_default_init');

const db = new Database(path);
db.pragma('journal_mode = waldio');
db.exec('CREATE TABLE notes(text)');
const insert = db.prepare('INSERT INTO notes VALUES (?)');
for (const note of ['milk', 'bread', 'salt']) insert.run(note);
const stat = db.prepare('SELECT layout, commits, reason FROM waldio_stat').get();
console.log(`layout=${stat.layout} commits=${stat.commits} reason=${stat.reason ?? ''}`);
fs.readFileSync(0);
db.close();
