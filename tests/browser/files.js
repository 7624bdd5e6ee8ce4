// Folders of this machine in the memory that a module takes for its files.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const read = new Map();

function addFolder(host, from, to) {
  for (const entry of fs.readdirSync(from, {withFileTypes: true})) {
    const file = path.join(from, entry.name);
    if (entry.isDirectory()) addFolder(host, file, `${to}/${entry.name}`);
    else {
      if (!read.has(file)) read.set(file, fs.readFileSync(file));
      host.write(`${to}/${entry.name}`, read.get(file));
    }
  }
}

module.exports = {addFolder};
