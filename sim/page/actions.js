// What the buttons do: keep, search, why, curve, downloads, dropped files.

function download(name, content) {
  const link = element('a', {download: name,
    href: URL.createObjectURL(new Blob([content], {type: 'application/octet-stream'}))}, name);
  return element('li', {}, link);
}
function say(...parts) { at('more').replaceChildren(...parts); }

/// In a Worker of its own, so that the sliders go on answering; `stop` ends it.
async function aside(what, words, show) {
  const stop = element('button', {type: 'button'}, 'Stop');
  const begun = performance.now();
  const clock = element('span', {});
  const tick = setInterval(() => {
    clock.textContent = ` ${Math.round((performance.now() - begun) / 1000)} s `;
  }, 500);
  const heard = element('pre', {'aria-live': 'off', hidden: true});
  say(element('p', {}, what, clock, stop), heard);
  const worker = await program();
  let ended = false;
  stop.addEventListener('click', () => {
    ended = true;
    clearInterval(tick);
    worker.end();
    say(element('p', {}, 'Stopped.'));
  });
  try {
    const result = await worker.ask({kind: 'run', words}, (message) => {
      heard.hidden = false;
      heard.textContent = message;
    });
    if (!ended) say(...show(result));
  } catch (error) {
    if (!ended) say(element('p', {class: 'refused'}, error.message));
  }
  clearInterval(tick);
  worker.end();
  ++drawn;
}
const printed = ({out, errors}) => [element('pre', {tabindex: 0}, out || errors)];

/// The words without the plan, which a search chooses.
function withoutPlan() {
  const parts = split(words);
  for (const [group, option] of controls)
    if (group === 'Plan' || option === 'micro-batch') parts.chosen.delete(option);
  return joined(parts);
}
/// Those of now with a plan that a search has found. What is the software's own choice, and what
/// has no effect there, is not said.
function planWords({knobs}) {
  const parts = split(withoutPlan());
  const unsaid = ['software', 'none', 'false', '0'];
  for (const [key, value] of Object.entries(knobs)) {
    const text = String(value), option = key.split('.').at(-1).replaceAll('_', '-');
    const control = controls.find(([, name]) => name === option);
    if (control?.[3].flag) {
      if (text === 'true') parts.chosen.set(option, true);
    } else if (control && text !== 'software') parts.chosen.set(option, text);
    else if (!control && !unsaid.includes(text) && usual[key] !== text)
      parts.others.push('--set', `${key}=${text}`);
  }
  return joined(parts);
}
const usual = {'plan.prefetch': '1', 'plan.recompute_every': '1', 'plan.dispatcher': 'all_to_all'};

function showSearch(result) {
  let found;
  try {
    found = JSON.parse(result.out);
  } catch {
    return printed(result);
  }
  if (!found.plans?.length) return [element('p', {class: 'refused'}, refusalText(found))];
  const rows = found.plans.filter(({report}) => report).map((plan) => {
    const take = element('button', {type: 'button'}, 'Take it');
    take.addEventListener('click', () => {
      words = planWords(plan);
      showChosen();
      update();
    });
    return [seconds(plan.step_time_s), percent(plan.report.mfu),
      gibibytes(plan.report.memory_gib_per_gpu), percent(plan.p_fits), planText(plan.report.plan),
      take];
  });
  return [element('h2', {}, 'The best plans'), element('p', {}, found.proof),
    table(['step', 'MFU', 'memory', 'P(fits)', 'plan', ''], rows, '')];
}
const planText = (plan) => [`${plan.framework} ${plan.data}`, ...['tensor', 'pipeline', 'context',
  'expert', 'virtual_stages', 'micro_batch'].filter((key) => plan[key] > 1)
    .map((key) => `${key.replace('_', ' ')} ${plan[key]}`),
plan.recompute === 'none' ? '' : `recompute ${plan.recompute}`].filter((text) => text).join(', ');

/// One quantity at several values, beside the words of now.
async function drawCurve(option, values) {
  const points = [];
  const worker = await program();
  for (const value of values) {
    const {out} = await worker.ask({kind: 'answer',
      words: question(withOption(words, option, value))});
    points.push({value, answer: JSON.parse(out)});
    say(...curve(option, points));
  }
  worker.end();
  ++drawn;
}
function makeSweep() {
  const swept = controls.filter(([, , , {sizes, degrees}]) => sizes || degrees);
  at('axis').append(...swept.map(([, option, label]) => element('option', {value: option}, label)));
  const propose = () => {
    const [, option, , {sizes, now}] = controls.find(([, name]) => name === at('axis').value);
    const here = told?.answer.plan ? now(told.answer) : 1;
    const all = sizes ?? choicesOf(option).map(Number);
    const middle = Math.max(0, all.findIndex((value) => value >= here));
    at('values').value = all.slice(Math.max(0, middle - 3), middle + 4).join(' ');
  };
  at('axis').value = 'gpus';
  at('axis').addEventListener('change', propose);
  at('axis').addEventListener('focus', propose);
  at('sweep').addEventListener('submit', (event) => {
    event.preventDefault();
    if (!at('values').value.trim()) propose();
    drawCurve(at('axis').value, at('values').value.split(/[\s,]+/).filter((word) => word));
  });
}

/// A file on the page: a scenario becomes the question, a config.json its model.
async function takeFile(file) {
  const path = `/${file.name.replace(/[^\w.-]/g, '_')}`, text = await file.text();
  dropped.set(path, text);
  for (const worker of [answerer, checker]) await worker?.ask({kind: 'write', path, text});
  words = path.endsWith('.toml') ? [path] : withOption(words, 'model', path);
  showChosen();
  update();
}

function makeActions() {
  at('keep').addEventListener('click', () => {
    mine = words;
    mineTold = told;
    update();
  });
  at('forget').addEventListener('click', () => {
    mine = mineTold = undefined;
    update();
  });
  at('copy').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(at('command').textContent);
      at('copy').textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(at('command'));
      at('copy').textContent = 'Marked: copy with Ctrl+C';
    }
  });
  at('best').addEventListener('click', () => aside('Looking for the best plan.',
      ['search', ...withoutPlan(), '--json', '--top', '5'], showSearch));
  for (const [button, [verb, out]] of [['launch', ['launch', '/out']],
    ['report', ['report', '/out/report.html']]])
    at(button).addEventListener('click', () => aside('Being written.',
        [verb, ...words, '--out', out],
        ({out, errors, files}) => [
          element('ul', {}, ...Object.entries(files).map((file) => download(...file))),
          ...printed({out, errors})]));
  makeSweep();
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length > 0) takeFile(event.dataTransfer.files[0]);
  });
  at('file').addEventListener('change', () => takeFile(at('file').files[0]));
  at('why').addEventListener('click', () => aside('Why is it as slow as it is?', ['why', ...words],
      printed));
}
