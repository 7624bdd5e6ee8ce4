// The page: controls that make words of a command line, and the program's answer to them. The state
// is those words; the address holds them.
const held = JSON.parse(document.getElementById('data').textContent);
const at = (id) => document.getElementById(id);
const first = ['--model', 'llama3-8b', '--gpu', 'h100', '--gpus', '64', '--data', 'zero3',
  '--local-batch', '1'];
const powers = (from, to) => Array.from({length: 40}, (none, i) => from * 2 ** i)
    .filter((value) => value <= to);

/// An option, how it is called here, and of what it can be chosen: names, sizes (a slider), degrees
/// of the GPUs, or the option's own words (`key`). `now` finds what holds while nothing is chosen.
const controls = [
  ['Model', 'model', 'model', {names: true, now: (answer) => answer.model}],
  ['Model', 'sequence', 'tokens a sequence', {sizes: powers(512, 1048576),
    now: ({plan}) => plan.sequence}],
  ['Machine', 'gpu', 'GPU', {names: true, now: (answer) => answer.gpu}],
  ['Machine', 'node', 'node', {names: true,
    now: ({cluster}) => cluster?.node}],
  ['Machine', 'gpus', 'GPUs', {sizes: powers(1, 16384), now: (answer) => answer.gpus}],
  ['Machine', 'fabric', 'fabric', {names: true, now: ({cluster}) => cluster?.fabric}],
  ['Software', 'framework', 'framework', {names: true, now: ({plan}) => plan.framework}],
  ['Software', 'recipe', 'low precision', {key: true, now: ({plan}) => plan.recipe}],
  ['Batch', 'global-batch', 'sequences a step', {sizes: powers(1, 65536),
    now: ({plan}) => plan.global_batch, instead: ['local-batch', 'micro-batches']}],
  ['Batch', 'local-batch', '... a GPU', {sizes: powers(1, 1024), now: ({plan}) => plan.local_batch,
    instead: ['global-batch', 'micro-batches']}],
  ['Batch', 'micro-batch', 'micro-batch', {sizes: powers(1, 64),
    now: ({plan}) => plan.micro_batch}],
  ['Plan', 'data', 'data parallel', {key: true, now: ({plan}) => plan.data}],
  ['Plan', 'tensor', 'tensor', {degrees: true, now: ({plan}) => plan.tensor}],
  ['Plan', 'sequence-parallel', 'sequence parallel', {flag: true}],
  ['Plan', 'pipeline', 'pipeline', {degrees: true, now: ({plan}) => plan.pipeline}],
  ['Plan', 'virtual-stages', 'chunks a stage', {words: powers(1, 16),
    now: ({plan}) => plan.virtual_stages}],
  ['Plan', 'schedule', 'schedule', {key: true, now: ({plan}) => plan.schedule}],
  ['Plan', 'context', 'context', {degrees: true, now: ({plan}) => plan.context}],
  ['Plan', 'expert', 'expert', {degrees: true, now: ({plan}) => plan.expert}],
  ['Plan', 'recompute', 'recompute', {key: true, now: ({plan}) => plan.recompute}],
  ['Whole run', 'tokens', 'tokens', {text: '15T'}],
  ['Whole run', 'price', 'price of a GPU', {text: '2.5 USD/h'}],
];

// --- words and what they say

/// As a shell reads them.
function wordsOf(text) {
  const out = [];
  for (const [, ...forms] of text.matchAll(/((?:[^\s"']+|"(?:[^"\\]|\\.)*"|'[^']*')+)/g))
    out.push(forms[0].replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g,
        (all, double, single) => single ?? double.replace(/\\(.)/g, '$1')));
  return out;
}
const quoted = (word) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
const textOf = (words) => words.map(quoted).join(' ');

/// Options that have a control, and all other words in their order.
function split(words) {
  const chosen = new Map(), others = [];
  for (let i = 0; i < words.length; ++i) {
    const [, name, value] = /^--([\w-]+)(?:=(.*))?$/s.exec(words[i]) ?? [];
    const control = controls.find(([, option]) => option === name);
    if (!control) others.push(words[i]);
    else if (control[3].flag) chosen.set(name, true);
    else chosen.set(name, value ?? words[++i] ?? '');
  }
  return {chosen, others};
}
function joined({chosen, others}) {
  const out = [...others];
  for (const [, option] of controls)
    if (chosen.get(option) === true) out.push('--' + option);
    else if (chosen.has(option)) out.push('--' + option, chosen.get(option));
  return out;
}
function withOption(words, option, value) {
  const parts = split(words);
  if (value === '' || value === false) parts.chosen.delete(option);
  else {
    parts.chosen.set(option, value);
    const [, , , {instead = []}] = controls.find(([, name]) => name === option);
    for (const other of instead) parts.chosen.delete(other);
    if (option === 'gpu') parts.chosen.delete('node');
  }
  return joined(parts);
}

// --- the program, in Workers

class Program {
  constructor() {
    const source = at('worker').textContent;
    this.worker = new Worker(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
    this.waiting = new Map();
    this.asked = 0;
    this.worker.onmessage = ({data: {id, told, failure, message}}) => {
      const {resolve, reject, heard} = this.waiting.get(id);
      if (message !== undefined) return heard?.(message);
      this.waiting.delete(id);
      if (failure !== undefined) reject(new Error(failure));
      else resolve(told);
    };
  }
  /// `heard` gets what the program says meanwhile.
  ask(message, heard) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.asked, {resolve, reject, heard});
      this.worker.postMessage({id: this.asked, ...message});
    });
  }
  end() { this.worker.terminate(); }
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text.trim());
  return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
}
async function unpacked(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
let module, files;
async function program() {
  const out = new Program();
  await out.ask({kind: 'start', module, files});
  if (held.scenario) await out.ask({kind: 'write', path: '/scenario.toml', text: held.scenario});
  for (const [path, text] of dropped) await out.ask({kind: 'write', path, text});
  return out;
}

// --- state

let words = [], mine, answerer, checker, told, mineTold, drawn = 0;
const dropped = new Map();
window.stepcast = {get words() { return words; }, get told() { return told; },
  get drawn() { return drawn; }, get reported() { return reported; },
  times: {}};  // what tests ask for

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  words = asked.has('q') ? wordsOf(asked.get('q')) : held.words.length > 0 ? held.words : first;
  mine = asked.has('mine') ? wordsOf(asked.get('mine')) : undefined;
}
function writeAddress() {
  const asked = new URLSearchParams({q: textOf(words)});
  if (mine) asked.set('mine', textOf(mine));
  history.replaceState(null, '', '#' + asked);
}
const question = (of) => ['run', ...of, '--json'];
async function answerTo(of) {
  const {out, errors} = await answerer.ask({kind: 'answer', words: question(of)});
  try {
    return {text: out, answer: JSON.parse(out)};
  } catch {
    return {text: out, answer: {error: {message: errors || out || 'no answer'}}};
  }
}

let busy = false, again = false;
/// Asks for the newest state; what changed meanwhile is asked for next.
async function update() {
  writeAddress();
  again = true;
  if (busy || !answerer) return;
  busy = true;
  while (again) {
    again = false;
    const asked = words, from = performance.now();
    told = await answerTo(asked);
    const over = told.answer.memory_over_gib === undefined ? undefined :
      (await answerTo([...asked, '--refuse-below', '0'])).answer;
    if (mine && !mineTold) mineTold = await answerTo(mine);
    draw(asked, over);
    if (asked === words) renewReport();
    window.stepcast.times.answer = performance.now() - from;
    ++drawn;
  }
  busy = false;
  checkChoices();
}

function draw(asked, over) {
  const {answer} = told;
  const shown = over ?? answer;
  const refused = answer.refused !== undefined || answer.error !== undefined;
  at('state').className = refused ? 'refused' : '';
  at('state').textContent = refused ? refusalText(answer) : stateText(answer);
  const capacity = held.memory_gib[shown.gpu];
  const parts = shown.step_time_s === undefined ? [] : answerParts(shown, capacity, !refused);
  if (mineTold?.answer.step_time_s !== undefined && shown.step_time_s !== undefined)
    parts.unshift(beside(mineTold.answer, shown));
  at('figures').replaceChildren(...parts);
  at('command').textContent = 'stepcast ' + textOf(['run', ...asked]);
  at('glance').className = at('state').className;
  at('glance').textContent = shown.step_time_s === undefined ? at('state').textContent :
    `${seconds(shown.step_time_s)}, MFU ${percent(shown.mfu)}, ` +
    `${gibibytes(shown.memory_gib_per_gpu)} ${refused ? 'do not fit' : 'a GPU'}`;
  at('keep').disabled = answer.step_time_s === undefined;
  at('forget').hidden = at('changes').hidden = !mine;
  if (shown.plan) showNow(shown);
}
const stateText = ({model, gpus, gpu, plan}) =>
  `${model} on ${gpus} x ${gpu}, ${plan.framework} ${plan.framework_version}`;

// --- controls

function makeControl([, option, label, {names, sizes, degrees, key, flag, text, words: list}]) {
  const id = 'of-' + option;
  let field;
  if (flag) field = element('input', {type: 'checkbox', id});
  else if (degrees || key || list) field = element('select', {id});
  else field = element('input', {id, list: names ? id + '-names' : undefined, placeholder: text});
  const parts = [element('label', {for: id}, label), field];
  if (names) parts.push(element('datalist', {id: id + '-names'},
      ...held.choices[option].map((value) => element('option', {value}))));
  if (sizes) {
    const slider = element('input', {type: 'range', min: 0, max: sizes.length - 1, step: 1,
      'aria-label': label + ', slider', id: id + '-slider'});
    slider.addEventListener('input', () => choose(option, String(sizes[slider.value])));
    parts.push(slider);
  }
  field.addEventListener('change', () => choose(option, flag ? field.checked : field.value.trim()));
  return element('div', {class: 'control'}, ...parts);
}
function choose(option, value) {
  words = withOption(words, option, value);
  showChosen();
  update();
}
function makeControls() {
  const groups = new Map();
  for (const control of controls) {
    if (!groups.has(control[0]))
      groups.set(control[0], element('fieldset', {}, element('legend', {}, control[0])));
    groups.get(control[0]).append(makeControl(control));
  }
  const others = element('textarea', {id: 'others', rows: 2, spellcheck: 'false',
    placeholder: '--set plan.prefetch=2'});
  others.addEventListener('change', () => {
    words = joined({chosen: split(words).chosen, others: wordsOf(others.value)});
    showChosen();
    update();
  });
  at('question').append(...groups.values(), element('fieldset', {},
      element('legend', {}, element('label', {for: 'others'}, 'Any other option')), others));
  at('question').addEventListener('submit', (event) => event.preventDefault());
}

/// What the words say.
function showChosen() {
  const {chosen, others} = split(words);
  for (const [, option, , {flag}] of controls) {
    const field = at('of-' + option);
    if (flag) field.checked = chosen.get(option) === true;
    else if (field.tagName === 'SELECT') fillChoices(field, option, chosen.get(option) ?? '');
    else field.value = chosen.get(option) ?? '';
  }
  at('others').value = textOf(others);
}
/// What holds where they say nothing.
function showNow(answer) {
  for (const [, option, , {now, sizes}] of controls) {
    const value = now?.(answer);
    if (value === undefined) continue;
    const field = at('of-' + option);
    if (field.tagName === 'SELECT') field.options[0].textContent = `(${value})`;
    else field.placeholder = value;
    if (sizes) {
      const nearest = sizes.findIndex((size) => size >= value);
      at(field.id + '-slider').value = nearest < 0 ? sizes.length - 1 : nearest;
    }
  }
  if (shownGpus !== answer.gpus) {
    shownGpus = answer.gpus;
    showChosen();
    showNow(answer);
  }
}
let shownGpus = 0;
const forbidden = new Map();  // what was refused beside the words of now: "tensor=3" -> reason
function choicesOf(option) {
  const [, , , {degrees, key, words: list}] = controls.find(([, name]) => name === option);
  if (key) return held.choices[option].filter((value) => value !== 'best');
  if (list) return list.map(String);
  const count = degrees && (shownGpus || 64);
  return Array.from({length: Math.min(count, 1024)}, (none, i) => i + 1)
      .filter((value) => count % value === 0 || (value & (value - 1)) === 0).map(String);
}
function fillChoices(field, option, chosen) {
  const values = choicesOf(option);
  if (chosen !== '' && !values.includes(chosen)) values.push(chosen);
  const unsaid = field.options[0]?.textContent ?? '(as the program has it)';
  field.replaceChildren(element('option', {value: ''}, unsaid), ...values.map((value) => {
    const reason = forbidden.get(`${option}=${value}`);
    return element('option', {value, disabled: reason !== undefined && value !== chosen,
      title: reason}, reason === undefined ? value : `${value}: ${reason}`);
  }));
  field.value = chosen;
}
async function refusalOf(asked) {
  const refusal = await checker.ask({kind: 'refusal', words: question(asked)});
  return refusal === undefined ? undefined : JSON.parse(refusal).error.message;
}
/// Asks the program which choices it would refuse, and greys them: not for what it refuses anyway.
async function checkChoices() {
  if (!checker) return;
  const of = words;
  const reasons = new Map(), before = await refusalOf(of);
  for (const [, option, , {degrees, key, words: list}] of controls) {
    if (!degrees && !key && !list) continue;
    for (const value of choicesOf(option)) {
      const reason = await refusalOf(withOption(of, option, value));
      if (of !== words) return;  // the words of now are asked about by their own call
      if (reason !== undefined && reason !== before) reasons.set(`${option}=${value}`, reason);
    }
  }
  forbidden.clear();
  for (const [choice, reason] of reasons) forbidden.set(choice, reason);
  const open = document.activeElement;
  for (const [, option, , {degrees, key, words: list}] of controls)
    if (degrees || key || list) {
      const field = at('of-' + option);
      fillChoices(field, option, field.value);
    }
  open?.focus?.();
  ++window.stepcast.checked;
}
window.stepcast.checked = 0;

// --- start

async function start() {
  readAddress();
  makeControls();
  showChosen();
  makeActions();
  at('about').textContent = `${held.version.trim()}, written ${held.written}; nothing leaves this page.`;
  at('footer').textContent = `${held.version.trim()} of ${held.written}, with its catalogue of ` +
    `${held.choices.model.length} models and ${Object.keys(held.memory_gib).length} GPUs.`;
  const [bytes, data] = await Promise.all([at('program'), held.files]
      .map((from) => unpacked(from.textContent ?? from)));
  const note = (what) => { window.stepcast.times[what] = performance.now(); };
  note('unpacked');
  files = data;
  module = await WebAssembly.compile(bytes);
  note('compiled');
  answerer = await program();
  note('started');
  await update();
  note('ready');
  document.body.dataset.ready = 'yes';
  if (held.report) openReport();
  checker = await program();
  checkChoices();
}
addEventListener('hashchange', () => {
  readAddress();
  mineTold = undefined;
  showChosen();
  update();
});
start().catch((error) => {
  at('state').className = 'refused';
  at('state').textContent = `The program does not start in this browser: ${error.message}`;
});
