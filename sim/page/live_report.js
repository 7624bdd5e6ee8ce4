// The report, in a frame below the answer: of the words of now, anew at every change while it is
// open.

let reporter, reportOpen = false, reportTurn = 0, reported = 0;

function closeReport() {
  reportOpen = false;
  ++reportTurn;
  reporter?.end();
  reporter = undefined;
  at('live').replaceChildren();
}
function openReport() {
  reportOpen = true;
  const close = element('button', {type: 'button'}, 'Close the report');
  close.addEventListener('click', closeReport);
  at('live').replaceChildren(element('h2', {}, 'Report'),
      element('p', {id: 'report-state', role: 'status'}), element('ul', {id: 'report-file'}),
      close, element('iframe', {id: 'report-frame', title: 'Report', sandbox: 'allow-scripts'}));
  renewReport(0);
}
/// After `pause` milliseconds without another change; a report under way is given up for it.
async function renewReport(pause = 300) {
  if (!reportOpen) return;
  const turn = ++reportTurn, of = words;
  reporter?.end();
  reporter = undefined;
  at('report-state').textContent = 'The report is being written.';
  await new Promise((resolve) => setTimeout(resolve, pause));
  if (turn !== reportTurn) return;
  const worker = await program();
  if (turn !== reportTurn) return worker.end();
  reporter = worker;
  try {
    const {files, errors} = await worker.ask({kind: 'run',
      words: ['report', ...of, '--out', '/out/report.html']});
    if (turn !== reportTurn) return;
    showReport(files['report.html'], errors);
  } catch (error) {
    if (turn === reportTurn) at('report-state').textContent = error.message;
  }
  worker.end();
  ++reported;
}
function showReport(page, errors) {
  at('report-state').textContent = page === undefined ? errors : '';
  at('report-file').replaceChildren(...(page === undefined ? [] : [download('report.html', page)]));
  if (page !== undefined) at('report-frame').srcdoc = new TextDecoder().decode(page);
}
