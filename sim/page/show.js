// How the program's JSON is shown. Computes nothing but shares and differences of its figures.
'use strict';

/// Three significant digits, as the program prints.
function digits(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(Number(value.toPrecision(3))).toLocaleString('en-US');
  return value.toPrecision(3);
}
function seconds(value) {
  for (const [factor, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'us']])
    if (Math.abs(value) >= factor) return `${digits(value / factor)} ${unit}`;
  return value === 0 ? '0 s' : `${digits(value / 1e-9)} ns`;
}
const percent = (value) => `${digits(100 * value)} %`;
const gibibytes = (value) => `${digits(value)} GiB`;

function element(name, attributes = {}, ...children) {
  const out = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value === true) out.setAttribute(key, '');
    else if (value !== undefined && value !== false) out.setAttribute(key, value);
  out.append(...children);
  return out;
}

/// Key figures of an answer: [name, value as text, note, number to compare].
function figures(answer) {
  const run = answer.run;
  const out = [
    ['step', seconds(answer.step_time_s), answer.step_time_low_s === undefined ? '' :
      `${seconds(answer.step_time_low_s)} to ${seconds(answer.step_time_high_s)}, ` +
      `${Math.round(100 * answer.confidence.level)} % of cases`, answer.step_time_s],
    ['tokens/s', digits(answer.tokens_per_s), `${digits(answer.tokens_per_s_per_gpu)} a GPU`,
      answer.tokens_per_s],
    ['MFU', percent(answer.mfu), `${digits(answer.model_tflops_per_gpu)} TFLOP/s a GPU`,
      answer.mfu],
    ['memory a GPU', gibibytes(answer.memory_gib_per_gpu),
      answer.memory_low_gib_per_gpu === undefined ? '' :
      `${gibibytes(answer.memory_low_gib_per_gpu)} to ${gibibytes(answer.memory_high_gib_per_gpu)}`,
      answer.memory_gib_per_gpu],
    ['P(fits)', percent(answer.p_fits ?? NaN), '', answer.p_fits],
    ['power a GPU', `${digits(answer.power_w_per_gpu ?? NaN)} W`,
      `${digits(answer.tokens_per_joule ?? NaN)} tokens/J`, answer.power_w_per_gpu],
  ];
  if (run?.days !== undefined)
    out.push(['whole run', `${digits(run.days)} days`,
      `${digits(run.days_low)} to ${digits(run.days_high)}`, run.days]);
  if (run?.usd !== undefined)
    out.push(['cost', `${digits(run.usd)} USD`, `${digits(run.usd_low)} to ${digits(run.usd_high)}`,
      run.usd]);
  return out.filter(([, , , number]) => Number.isFinite(number));
}

function figureList(answer) {
  const out = element('dl');
  for (const [name, value, note] of figures(answer))
    out.append(element('div', {}, element('dt', {}, name), element('dd', {class: 'value'}, value),
        element('dd', {class: 'note'}, note)));
  return out;
}

/// Parts beside each other, with a legend that says each; `capacity`: where a mark stands.
function bar(parts, text, label, capacity) {
  const shown = parts.filter(([, value]) => value > 0);
  const sum = shown.reduce((total, [, value]) => total + value, 0);
  const whole = Math.max(sum, capacity ?? 0);
  const picture = element('div', {class: 'bar', role: 'img', 'aria-label': label});
  const legend = element('ul', {class: 'legend'});
  shown.forEach(([name, value, colour]) => {
    picture.append(element('span', {class: `c${colour}`, style: `width:${100 * value / whole}%`,
      title: `${name} ${text(value)}`}));
    legend.append(element('li', {}, element('b', {class: `c${colour}`}), `${name} ${text(value)}`));
  });
  if (capacity !== undefined && capacity < whole)
    picture.append(element('i', {style: `left:${100 * capacity / whole}%`,
      title: `the GPU has ${text(capacity)}`}));
  return [picture, legend];
}

/// Whether it fits, the program has said: it refuses a plan that does not.
function memoryBar(answer, capacity, fits) {
  const parts = Object.entries(answer.memory_parts_gib).map(([name, value], i) =>
    [name, value, i % 10]);
  const verdict = capacity === undefined ? '' :
    ` of ${gibibytes(capacity)}: ${fits ? 'fits' : 'does not fit'}`;
  return [element('h2', {}, 'Memory of a GPU, ', gibibytes(answer.memory_gib_per_gpu),
      element('span', {class: fits ? 'fits' : 'refused'}, verdict)),
    ...bar(parts, gibibytes, `Memory ${gibibytes(answer.memory_gib_per_gpu)}${verdict}`, capacity)];
}

function stepParts(answer) {
  const exposed = answer.exposed_communication_s;
  return [['compute', answer.compute_s, 0], ['tensor', exposed.tensor, 1],
    ['pipeline', exposed.pipeline, 3], ['data', exposed.data, 4], ['expert', exposed.expert, 5],
    ['offload', exposed.offload, 6], ['bubble', answer.bubble_s, 7], ['wait', answer.wait_s, 8],
    ['host', answer.host_s, 9]];
}

function answerParts(answer, capacity, fits) {
  const warnings = (fits ? answer.warnings : []).map((text) => element('li', {}, text));
  return [figureList(answer), ...memoryBar(answer, capacity, fits),
    element('h2', {}, `Parts of the step, ${seconds(answer.step_time_s)}; `,
        'communication as far as it is exposed'),
    ...bar(stepParts(answer), seconds, `Parts of the step of ${seconds(answer.step_time_s)}`),
    ...(warnings.length === 0 ? [] :
      [element('h2', {}, 'Warnings'), element('ul', {}, ...warnings)])];
}

function table(head, rows, caption) {
  const out = element('table', {}, element('caption', {class: 'note'}, caption),
      element('thead', {}, element('tr', {}, ...head.map((text) =>
        element('th', {scope: 'col'}, text)))));
  const body = element('tbody');
  for (const row of rows)  // a shorter one ends with a sentence
    body.append(element('tr', {}, ...row.map((cell, i) => element('td',
        {colspan: i + 1 < row.length ? undefined : head.length - i}, cell))));
  out.append(body);
  return element('div', {class: 'scroll', tabindex: 0}, out);
}

/// What is kept beside what is asked now.
function beside(mine, now) {
  const change = (a, b) => a === 0 ? '' :
    `${b < a ? '-' : '+'}${digits(Math.abs(100 * (b / a - 1)))} %`;
  const kept = new Map(figures(mine).map((figure) => [figure[0], figure]));
  const rows = figures(now).filter(([name]) => kept.has(name)).map(([name, value, , number]) =>
    [name, kept.get(name)[1], value, change(kept.get(name)[3], number)]);
  const keptParts = new Map(stepParts(mine));
  for (const [name, value] of stepParts(now))
    if (value > 0 || keptParts.get(name) > 0)
      rows.push([name, seconds(keptParts.get(name)), seconds(value),
        change(keptParts.get(name), value)]);
  return table(['', 'mine', 'what if', 'change'], rows, 'Mine beside what if');
}

/// A curve of step times, with its points as a table below.
function curve(axis, points) {
  const namespace = 'http://www.w3.org/2000/svg';
  const draw = (name, attributes, text) => {
    const out = document.createElementNS(namespace, name);
    for (const [key, value] of Object.entries(attributes)) out.setAttribute(key, value);
    if (text !== undefined) out.textContent = text;
    return out;
  };
  const width = 640, height = 260, left = 70, bottom = 30;
  const answered = points.filter(({answer}) => answer?.step_time_s !== undefined);
  const most = Math.max(...answered.map(({answer}) => answer.step_time_high_s), 0) || 1;
  const x = (i) => left + (width - left - 20) * (points.length < 2 ? 0.5 : i / (points.length - 1));
  const y = (value) => height - bottom - (height - bottom - 15) * value / most;
  const picture = draw('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `Step time over ${axis}`});
  for (const share of [0, 0.5, 1]) {
    const level = y(most * share);
    picture.append(draw('line', {x1: left, x2: width - 20, y1: level, y2: level}));
    picture.append(draw('text', {x: left - 6, y: level + 4, 'text-anchor': 'end'},
        seconds(most * share)));
  }
  const path = [];
  points.forEach(({value, answer}, i) => {
    picture.append(draw('text', {x: x(i), y: height - 10, 'text-anchor': 'middle'}, value));
    if (answer?.step_time_s === undefined) return;
    path.push(`${path.length === 0 ? 'M' : 'L'}${x(i)} ${y(answer.step_time_s)}`);
    picture.append(draw('line', {x1: x(i), x2: x(i), y1: y(answer.step_time_low_s),
      y2: y(answer.step_time_high_s)}));
    picture.append(draw('circle', {cx: x(i), cy: y(answer.step_time_s), r: 4}));
  });
  picture.append(draw('path', {d: path.join('')}));
  const rows = points.map(({value, answer}) => answer?.step_time_s === undefined ?
    [value, refusalText(answer)] :
    [value, seconds(answer.step_time_s), digits(answer.tokens_per_s), percent(answer.mfu),
      gibibytes(answer.memory_gib_per_gpu)]);
  return [element('h2', {}, `Step time over ${axis}`), picture,
    table([axis, 'step', 'tokens/s', 'MFU', 'memory'], rows, '')];
}

function refusalText(answer) {
  if (answer?.refused !== undefined) return answer.refused;
  if (answer?.error === undefined) return 'no answer';
  return [answer.error.message, answer.error.hint].filter((text) => text).join(', ');
}
