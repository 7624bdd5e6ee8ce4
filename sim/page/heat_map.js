// Step times over two quantities: a table whose shades say what is slow.

const shades = 8;

/// `points` by row, then column: answers, undefined where none has come yet.
function heatMap(across, columns, down, rows, points) {
  const times = points.flat().map((answer) => answer?.step_time_s).filter((time) => time > 0);
  const least = Math.min(...times), most = Math.max(...times);
  const shadeOf = (time) => most > least ?
    Math.round((shades - 1) * Math.log(time / least) / Math.log(most / least)) : 0;
  const cell = (answer) => {
    if (answer === undefined) return element('td', {}, '...');
    const time = answer.step_time_s;
    if (time === undefined)
      return element('td', {class: 'refused', title: refusalText(answer)},
          answer.memory_over_gib === undefined ? 'refused' : 'does not fit');
    const out = element('td', {class: `heat${shadeOf(time)}`,
      title: `${digits(answer.tokens_per_s)} tokens/s, MFU ${percent(answer.mfu)}, ` +
        `${gibibytes(answer.memory_gib_per_gpu)} a GPU`}, seconds(time));
    if (time === least) out.replaceChildren(element('b', {}, seconds(time)));
    return out;
  };
  const head = element('tr', {}, element('th', {scope: 'col'}, `${down}, ${across}:`),
      ...columns.map((value) => element('th', {scope: 'col'}, value)));
  const body = rows.map((value, r) => element('tr', {}, element('th', {scope: 'row'}, value),
      ...columns.map((_, c) => cell(points[r][c]))));
  return [element('h2', {}, `Step time over ${across} and ${down}`),
    element('div', {class: 'scroll', tabindex: 0}, element('table', {class: 'heat'},
        element('caption', {class: 'note'}, 'The darker the slower; the fastest is bold.'),
        element('thead', {}, head), element('tbody', {}, ...body)))];
}
