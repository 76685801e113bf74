// The page of `longhand serve`. While the page is visible, it requests the list of runs every two
// seconds, and the curves of the selected runs.
'use strict';

const byId = (id) => document.getElementById(id);
const state = {
  runs: [],
  chosen: new Set(),  // numbers of the selected runs
  picked: false,      // true after the initial selection
  open: null,     // the run whose details are shown
  view: null,     // [from, to] in steps
  charts: new Map(),
  series: {},
  cards: new Map(),
};

// The token follows the '#' of the address. Browsers do not send this part to servers. The token is
// stored for this tab.
if (location.hash.length > 1) {
  sessionStorage.setItem('token', location.hash.slice(1));
  history.replaceState(null, '', location.pathname);
}
const token = sessionStorage.getItem('token') || '';

async function ask(address) {
  const answer = await fetch(address);
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error || answer.statusText);
  return json;
}
async function order(what, run) {
  try {
    const answer = await fetch('/api/' + what + '?run=' + run, {method: 'POST', headers: {'X-Longhand-Token': token}});
    const json = await answer.json();
    if (!answer.ok) throw new Error(json.error || answer.statusText);
    say('');
  } catch (error) {
    say(error.message);
  }
  refresh();
}
function say(text) {
  byId('message').textContent = text;
  byId('message').hidden = !text;
}

function colourOf(number) {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const hue = (number * 137.508 + 70) % 360;  // successive numbers have very different hues
  return 'hsl(' + hue.toFixed(0) + (dark ? ' 70% 66%)' : ' 68% 40%)');
}
function duration(seconds) {
  if (!isFinite(seconds) || seconds < 0) return '-';
  if (seconds < 100) return Math.round(seconds) + ' s';
  if (seconds < 6000) return Math.round(seconds / 60) + ' min';
  if (seconds < 172800) return (seconds / 3600).toFixed(1) + ' h';
  return (seconds / 86400).toFixed(1) + ' days';
}
function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return (bytes < 10 && unit ? bytes.toFixed(1) : Math.round(bytes)) + ' ' + units[unit];
}
function make(kind, kindOf, text) {
  const element = document.createElement(kind);
  if (kindOf) element.className = kindOf;
  if (text !== undefined) element.textContent = text;
  return element;
}

// A run's card is created once and then updated. If a card were replaced, a click on it could be
// lost.
function cardOf(run) {
  let card = state.cards.get(run.run);
  if (card) return card;
  card = make('div', 'run');
  const top = make('div', 'top');
  const tick = make('input');
  tick.type = 'checkbox';
  tick.setAttribute('aria-label', 'show the curves of ' + run.name);
  tick.onchange = () => { tick.checked ? state.chosen.add(run.run) : state.chosen.delete(run.run); drawAll(); fetchSeries(); };
  const name = make('button', 'name', run.name);
  name.type = 'button';
  name.onclick = () => showDetail(state.open === run.run ? null : run.run);
  const buttons = make('div', 'buttons');
  const button = (text, what) => {
    const one = make('button', '', text);
    one.type = 'button';
    one.onclick = () => { one.disabled = true; order(what, run.run); };
    buttons.append(one);
    return one;
  };
  card.parts = {tick, swatch: make('span', 'swatch'), state: make('span', 'state'), about: make('div', 'about'),
    progress: make('progress'), numbers: make('div', 'numbers'), trouble: make('div', 'trouble'),
    stop: button('stop', 'stop'), resume: button('resume', 'resume'), look: button('inspect attention', 'look'), buttons};
  top.append(tick, card.parts.swatch, name, card.parts.state);
  card.append(top, card.parts.about, card.parts.progress, card.parts.numbers, card.parts.trouble, buttons);
  state.cards.set(run.run, card);
  return card;
}
function fill(card, run) {
  const p = card.parts, training = run.state === 'training';
  card.classList.toggle('open', state.open === run.run);
  p.tick.checked = state.chosen.has(run.run);
  p.swatch.style.background = colourOf(run.run);
  p.state.className = 'state ' + run.state;
  p.state.textContent = run.state + (run.whole ? '' : ', reading');
  p.about.textContent = run.error || [run.task, run.heads, run.layers + (run.layers === '1' ? ' layer' : ' layers'), 'width ' + run.width].join(' · ');
  p.progress.hidden = !!run.error || !run.steps;
  p.progress.max = run.steps || 1;
  p.progress.value = run.step;
  const numbers = ['step ' + run.step + ' of ' + run.steps];
  if (run.loss !== null) numbers.push('loss ' + precise(run.loss));
  if (run.score !== null) numbers.push(run.metric + ' ' + precise(run.score));
  if (training && run.tokens_per_second) numbers.push(short(run.tokens_per_second) + ' tokens/s');
  if (training && run.step_seconds) numbers.push(duration((run.steps - run.step) * run.step_seconds) + ' left');
  if (!training && run.seconds) numbers.push('took ' + duration(run.seconds));
  if (run.resident_bytes) {
    const before = card.measured, now = {seconds: run.processor_seconds, at: performance.now()};
    if (before && now.at > before.at) {
      const share = (now.seconds - before.seconds) / ((now.at - before.at) / 1000);
      numbers.push(Math.max(0, share).toFixed(1) + ' cores');
    }
    card.measured = now;
    numbers.push(size(run.resident_bytes) + ' of memory');
  }
  p.numbers.textContent = run.error ? '' : numbers.join(' · ');
  p.trouble.textContent = run.doing ? run.doing + ' is at work' : run.trouble || '';
  p.buttons.hidden = !token || !!run.error;
  p.stop.hidden = !training || !run.here;
  p.resume.hidden = run.state !== 'stopped';
  p.look.hidden = state.open !== run.run;
  p.stop.disabled = false;
  p.resume.disabled = p.look.disabled = !!run.doing;
}

function drawList() {
  const wanted = byId('filter').value.toLowerCase();
  const seen = [];
  for (const run of state.runs) {
    const words = [run.name, run.task, run.heads, run.state].join(' ').toLowerCase();
    if (!words.includes(wanted)) continue;
    const card = cardOf(run);
    fill(card, run);
    seen.push(card);
  }
  const list = byId('list');
  if (seen.length !== list.children.length || seen.some((card, i) => card !== list.children[i])) list.replaceChildren(...seen);
  if (!state.runs.length) list.replaceChildren(make('p', 'hint', 'No runs yet.'));
}

const first = ['loss', 'accuracy'], last = ['rate', 'gradient_norm', 'tokens_per_second', 'peak_bytes', 'tokens', 'seconds', 'waited'];
function figuresShown() {
  const names = new Set();
  for (const run of state.runs) if (state.chosen.has(run.run)) for (const name of run.figures) names.add(name);
  const rank = (name) => first.includes(name) ? first.indexOf(name) : last.includes(name) ? 100 + last.indexOf(name) : name.includes('/') ? 50 : 60;
  return [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1)).slice(0, 60);
}
// A table of the figures that have one value per run, for example those of an evaluation at the
// end.
function tableOf(singles) {
  const runs = [...new Map(singles.flatMap(({curves}) => curves.map((curve) => [curve.name, curve]))).values()].slice(0, 12);
  const table = make('table'), head = make('tr');
  head.append(make('th'), ...runs.map((run) => {
    const cell = make('th', 'number'), swatch = make('span', 'swatch');
    swatch.style.background = run.colour;
    cell.append(swatch, run.name);
    return cell;
  }));
  table.append(head);
  for (const {name, curves} of singles) {
    const row = make('tr');
    row.append(make('td', '', name), ...runs.map((run) => {
      const curve = curves.find((one) => one.name === run.name);
      const cell = make('td', 'number', curve ? precise(curve.y[0]) : '');
      if (curve) cell.title = 'step ' + curve.x[0];
      return cell;
    }));
    table.append(row);
  }
  const box = make('div', 'chart singles'), title = make('div', 'title', 'One value each');
  box.append(title, table);
  return box;
}
function drawAll() {
  drawList();
  const names = figuresShown(), elements = [], singles = [];
  for (const name of names) {
    const curves = [];
    for (const run of state.runs) {
      const found = state.chosen.has(run.run) && state.series[run.run] && state.series[run.run][name];
      if (found) curves.push({...found, name: run.name, colour: colourOf(run.run)});
    }
    if (!state.view && curves.length && curves.every((curve) => curve.x.length === 1)) {
      singles.push({name, curves});
      continue;
    }
    if (!state.charts.has(name)) state.charts.set(name, new Chart(name, zoom));
    const chart = state.charts.get(name);
    chart.show(curves, state.view, Number(byId('smooth').value));
    elements.push(chart.element);
  }
  if (singles.length) {
    const said = JSON.stringify(singles);
    if (said !== state.singlesSaid) state.singles = tableOf(singles);
    state.singlesSaid = said;
    elements.push(state.singles);
  }
  const charts = byId('charts');
  if (elements.length !== charts.children.length || elements.some((e, i) => e !== charts.children[i])) charts.replaceChildren(...elements);
  byId('empty').hidden = elements.length > 0;
  byId('out').hidden = !state.view;
}
function zoom(view) {
  state.view = view;
  drawAll();
  fetchSeries();
}

// Number of the latest request. Responses to earlier requests are ignored.
let asked = 0;
async function fetchSeries() {
  const mine = ++asked, names = figuresShown(), runs = [...state.chosen].slice(0, 200);
  if (!names.length || !runs.length) return;
  const points = Math.round(Math.min(400, Math.max(60, 12000 / runs.length)));
  const range = state.view ? '&from=' + state.view[0] + '&to=' + state.view[1] : '';
  try {
    const answer = await ask('/api/series?runs=' + runs.join(',') + '&figures=' + names.map(encodeURIComponent).join(',') + '&points=' + points + range);
    if (mine !== asked) return;
    state.series = answer.runs;
    drawAll();
    if (!answer.whole) setTimeout(fetchSeries, 20);
  } catch (error) {
    if (mine === asked) say(error.message);
  }
}

function rows(table, pairs) {
  for (const [name, value, number] of pairs) {
    const row = make('tr');
    row.append(make('td', '', name), make('td', number ? 'number' : '', value));
    table.append(row);
  }
  return table;
}
async function showDetail(number) {
  state.open = number;
  drawList();
  const panel = byId('detail');
  panel.hidden = number === null;
  if (number === null) return;
  let run;
  try {
    run = await ask('/api/run?run=' + number);
  } catch (error) {
    return say(error.message);
  }
  if (state.open !== number) return;
  const close = make('button', 'close', 'close');
  close.type = 'button';
  close.onclick = () => showDetail(null);
  const columns = make('div', 'columns');
  const figures = make('div');
  if (run.evaluation) {
    figures.append(make('h3', '', 'Evaluation of step ' + run.evaluation.step));
    const pairs = [];
    for (const [name, value] of Object.entries(run.evaluation)) {
      if (typeof value !== 'number' || name === 'step') continue;
      const range = (run.evaluation.intervals || {})[name];
      pairs.push([name, precise(value) + (range ? '  (' + precise(range[0]) + ' to ' + precise(range[1]) + ')' : ''), true]);
    }
    figures.append(rows(make('table'), pairs));
  }
  const settings = make('details'), list = make('div', 'settings');
  for (const [name, value] of Object.entries(run.settings)) {
    const line = make('div');
    line.append(make('span', '', name), make('span', '', value));
    if (value !== '') list.append(line);
  }
  settings.append(make('summary', '', 'Settings'), list);
  const samples = make('div');
  if (run.samples.length) {
    const latest = run.samples[run.samples.length - 1];
    samples.append(make('h3', '', 'Predictions after step ' + latest.step));
    for (const sample of latest.samples) {
      const said = make('pre');
      said.append(make('b', '', sample.prompt || ''));
      if (sample.expected === undefined) said.append(sample.text || '');
      else if (sample.expected === sample.text) said.append('\ncorrect:   ' + sample.expected);
      else said.append('\nexpected:  ' + sample.expected + '\npredicted: ' + sample.text);
      samples.append(said);
    }
  }
  const pages = make('div', 'buttons');
  const frame = make('iframe');
  frame.hidden = true;
  frame.setAttribute('sandbox', 'allow-scripts');
  const titles = {'report.html': 'report', 'inspect.html': 'attention maps', 'attention.html': 'attention measures'};
  for (const name of run.pages) {
    const show = make('button', '', titles[name] || name);
    show.type = 'button';
    show.onclick = () => { frame.title = show.textContent; frame.src = '/page?run=' + number + '&name=' + name; frame.hidden = false; };
    pages.append(show);
  }
  columns.append(figures, samples);
  panel.replaceChildren(close, make('h2', '', run.name), make('div', 'hint', run.path), pages, frame, columns, settings);
  panel.scrollIntoView({block: 'nearest'});
}

// The initial selection: six runs. Runs that are being trained are first, then the latest runs.
function chooseAtFirst() {
  const busy = state.runs.filter((run) => run.state === 'training').map((run) => run.run);
  const rest = state.runs.filter((run) => run.figures.length).map((run) => run.run).reverse();
  if (!state.chosen.size) state.chosen = new Set([...busy, ...rest].slice(0, 6));
  state.picked = true;
}
async function refresh() {
  try {
    const answer = await ask('/api/runs');
    state.runs = answer.runs;
    if (!state.picked && answer.runs.some((run) => run.figures.length)) chooseAtFirst();
    const m = answer.machine;
    byId('folder').textContent = answer.folder;
    byId('skipped').replaceChildren(...answer.skipped.map((text) => make('p', '', text)));
    byId('skipped').hidden = !answer.skipped.length;
    byId('machine').textContent = m.name + ' · load ' + m.load.toFixed(1) + ' of ' + m.threads + ' · ' +
      size(m.available_bytes) + ' of ' + size(m.memory_bytes) + ' free';
    if (state.lost) say('');
    state.lost = false;
    drawAll();
    return answer.runs.some((run) => !run.whole || run.state === 'training');
  } catch (error) {
    state.lost = true;
    say('The server does not answer: ' + error.message);
    return false;
  }
}
async function turn() {
  if (!document.hidden) {
    const moving = await refresh();
    if (moving || !Object.keys(state.series).length) await fetchSeries();
  }
  setTimeout(turn, 2000);
}

byId('filter').oninput = drawList;
byId('smooth').oninput = drawAll;
byId('out').onclick = () => zoom(null);
byId('all').onclick = () => {
  const wanted = byId('filter').value.toLowerCase();
  for (const run of state.runs) if ([run.name, run.task, run.heads, run.state].join(' ').toLowerCase().includes(wanted)) state.chosen.add(run.run);
  drawAll();
  fetchSeries();
};
byId('none').onclick = () => { state.chosen.clear(); drawAll(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
turn();
