// What the buttons do: keep, search, why, what changed, curve and heat map, downloads; and files
// that are dropped.

function download(name, content) {
  const link = element('a', {download: name,
    href: URL.createObjectURL(new Blob([content], {type: 'application/octet-stream'}))}, name);
  return element('li', {}, link);
}
function say(...parts) { at('more').replaceChildren(...parts); }

/// In a Worker of its own, so that the sliders go on answering; `stop` ends it. `job` is given what
/// runs words of a command line there, and the Worker; `show` what it returns.
async function aside(what, job, show) {
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
    const result = await job((...words) => worker.ask({kind: 'run', words}, (message) => {
      heard.hidden = false;
      heard.textContent = message;
    }), worker);
    if (!ended) say(...show(result));
  } catch (error) {
    if (!ended) say(element('p', {class: 'refused'}, error.message));
  }
  clearInterval(tick);
  worker.end();
  ++drawn;
}
const printed = ({out, errors}) =>
  [element('pre', {class: 'printed', tabindex: 0}, out || errors)];

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

/// What lies between mine and what is asked now, change by change: a waterfall, and the program's
/// words.
async function changesFromMine(run, worker) {
  const kept = [];
  for (const [name, of] of [['mine', mine], ['what_if', words]]) {
    const {errors, files} = await run('run', ...of, '--scenario-out', `/out/${name}.toml`);
    if (!files[`${name}.toml`]) throw new Error(errors);
    kept.push(`/${name}.toml`);
    await worker.ask({kind: 'write', path: kept.at(-1),
      text: new TextDecoder().decode(files[`${name}.toml`])});
  }
  return run('compare', ...kept, '--svg', '/out/changes.svg');
}
function showChanges(result) {
  const picture = result.files['changes.svg'];
  if (!picture) return printed(result);
  return [element('h2', {}, 'From mine to what if'),
    element('img', {alt: 'Waterfall: what each change adds to the step or takes from it',
      src: URL.createObjectURL(new Blob([picture], {type: 'image/svg+xml'}))}),
    ...printed(result)];
}

/// One quantity at several values, beside the words `of` when it was asked.
async function drawCurve(of, {option, values}, answered) {
  const points = [];
  for (const value of values) {
    points.push({value, answer: await answered(withOption(of, option, value))});
    say(...curve(option, points));
  }
}
/// Two of them, row by row.
async function drawHeatMap(of, across, down, answered) {
  const points = down.values.map(() => across.values.map(() => undefined));
  for (const [r, below] of down.values.entries())
    for (const [c, value] of across.values.entries()) {
      points[r][c] = await answered(withOption(withOption(of, across.option, value),
          down.option, below));
      say(...heatMap(across.option, across.values, down.option, down.values, points));
    }
}
/// Options of which one takes the other's place cannot be changed together.
function excludeEachOther(...options) {
  return options[0] === options[1] || options.some((option, i) =>
    controls.find(([, name]) => name === option)?.[3].instead?.includes(options[1 - i]));
}
function makeSweep() {
  const swept = controls.filter(([, , , {sizes, degrees}]) => sizes || degrees);
  const propose = (axis, values) => {
    const control = controls.find(([, name]) => name === axis.value);
    if (!control) return values.value = '';
    const [, option, , {sizes, now}] = control;
    const here = told?.answer.plan ? now(told.answer) : 1;
    const all = sizes ?? choicesOf(option).map(Number);
    const middle = Math.max(0, all.findIndex((value) => value >= here));
    values.value = all.slice(Math.max(0, middle - 3), middle + 4).join(' ');
  };
  const axes = [[at('axis'), at('values')], [at('axis2'), at('values2')]];
  for (const [axis, values] of axes) {
    axis.append(...swept.map(([, option, label]) => element('option', {value: option}, label)));
    axis.addEventListener('change', () => propose(axis, values));
  }
  at('axis').value = 'gpus';
  at('axis').addEventListener('focus', () => propose(...axes[0]));
  at('sweep').addEventListener('submit', async (event) => {
    event.preventDefault();
    for (const pair of axes) if (!pair[1].value.trim()) propose(...pair);
    const [across, down] = axes.map(([axis, values]) => ({option: axis.value,
      values: values.value.split(/[\s,]+/).filter((word) => word)}));
    if (excludeEachOther(across.option, down.option))
      return say(element('p', {class: 'refused'},
          `${across.option} and ${down.option} cannot be changed together.`));
    const of = words, worker = await program();
    const answered = async (asked) =>
      JSON.parse((await worker.ask({kind: 'answer', words: question(asked)})).out);
    try {
      await (down.option ? drawHeatMap(of, across, down, answered) :
        drawCurve(of, across, answered));
    } catch (error) {
      say(element('p', {class: 'refused'}, error.message));
    }
    worker.end();
    ++drawn;
  });
}

/// A model of Hugging Face's, not a launch file in JSON.
function isModel(text) {
  try {
    const {architectures, model_type: type, text_config: inner} = JSON.parse(text);
    return (architectures ?? type ?? inner) !== undefined;
  } catch {
    return false;
  }
}
/// Files on the page: a config.json becomes the model; a scenario, or launch files of one run, the
/// question, on the machine of now where they are silent of one.
async function takeFiles(files) {
  const taken = [];
  for (const file of files) {
    const path = `/${file.name.replace(/[^\w.-]/g, '_')}`, text = await file.text();
    dropped.set(path, text);
    for (const worker of [answerer, checker]) await worker?.ask({kind: 'write', path, text});
    if (path.endsWith('.json') && isModel(text)) words = withOption(words, 'model', path);
    else taken.push(path);
  }
  if (taken.length > 0) {
    const saysMachine = taken.some((path) => /^\s*\[?cluster\b/m.test(dropped.get(path)));
    const {chosen} = split(words);
    const kept = saysMachine ? [] : controls.filter(([group, option]) =>
      group === 'Machine' && chosen.has(option)).map(([, option]) => option);
    words = joined({chosen: new Map(kept.map((option) => [option, chosen.get(option)])),
      others: taken});
  }
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
      (run) => run('search', ...withoutPlan(), '--json', '--top', '5'), showSearch));
  const written = ({out, errors, files}) => [
    element('ul', {}, ...Object.entries(files).map((file) => download(...file))),
    ...printed({out, errors})];
  at('launch').addEventListener('click', () => aside('Being written.',
      (run) => run('launch', ...words, '--out', '/out'), written));
  at('files').addEventListener('click', () => aside('Being written.',
      (run) => run('run', ...words, '--scenario-out', '/out/scenario.toml',
          '--csv', '/out/stepcast.csv'), written));
  at('report').addEventListener('click', openReport);
  at('changes').addEventListener('click', () => aside('Mine beside what if, change by change.',
      changesFromMine, showChanges));
  makeSweep();
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length > 0) takeFiles(event.dataTransfer.files);
  });
  at('file').addEventListener('change', () => takeFiles(at('file').files));
  at('why').addEventListener('click', () => aside('Why is it as slow as it is?',
      (run) => run('why', ...words), printed));
}
