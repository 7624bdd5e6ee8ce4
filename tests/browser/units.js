// The tests of engine, topology and workloads as WebAssembly: long and size_t have 32 bits there,
// and the C library is another.
//   node units.js MODULE SOURCE [WORDS OF CATCH ...]
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const {StepcastHost} = require('../../sim/browser/host.js');
const {addFolder} = require('./files.js');

const [wasm, source, ...words] = process.argv.slice(2);
const host = new StepcastHost(new WebAssembly.Module(fs.readFileSync(wasm)));
for (const folder of ['scenarios', 'validate/published'])
  addFolder(host, path.join(source, folder), `/${folder}`);
const tables = path.join(source, 'build/release/published.columns');
if (fs.existsSync(tables)) host.write('/stepcast/published.columns', fs.readFileSync(tables));

host.run(words.length > 0 ? words : ['~[.]']).then(({code, out, errors}) => {
  process.stdout.write(out);
  process.stderr.write(errors);
  process.exitCode = Math.min(code, 125);
});
