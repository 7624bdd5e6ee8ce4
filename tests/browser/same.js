// Runs each command line of commands.txt by the native program and by WebAssembly in this process,
// and compares output, messages and exit code to the byte.
//   node same.js PROGRAM MODULE SOURCE [FIRST LAST]
'use strict';
const {spawnSync} = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {StepcastHost} = require('../../sim/browser/host.js');
const {addFolder} = require('./files.js');

const [given, wasm, source, first = 1, last = Infinity] = process.argv.slice(2);
const program = fs.realpathSync(given);
const compiled = new WebAssembly.Module(fs.readFileSync(wasm));
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'same-'));
fs.symlinkSync(path.join(source, 'scenarios'), path.join(work, 'scenarios'));

function wordsOf(text) {
  return [...text.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([word]) => word.replaceAll('"', ''));
}
/// The source at its own place and in the working folder, the program and its tables at theirs.
function makeHost() {
  const host = new StepcastHost(compiled, {environment: {STEPCAST_DATA: `${source}/scenarios`}});
  for (const folder of ['scenarios', 'validate/published'])
    for (const place of ['', source])
      addFolder(host, path.join(source, folder), `${place}/${folder}`);
  host.link('/proc/self/exe', program);
  const tables = path.join(path.dirname(program), 'published.columns');
  host.write(tables, fs.readFileSync(tables));
  return host;
}

/// Whether texts are alike but for the last digit of some numbers.
function nearlySame(a, b) {
  const number = /-?\d+\.\d{9,}(?:e[+-]?\d+)?/g;
  const theirs = a.match(number) ?? [], ours = b.match(number) ?? [];
  return a.replaceAll(number, '#') === b.replaceAll(number, '#') &&
      theirs.every((text, i) => Math.abs(text - ours[i]) <= 1e-14 * Math.abs(text));
}

async function compare(words, nearly) {
  const environment = {...process.env, STEPCAST_DATA: `${source}/scenarios`};
  const native = spawnSync(program, words, {cwd: work, env: environment, encoding: 'utf8',
    maxBuffer: 1 << 30});
  const host = makeHost();
  const from = performance.now();
  const ours = await host.run(words);
  const time = performance.now() - from;
  const differs = [];
  if (native.status !== ours.code) differs.push(`exit code ${ours.code} for ${native.status}`);
  for (const [what, a, b] of [['output', native.stdout, ours.out],
    ['messages', native.stderr, ours.errors]])
    if (a !== b && !(nearly && nearlySame(a, b))) {
      const theirs = a.split('\n'), mine = b.split('\n');
      const line = theirs.findIndex((text, i) => text !== mine[i]);
      differs.push(`${what} line ${line + 1}:\n  native ${theirs[line]}\n  wasm   ${mine[line]}`);
    }
  const out = words[words.indexOf('--out') + 1];  // in the working folder
  if (words.includes('--out') && differs.length === 0 &&
      !fs.readFileSync(path.join(work, out)).equals(Buffer.from(host.read(out))))
    differs.push(`file ${out}`);
  return {differs, time, bytes: native.stdout.length};
}

(async () => {
  const lines = fs.readFileSync(path.join(__dirname, 'commands.txt'), 'utf8').split('\n')
      .filter((line) => line && !line.startsWith('#')).slice(first - 1, last);
  let same = 0;
  for (const line of lines) {
    const nearly = line.startsWith('libm: ');
    const {differs, time, bytes} = await compare(wordsOf(line.replace('libm: ', '')), nearly);
    if (differs.length === 0) ++same;
    console.log(differs.length === 0 ? 'same' : 'DIFFERS', `${bytes} bytes`,
        `${Math.round(time)} ms`, `stepcast ${line}`);
    for (const text of differs) console.log(text);
  }
  console.log(`${same} of ${lines.length} commands are the same`);
  fs.rmSync(work, {recursive: true});
  process.exit(same === lines.length && same > 0 ? 0 : 1);
})();
